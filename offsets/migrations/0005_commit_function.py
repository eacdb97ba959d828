"""Schema `kcoord`: offsets committed inside a transaction of the caller's own. See docs/sinks.md.

The functions stand in the files `sql/0005_*.sql`. Like the migration they do not change once they are released: another
version of a function is another migration.
"""

from pathlib import Path

from django.db import migrations
from psycopg import sql

FILES = sorted(Path(__file__).with_name("sql").glob("0005_*.sql"))

DROP = """
drop function kcoord.commit_offsets, kcoord.fetch_offsets, kcoord.write_offsets, kcoord.check_metadata,
              kcoord.check_partitions, kcoord.make_group, kcoord.lock_group, kcoord.had_since,
              kcoord.check_consumer_commit, kcoord.check_classic_commit, kcoord.classic_member, kcoord.require_unheld,
              kcoord.check_identity, kcoord.read_offsets, kcoord.offset_at, kcoord.integer_at, kcoord.refuse,
              kcoord.offset_metadata_max_bytes;
drop type kcoord.offsets_to_commit;
drop schema kcoord;
"""


def create(apps, schema_editor):
    """Create the functions for the schema that the tables are in."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(
            "select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace"
            " where c.oid = 'groups_group'::regclass"
        )
        (schema,) = cursor.fetchone()
        for file in FILES:
            cursor.execute(sql.SQL(file.read_text(encoding="utf-8")).format(schema=sql.Identifier(schema)))
        stay_in(cursor, schema)


def stay_in(cursor, schema):
    """Let this role go on to make its tables where they are.

    By default a role looks first into the schema of its own name, and a role that is called kcoord has one now.
    """
    cursor.execute("select current_schema(), current_database(), current_user")
    current, database, role = cursor.fetchone()
    if current != schema:
        pin = "alter role {role} in database {database} set search_path = {schema}; set search_path = {schema}"
        names = {"role": role, "database": database, "schema": schema}
        cursor.execute(sql.SQL(pin).format(**{key: sql.Identifier(name) for key, name in names.items()}))


def drop(apps, schema_editor):
    """Drop them."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(DROP)


class Migration(migrations.Migration):
    dependencies = [("offsets", "0004_life"), ("groups", "0006_holds")]
    operations = [migrations.RunPython(create, drop)]
