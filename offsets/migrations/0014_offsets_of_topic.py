"""The index by topic ends with the group, so that both that know a partition lead to one row.

By topic and partition alone Postgres read the offsets of all groups for each partition of one, as that index is smaller
than the key and most topics have a few groups.
"""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("offsets", "0013_no_index_twice"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="committedoffset",
            index=models.Index(fields=["topic", "partition", "group"], name="offsets_committed_of_topic"),
        ),
        RemoveIndexConcurrently(model_name="committedoffset", name="offsets_committed_by_topic"),
    ]
