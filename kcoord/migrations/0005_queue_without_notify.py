"""Celery's queue is polled: nobody listens any more to the notifications that earlier releases switched on for it."""

from django.db import migrations

DISABLE = """
do $$
begin
    if to_regclass('pgmq.q_kcoord') is not null and to_regprocedure('pgmq.disable_notify_insert(text)') is not null then
        perform pgmq.disable_notify_insert('kcoord');
    end if;
end
$$
"""


class Migration(migrations.Migration):
    dependencies = [("kcoord", "0004_counter")]
    operations = [migrations.RunSQL(DISABLE, migrations.RunSQL.noop)]
