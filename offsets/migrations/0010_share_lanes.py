"""Acquire and settle for many members at once.

What 0006 and 0007, which were never released, had of these functions is only here: a new database gets them once, and one
that has those migrations gets the new ones. A server of before has to be replaced: functions have other arguments.
"""

from pathlib import Path

from django.db import migrations
from psycopg import sql

FUNCTIONS = Path(__file__).parent / "sql" / "0010_share_lanes.sql"


def replace_functions(apps, schema_editor):
    """For the schema that the tables are in, as in 0001."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(
            "select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace"
            " where c.oid = 'groups_group'::regclass"
        )
        (schema,) = cursor.fetchone()
        text = FUNCTIONS.read_text(encoding="utf-8")
        cursor.execute(sql.SQL(text).format(schema=sql.Identifier(schema)))


class Migration(migrations.Migration):

    dependencies = [("offsets", "0008_share_plans")]

    operations = [migrations.RunPython(replace_functions)]
