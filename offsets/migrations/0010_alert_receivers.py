from django.db import migrations, models

from kcoord.database.fields import MillisField


class Migration(migrations.Migration):

    dependencies = [("offsets", "0009_journal_without_group_index")]

    operations = [
        migrations.CreateModel(
            name="AlertReceiver",
            fields=[
                ("name", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=64)),
                ("sealed", models.TextField(help_text="Its address, encrypted.")),
                ("updated_at", MillisField()),
                ("updated_by", models.CharField(max_length=255)),
            ],
            options={"abstract": False},
        )
    ]
