"""The index by topic ends with the group, as 0014 of offsets."""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("groups", "0005_topic_by_id_as_text"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="assignment",
            index=models.Index(fields=["topic", "partition", "group"], name="groups_assignment_of_topic"),
        ),
        RemoveIndexConcurrently(model_name="assignment", name="groups_assignment_by_topic"),
    ]
