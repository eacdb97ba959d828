"""The groups of a topic, for its page. Neither column ever changes, so updates of a row stay within its page."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("offsets", "0015_plans_by_time")]
    operations = [
        migrations.AddIndex(
            model_name="topiclag", index=models.Index(fields=["topic", "group"], name="offsets_topiclag_by_topic")
        ),
    ]
