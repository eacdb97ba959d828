"""Room for HOT updates on rows that change with every tick or request, and vacuum before they bloat.

A page that is filled to the given percentage leaves the new version of a row beside the old one; pages that are full
already get room as their rows move (`vacuum full` or `pg_repack` does it at once).
"""

from django.db import migrations

TABLES = {
    "kcoord_timerheartbeat": {"fillfactor": 10, "autovacuum_vacuum_threshold": 500},
    "kcoord_counter": {"fillfactor": 50, "autovacuum_vacuum_threshold": 500},
    "kcoord_apitoken": {"fillfactor": 80},
}
"""Table -> storage parameters."""


def set_parameters(table, parameters):
    """`alter table … set`, and back to the defaults."""
    values = ", ".join(f"{name} = {value}" for name, value in parameters.items())
    return migrations.RunSQL(
        f"alter table {table} set ({values})", f"alter table {table} reset ({', '.join(parameters)})"
    )


class Migration(migrations.Migration):
    dependencies = [("kcoord", "0005_queue_without_notify")]
    operations = [set_parameters(table, parameters) for table, parameters in TABLES.items()]
