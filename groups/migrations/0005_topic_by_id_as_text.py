"""Topics are found by the ids that groups store, which are text: a catalogue of 100,000 was sorted each time."""

import django.db.models.functions.comparison
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('groups', '0004_no_index_twice'),
    ]

    operations = [
        migrations.AddConstraint(
            model_name='topic',
            constraint=models.UniqueConstraint(django.db.models.functions.comparison.Cast('topic_id', models.TextField()), name='groups_topic_by_id_as_text'),
        ),
    ]
