"""The audit reads what people did over all groups by time; few events are of that kind, so the index stays small."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("groups", "0015_kafka_brokers")]
    operations = [
        migrations.AddIndex(
            model_name="event",
            index=models.Index(
                fields=["at", "id"],
                name="groups_event_of_people",
                condition=models.Q(detail__has_key="principal") | models.Q(kind="group_deleted"),
            ),
        ),
    ]
