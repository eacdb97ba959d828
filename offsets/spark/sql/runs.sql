-- name: lock_kind
-- Held by the session of the run: when it dies, the lock is released.
select pg_try_advisory_lock(hashtextextended('kcoord.spark.' || %(kind)s, 0))

-- name: unlock_kinds
select pg_advisory_unlock_all()

-- name: running
select id::text, started_at, host, pid from offsets_sparkrun
where kind = %(kind)s and state = 'running'
order by started_at desc
limit 1

-- name: mark_lost
-- We hold the lock of the kind, so no run that is marked as running is alive.
update offsets_sparkrun
set state = 'lost', ended_at = (extract(epoch from clock_timestamp()) * 1000)::bigint,
    error = 'the process of the run ended without recording a result'
where kind = %(kind)s and state = 'running'

-- name: start_run
-- A run requested over the API already has its row.
insert into offsets_sparkrun (id, kind, state, parameters, requested_at, requested_by, started_at, heartbeat_at, host,
                              pid, log_path, stage, slices_done, slices_total, system_identifier, archive_path,
                              archive_id, manifest_sha256, error)
select %(id)s, %(kind)s, 'running', %(parameters)s, now.ms, %(requested_by)s, now.ms, now.ms, %(host)s, %(pid)s,
       %(log_path)s, 'starting', 0, 0, '', '', '', '', ''
from (select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms) now
on conflict (id) do update
set state = 'running', started_at = excluded.started_at, heartbeat_at = excluded.heartbeat_at, host = excluded.host,
    pid = excluded.pid, stage = excluded.stage,
    log_path = case when excluded.log_path = '' then offsets_sparkrun.log_path else excluded.log_path end
where offsets_sparkrun.state = 'requested' and offsets_sparkrun.kind = excluded.kind
returning id

-- name: record_run
-- In the audit: a run that a command of this machine began.
select kcoord_audit_append(null, 'local', %(requested_by)s::text, '', %(host)s::text, '', 'command', 'run.start', 'run',
                           %(id)s::uuid::text, null, '{"kind":' || to_json(%(kind)s::text) || ',"state":"running"}', '',
                           'done', '', 1)

-- name: beat
update offsets_sparkrun
set heartbeat_at = (extract(epoch from clock_timestamp()) * 1000)::bigint, stage = %(stage)s,
    slices_done = %(done)s, slices_total = %(total)s
where id = %(id)s and state = 'running'
returning cancel_requested_at is not null

-- name: end_run
update offsets_sparkrun
set state = %(state)s, ended_at = (extract(epoch from clock_timestamp()) * 1000)::bigint, stage = %(stage)s,
    rows = %(rows)s, files = %(files)s, bytes = %(bytes)s, findings = %(findings)s, result = %(result)s,
    error = %(error)s
where id = %(id)s and state = 'running'

-- name: knows_run
select exists (select from offsets_sparkrun where id = %(id)s)

-- name: has_recorded
select exists (
    select from offsets_sparkrun
    where id = %(id)s and archive_id = %(archive_id)s and manifest >= %(manifest)s
)

-- name: recorded_sha256
select manifest_sha256 from offsets_sparkrun
where id = %(id)s and archive_id = %(archive_id)s and manifest = %(manifest)s

-- name: record_publication
update offsets_sparkrun
set bound = %(bound)s, system_identifier = %(system_identifier)s, timeline = %(timeline)s,
    archive_path = %(archive_path)s, archive_id = %(archive_id)s, manifest = %(manifest)s,
    manifest_sha256 = %(sha256)s
where id = %(id)s

-- name: forget_days
-- Another database takes the archive over: what was covered for the previous one does not apply to this journal.
update offsets_archivedday set counts = false where counts

-- name: record_day
insert into offsets_archivedday (run_id, manifest, day, archive_id, system_identifier, timeline, rows, checksum, counts)
values (%(id)s, %(manifest)s, %(day)s, %(archive_id)s, %(system_identifier)s, %(timeline)s, %(rows)s, %(checksum)s,
        true)
on conflict (run_id, manifest, day) do nothing
