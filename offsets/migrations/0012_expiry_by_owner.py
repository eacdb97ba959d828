"""`kcoord.commit_offsets` takes an overdue member for gone only while somebody counts sessions. See docs/sinks.md."""

from pathlib import Path

from django.db import migrations
from psycopg import sql

FILE = Path(__file__).with_name("sql") / "0012_expiry.sql"


def replace(apps, schema_editor):
    """Replace the functions."""
    _run(schema_editor, FILE.read_text(encoding="utf-8"))


def restore(apps, schema_editor):
    """The functions as they were."""
    before = FILE.with_name("0005_2_fence.sql").read_text(encoding="utf-8")
    _run(schema_editor, before.replace("create function", "create or replace function"))
    _run(schema_editor, "drop function kcoord.may_expire")


def _run(schema_editor, statements):
    """For the schema that the tables are in."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(
            "select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace"
            " where c.oid = 'groups_group'::regclass"
        )
        (schema,) = cursor.fetchone()
        cursor.execute(sql.SQL(statements).format(schema=sql.Identifier(schema)))


class Migration(migrations.Migration):
    dependencies = [("offsets", "0011_latest_samples"), ("groups", "0013_coordinator_nodes")]
    operations = [migrations.RunPython(replace, restore)]
