"""Indexes that other indexes of the table begin with are dropped, as in 0004 of groups."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("groups", "0004_no_index_twice"),
        ("offsets", "0012_time_lag_at_least_of_topics"),
    ]

    operations = [
        migrations.AlterField(
            model_name="pendingoffset",
            name="group",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="pending_offsets",
                to="groups.group",
            ),
        ),
        migrations.AlterField(
            model_name="pendingoffset",
            name="producer",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="pending",
                to="offsets.producer",
            ),
        ),
        migrations.AlterField(
            model_name="sharedead",
            name="share_partition",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="dead",
                to="offsets.sharepartition",
            ),
        ),
    ]
