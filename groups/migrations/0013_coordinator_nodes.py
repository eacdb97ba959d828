"""Coordinator nodes, the partitions they own, and of each group its partition.

Groups of an older release get their partition here; a server of that release that still runs writes groups without one,
which the next write of this release completes.
"""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import kcoord.database.fields
from groups.core.coordinator import partition_of

TABLES = {
    "groups_coordinatornode": {"fillfactor": 30, "autovacuum_vacuum_threshold": 500},
    "groups_coordinatorpartition": {"fillfactor": 50},
}
"""Table -> storage parameters: the first is written by every renewal of a lease."""

BATCH = 5_000

FILL = """
update groups_group g set partition = f.partition
from unnest(%s::bigint[], %s::int[]) as f (id, partition)
where g.id = f.id
"""


def fill_partitions(apps, schema_editor):
    """Compute the partition of every group."""
    partitions = settings.KCOORD.int("offsets.topic.num.partitions")
    with schema_editor.connection.cursor() as cursor:
        last = 0
        while True:
            cursor.execute("select id, group_id from groups_group where id > %s order by id limit %s", [last, BATCH])
            rows = cursor.fetchall()
            if not rows:
                return
            last = rows[-1][0]
            cursor.execute(FILL, [[pk for pk, _ in rows], [partition_of(name, partitions) for _, name in rows]])


def set_parameters(table, parameters):
    """`alter table … set`, and back to the defaults."""
    values = ", ".join(f"{name} = {value}" for name, value in parameters.items())
    return migrations.RunSQL(
        f"alter table {table} set ({values})", f"alter table {table} reset ({', '.join(parameters)})"
    )


class Migration(migrations.Migration):
    dependencies = [
        ("groups", "0012_smaller_events"),
    ]

    operations = [
        migrations.AddField(
            model_name="group",
            name="armed_gap",
            field=models.BigIntegerField(
                db_default=0,
                help_text="The gap of the partition under which the deadlines count (CoordinatorPartition).",
            ),
        ),
        migrations.AddField(
            model_name="group",
            name="partition",
            field=models.IntegerField(
                help_text="The coordinator partition; null: not known to what made the group.", null=True
            ),
        ),
        migrations.CreateModel(
            name="CoordinatorNode",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "node_id",
                    models.CharField(help_text="The server's name; it keeps it over restarts.", max_length=255),
                ),
                (
                    "url",
                    models.CharField(blank=True, help_text="Where clients reach it; empty: unknown.", max_length=500),
                ),
                ("version", models.CharField(max_length=50)),
                ("started_at", kcoord.database.fields.MillisField()),
                ("renewed_at", kcoord.database.fields.MillisField()),
                (
                    "expires_at",
                    kcoord.database.fields.MillisField(
                        help_text="When its lease runs out. A lease that has run out is not renewed."
                    ),
                ),
                ("ended_at", kcoord.database.fields.MillisField(null=True)),
                (
                    "end_reason",
                    models.CharField(
                        choices=[("stopped", "Stopped"), ("lapsed", "Lapsed")],
                        max_length=16,
                        null=True,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at__isnull", True)),
                        fields=("node_id",),
                        name="groups_coordinatornode_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at__isnull", True), models.Q(("url", ""), _negated=True)),
                        fields=("url",),
                        name="groups_coordinatornode_url_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="CoordinatorPartition",
            fields=[
                ("partition", models.IntegerField(primary_key=True, serialize=False)),
                ("epoch", models.BigIntegerField(default=0, help_text="Grows with every change of the owner.")),
                (
                    "gap",
                    models.BigIntegerField(
                        default=0,
                        help_text="Grows when sessions could not be counted: groups with a smaller armed_gap start over.",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("LOADING", "Loading"), ("ACTIVE", "Active"), ("CLOSED", "Closed")], max_length=16
                    ),
                ),
                ("state_since", kcoord.database.fields.MillisField()),
                ("active_since", kcoord.database.fields.MillisField(null=True)),
                ("load_ms", models.BigIntegerField(help_text="How long the last loading took.", null=True)),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="partitions",
                        to="groups.coordinatornode",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="PartitionChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", kcoord.database.fields.MillisField()),
                ("partition", models.IntegerField()),
                ("epoch", models.BigIntegerField()),
                ("gap", models.BigIntegerField()),
                ("from_node", models.CharField(blank=True, help_text="Empty: nobody owned it.", max_length=255)),
                ("to_node", models.CharField(blank=True, help_text="Empty: nobody owns it.", max_length=255)),
                (
                    "reason",
                    models.CharField(
                        choices=[
                            ("taken", "Taken"),
                            ("lapsed", "Lapsed"),
                            ("stopped", "Stopped"),
                            ("balanced", "Balanced"),
                        ],
                        max_length=16,
                    ),
                ),
                ("gap_ms", models.BigIntegerField(help_text="How long nobody owned it; null: not at all.", null=True)),
            ],
            options={
                "indexes": [
                    models.Index(models.OrderBy(models.F("at"), descending=True), name="groups_partitionchange_by_age")
                ],
            },
        ),
        *(set_parameters(table, parameters) for table, parameters in TABLES.items()),
        migrations.RunPython(fill_partitions, migrations.RunPython.noop),
    ]
