"""The index of what was not committed leaves out settled items, which are as frequent as commits.

A server of 0.2.0 then finds resets and deletions by the index of the group until it is replaced: slower, and the same.
Nothing is locked for long: indexes of partitions are built concurrently. It may be run again after it was interrupted.
"""

from django.db import migrations
from psycopg import sql

PARENT = """
create index if not exists offset_commit_log_others on only offset_commit_log (group_name, at, id)
    where kind not in ('commit', 'txn_commit', 'items_done')
"""
WITHOUT_IT = """
select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
where i.inhparent = 'offset_commit_log'::regclass
  and not exists (select from pg_inherits a join pg_index x on x.indexrelid = a.inhrelid
                  where a.inhparent = 'offset_commit_log_others'::regclass and x.indrelid = c.oid)
order by 1
"""
BUILD = """
create index concurrently {index} on {partition} (group_name, at, id)
    where kind not in ('commit', 'txn_commit', 'items_done')
"""


def replace_index(apps, schema_editor):
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("select pg_get_indexdef(to_regclass('offset_commit_log_changes')) like '%items_done%'")
        if cursor.fetchone()[0]:
            return
        cursor.execute(PARENT)
        cursor.execute(WITHOUT_IT)
        for (name,) in cursor.fetchall():
            named = {"index": sql.Identifier(f"{name}_others"), "partition": sql.Identifier(name)}
            cursor.execute(sql.SQL("drop index if exists {index}").format(**named))  # of a run that was interrupted
            cursor.execute(sql.SQL(BUILD).format(**named))
            cursor.execute(sql.SQL("alter index offset_commit_log_others attach partition {index}").format(**named))
        cursor.execute("drop index if exists offset_commit_log_changes")
        cursor.execute("alter index offset_commit_log_others rename to offset_commit_log_changes")


class Migration(migrations.Migration):

    atomic = False

    dependencies = [("offsets", "0006_share_items")]

    operations = [migrations.RunPython(replace_index)]
