"""Resets of share groups are plans, which keep what they remove."""

from pathlib import Path

from django.db import migrations, models
from psycopg import sql

FUNCTIONS = Path(__file__).parent / "sql" / "0008_share_plans.sql"


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

    dependencies = [("offsets", "0007_share_journal")]

    operations = [
        migrations.AddField(
            model_name='plannedoffset',
            name='old_items',
            field=models.JSONField(help_text='Of a share group that was reset: where the partition was, and the items that went.', null=True),
        ),
        migrations.RunPython(create_functions),
    ]
