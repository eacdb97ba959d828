"""What lists show and sort by without counting it: partitions of groups, and topics over all groups."""

from django.db import migrations, models

import kcoord.database.fields


class Migration(migrations.Migration):
    dependencies = [("offsets", "0016_lag_by_topic")]

    operations = [
        migrations.AddField(
            model_name="grouplag",
            name="partitions",
            field=models.IntegerField(
                help_text="That it owns or committed an offset on; null: sampled by a release without it.", null=True
            ),
        ),
        migrations.CreateModel(
            name="TopicTotal",
            fields=[
                ("topic", models.CharField(max_length=249, primary_key=True, serialize=False)),
                ("at", kcoord.database.fields.MillisField()),
                ("groups", models.IntegerField()),
                (
                    "lag",
                    models.BigIntegerField(
                        help_text="The sum over these groups; null: of none is it known.", null=True
                    ),
                ),
                (
                    "worst_group_id",
                    models.BigIntegerField(help_text="The key of the group that is furthest behind.", null=True),
                ),
                ("worst_lag", models.BigIntegerField(null=True)),
                (
                    "time_lag_ms",
                    models.BigIntegerField(help_text="Of the group that is furthest behind in time.", null=True),
                ),
            ],
            options={"abstract": False},
        ),
        migrations.RunSQL(
            "alter table offsets_topictotal set (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05)",
            "alter table offsets_topictotal reset (fillfactor, autovacuum_vacuum_scale_factor)",
        ),
    ]
