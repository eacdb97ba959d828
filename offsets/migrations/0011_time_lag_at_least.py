from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("offsets", "0010_alert_receivers")]

    operations = [
        migrations.AddField(
            model_name="grouplag",
            name="time_lag_at_least_ms",
            field=models.BigIntegerField(
                help_text="If time_lag_ms is not known: it is at least this. Null: nothing is known.", null=True
            ),
        ),
    ]
