"""What tells two states of a group apart that have the same version: Postgres went back and was written again."""

import django.contrib.postgres.functions
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("groups", "0006_holds")]
    operations = [
        migrations.AddField(
            model_name="group",
            name="version_tag",
            field=models.UUIDField(
                db_default=django.contrib.postgres.functions.RandomUUID(),
                help_text="Random, drawn with each version: a count can come again after a restore.",
            ),
        ),
    ]
