"""The list of all plans, newest first."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("offsets", "0014_verdicts")]
    operations = [
        migrations.AddIndex(
            model_name="offsetplan", index=models.Index(fields=["created_at", "id"], name="offsets_plan_by_time")
        ),
    ]
