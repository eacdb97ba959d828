from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("offsets", "0011_time_lag_at_least")]

    operations = [
        migrations.AddField(
            model_name="topiclag",
            name="time_lag_at_least_ms",
            field=models.BigIntegerField(
                help_text="If time_lag_ms is not known: it is at least this. Null: nothing is known.", null=True
            ),
        ),
        migrations.AddField(
            model_name="topictotal",
            name="time_lag_at_least_ms",
            field=models.BigIntegerField(
                help_text="If time_lag_ms is not known of each group: the largest is at least this.", null=True
            ),
        ),
    ]
