"""A report that would let a log end earlier is kept beside the watermark, with who sent it."""

from django.db import migrations, models

import kcoord.database.fields


class Migration(migrations.Migration):

    dependencies = [("groups", "0001_initial")]

    operations = [
        migrations.AddField("watermark", "lower_end_offset", models.BigIntegerField(null=True)),
        migrations.AddField("watermark", "lower_at", kcoord.database.fields.MillisField(null=True)),
        migrations.AddField("watermark", "lower_by", models.CharField(db_default="", default="", max_length=255)),
    ]
