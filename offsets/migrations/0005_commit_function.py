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
    """Create the functions for the schema that the tables are in.

    Not the current schema: for a role that is called kcoord, schema kcoord comes first.
    """
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(
            "select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace"
            " where c.oid = 'groups_group'::regclass"
        )
        (schema,) = cursor.fetchone()
        for file in FILES:
            cursor.execute(sql.SQL(file.read_text(encoding="utf-8")).format(schema=sql.Identifier(schema)))


def drop(apps, schema_editor):
    """Drop them."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(DROP)


class Migration(migrations.Migration):
    dependencies = [("offsets", "0004_life"), ("groups", "0006_holds")]
    operations = [migrations.RunPython(create, drop)]
