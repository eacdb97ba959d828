"""What happens to items of share groups is in the journal."""

from pathlib import Path

from django.db import migrations, models
from psycopg import sql

FUNCTIONS = Path(__file__).parent / "sql" / "0007_share_journal.sql"


def create_functions(apps, schema_editor):
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

    dependencies = [("offsets", "0006_share_items")]

    operations = [migrations.RunPython(create_functions)]
