"""The functions of schema `kcoord`, in files that begin with the number of their migration."""

from pathlib import Path

from django.db import migrations
from psycopg import sql


def executed(*names):
    """An operation that executes files of this folder, by name, for the schema that the tables are in."""

    def execute(apps, schema_editor):
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(
                "select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace"
                " where c.oid = 'groups_group'::regclass"
            )
            (schema,) = cursor.fetchone()
            for name in names:
                text = (Path(__file__).parent / name).read_text(encoding="utf-8")
                cursor.execute(sql.SQL(text).format(schema=sql.Identifier(schema)))

    return migrations.RunPython(execute)
