"""Two indexes of events instead of three, and the one by group in the order in which events come.

In descending order each event was inserted in front of the others of its group, which left pages half empty. Old events
are found by their ids, which are given in the order of time.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("groups", "0011_assignment_by_owner")]
    operations = [
        migrations.AddIndex(
            model_name="event", index=models.Index(fields=["group_name", "id"], name="groups_event_of_group")
        ),
        migrations.RemoveIndex(model_name="event", name="groups_event_by_group"),
        migrations.RemoveIndex(model_name="event", name="groups_event_by_time"),
    ]
