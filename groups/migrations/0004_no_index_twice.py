"""Indexes that other indexes of the table begin with are dropped.

For one member of a large group Postgres took either, and with the one by group alone it read the whole group for each
member. A server of 0.2.0 finds its rows by the others.
"""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("groups", "0003_share_groups"),
    ]

    operations = [
        migrations.AlterField(
            model_name="assignment",
            name="group",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="assignments",
                to="groups.group",
            ),
        ),
        migrations.AlterField(
            model_name="consumermember",
            name="group",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="consumer_members",
                to="groups.group",
            ),
        ),
        migrations.AlterField(
            model_name="member",
            name="group",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="members",
                to="groups.group",
            ),
        ),
        migrations.AlterField(
            model_name="pendingmember",
            name="group",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="pending_members",
                to="groups.group",
            ),
        ),
        migrations.AlterField(
            model_name="watermark",
            name="topic",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="watermarks",
                to="groups.topic",
            ),
        ),
    ]
