"""The index of what a member owns leads to its topics by name: pages read the first of many."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("groups", "0010_hot_rows")]
    operations = [
        migrations.AddIndex(
            model_name="assignment",
            index=models.Index(fields=["group", "member_id", "topic", "partition"], name="groups_assignment_by_owner"),
        ),
        migrations.RemoveIndex(model_name="assignment", name="groups_assignment_by_member"),
    ]
