"""Room for HOT updates on rows that change with every commit, and vacuum before they bloat.

A page that is filled to the given percentage leaves the new version of a row beside the old one; pages that are full
already get room as their rows move (`vacuum full` or `pg_repack` does it at once).
"""

from django.db import migrations

TABLES = {
    "offsets_committedoffset": {"fillfactor": 80, "autovacuum_vacuum_scale_factor": 0.05},
    "offsets_pendingoffset": {"fillfactor": 80, "autovacuum_vacuum_scale_factor": 0.05},
    "offsets_producer": {"fillfactor": 80, "autovacuum_vacuum_scale_factor": 0.05},
    "offsets_grouplag": {"fillfactor": 80, "autovacuum_vacuum_scale_factor": 0.05},
}
"""Table -> storage parameters."""


def set_parameters(table, parameters):
    """`alter table … set`, and back to the defaults."""
    values = ", ".join(f"{name} = {value}" for name, value in parameters.items())
    return migrations.RunSQL(
        f"alter table {table} set ({values})", f"alter table {table} reset ({', '.join(parameters)})"
    )


class Migration(migrations.Migration):
    dependencies = [("offsets", "0006_drawn_producer_ids")]
    operations = [set_parameters(table, parameters) for table, parameters in TABLES.items()]
