-- name: queue_table
-- The queue exists from when Celery first used it; never with another broker.
select to_regclass('pgmq.q_kcoord')

-- name: queued_tasks
-- Those that no worker has taken. PGMQ's function, because a statement that names the table cannot be prepared without.
select queue_visible_length from pgmq.metrics('kcoord')

-- name: task_failures
select name, value
from kcoord_counter
where starts_with(name, %(prefix)s)
order by name
