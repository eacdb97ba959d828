"""Room for HOT updates on rows that change with every heartbeat, and vacuum before they bloat.

A page that is filled to the given percentage leaves the new version of a row beside the old one; pages that are full
already get room as their rows move (`vacuum full` or `pg_repack` does it at once).
"""

from django.db import migrations

import kcoord.database.fields

TABLES = {
    "groups_group": {"fillfactor": 70, "autovacuum_vacuum_scale_factor": 0.05, "autovacuum_analyze_scale_factor": 0.05},
    "groups_member": {"fillfactor": 70, "autovacuum_vacuum_scale_factor": 0.05},
    "groups_consumermember": {"fillfactor": 70, "autovacuum_vacuum_scale_factor": 0.05},
    "groups_assignment": {"autovacuum_vacuum_scale_factor": 0.05, "autovacuum_analyze_scale_factor": 0.05},
    "groups_watermark": {"fillfactor": 80, "autovacuum_vacuum_scale_factor": 0.05},
}
"""Table -> storage parameters."""


def set_parameters(table, parameters):
    """`alter table … set`, and back to the defaults."""
    values = ", ".join(f"{name} = {value}" for name, value in parameters.items())
    return migrations.RunSQL(
        f"alter table {table} set ({values})", f"alter table {table} reset ({', '.join(parameters)})"
    )


class Migration(migrations.Migration):
    dependencies = [("groups", "0009_rights_of_regexes")]
    operations = [
        *(set_parameters(table, parameters) for table, parameters in TABLES.items()),
        migrations.AlterField(
            model_name="group",
            name="wake_at",
            field=kcoord.database.fields.MillisField(
                help_text="When to look next: not after the earliest deadline of the group.", null=True
            ),
        ),
    ]
