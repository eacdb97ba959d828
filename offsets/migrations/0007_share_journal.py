"""What happens to items of share groups is in the journal, and reconcile judges it."""

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

    operations = [
        migrations.AlterField(
            model_name='reconcilefinding',
            name='kind',
            field=models.CharField(choices=[('missing_in_view', 'Missing In View'), ('missing_in_journal', 'Missing In Journal'), ('surplus_in_view', 'Surplus In View'), ('other_offset', 'Other Offset'), ('other_metadata', 'Other Metadata'), ('rewind', 'Rewind'), ('beyond_log_end', 'Beyond Log End'), ('below_log_start', 'Below Log Start'), ('topic_gone', 'Topic Gone'), ('partition_gone', 'Partition Gone'), ('two_members', 'Two Members'), ('fenced_generation', 'Fenced Generation'), ('time_backwards', 'Time Backwards'), ('item_lost', 'Item Lost'), ('item_twice', 'Item Twice')], max_length=32),
        ),
        migrations.RunPython(create_functions),
    ]
