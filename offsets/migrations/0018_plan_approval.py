"""Who answers for a plan, and who approved it."""

from django.db import migrations, models

import kcoord.database.fields


class Migration(migrations.Migration):
    dependencies = [("offsets", "0017_totals_of_lists")]

    operations = [
        migrations.AddField(
            model_name="offsetplan",
            name="maker",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Who answers for it: an account, or a token without owner.",
                max_length=64,
            ),
        ),
        migrations.AddField(
            model_name="offsetplan", name="approved_at", field=kcoord.database.fields.MillisField(null=True)
        ),
        migrations.AddField(
            model_name="offsetplan", name="approved_by", field=models.CharField(max_length=255, null=True)
        ),
    ]
