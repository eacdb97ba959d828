-- name: events_there
-- For the events of groups: id and instant (ms) of the first one kept, and the last id assigned.
select min(id), min(at), pg_sequence_last_value(pg_get_serial_sequence('groups_event', 'id')::regclass)
from groups_event

-- name: has_published
-- Whether any run published to the archive at a path.
select exists (select from offsets_sparkrun where archive_path = %(path)s and manifest is not null)

-- name: forget_findings
-- Findings of all but the newest runs.
delete from offsets_reconcilefinding
where run_id not in (
    select id from offsets_sparkrun where kind = 'reconcile' order by requested_at desc limit %(runs)s
)

-- name: store_finding
insert into offsets_reconcilefinding (run_id, number, kind, group_name, topic, partition, expected, found, evidence)
values (%(run)s, %(number)s, %(kind)s, %(group)s, %(topic)s, %(partition)s, %(expected)s, %(found)s, %(evidence)s)
