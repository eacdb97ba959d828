-- name: held_spark_kinds
-- The time, and the kinds whose lock a run holds (see lock_kind of offsets.spark). Read before the runs themselves: a
-- run that ends in between is then told by its row, and one that begins in between by its first heartbeat.
select (extract(epoch from clock_timestamp()) * 1000)::bigint,
       array(
           select kinds.kind
           from (select kind, hashtextextended('kcoord.spark.' || kind, 0) as key
                 from unnest(%(kinds)s::text[]) kind) kinds
           where exists (
               select from pg_locks held
               where held.locktype = 'advisory' and held.granted and held.objsubid = 1
                 and held.database = (select oid from pg_database where datname = current_database())
                 and held.classid = ((kinds.key >> 32) & 4294967295)::oid
                 and held.objid = (kinds.key & 4294967295)::oid))

-- name: spark_runs
-- %(run_id)s: only this run. %(before_at)s and %(before_id)s: the edge of the page before.
select r.id::text as id, r.kind, r.state, r.parameters, r.requested_at, r.requested_by, r.started_at, r.ended_at,
       r.heartbeat_at, r.cancel_requested_at, r.host, r.pid, r.log_path, r.stage, r.slices_done, r.slices_total, r.rows,
       r.files, r.bytes, r.findings, r.bound, r.manifest, r.result, r.error,
       (select count(distinct day) from offsets_archivedday d where d.run_id = r.id) as days
from offsets_sparkrun r
where (%(run_id)s::uuid is null or r.id = %(run_id)s::uuid)
  and (%(kind)s::text is null or r.kind = %(kind)s)
  and (%(before_at)s::bigint is null or (r.requested_at, r.id) < (%(before_at)s::bigint, %(before_id)s::uuid))
order by r.requested_at desc, r.id desc
limit %(limit)s

-- name: lock_spark_request
-- Of two requests at the same instant one waits, and then sees the run of the other.
select pg_advisory_xact_lock(hashtextextended('kcoord.spark.request.' || %(kind)s, 0))

-- name: open_spark_runs
select id::text, state, requested_at, heartbeat_at
from offsets_sparkrun
where kind = %(kind)s and state in ('requested', 'running')

-- name: lose_spark_requests
-- Only runs that were requested and never began: a run that began is marked by the next one that takes its lock.
update offsets_sparkrun
set state = 'lost', ended_at = %(now)s, error = 'the process of the run did not begin'
where id = any(%(ids)s::uuid[]) and state = 'requested'

-- name: request_spark_run
insert into offsets_sparkrun (id, kind, state, parameters, requested_at, requested_by, host, log_path, stage, slices_done,
                              slices_total, system_identifier, archive_path, archive_id, manifest_sha256, error)
values (%(id)s, %(kind)s, 'requested', '{}', %(now)s, %(requested_by)s, %(host)s, %(log_path)s, '', 0, 0, '', '', '', '',
        '')

-- name: fail_spark_request
update offsets_sparkrun
set state = 'failed', ended_at = (extract(epoch from clock_timestamp()) * 1000)::bigint, error = %(error)s
where id = %(id)s and state = 'requested'

-- name: cancel_spark_run
-- A run that has begun sees it at its next heartbeat; one that has not finds its request withdrawn.
update offsets_sparkrun
set cancel_requested_at = coalesce(cancel_requested_at, now.ms),
    ended_at = case when state = 'requested' then now.ms end,
    state = case when state = 'requested' then 'cancelled' else state end
from (select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms) now
where id = %(id)s and state in ('requested', 'running')

-- name: newest_success
select id::text
from offsets_sparkrun
where kind = %(kind)s and state = 'succeeded'
order by requested_at desc, id desc
limit 1

-- name: reconcile_findings
select number, kind, group_name as group_id, topic, partition, expected, found, evidence
from offsets_reconcilefinding
where run_id = %(run_id)s and number > %(after)s
  and (%(kinds)s::text[] is null or kind = any(%(kinds)s))
  and (%(group)s::text is null or group_name = %(group)s)
  and kcoord_sees(group_name, %(group_names)s, %(group_prefixes)s, %(group_denied)s, %(group_denied_prefixes)s)
  and kcoord_sees(topic, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
order by number
limit %(limit)s

-- name: count_reconcile_findings
select kind, count(*)
from offsets_reconcilefinding
where run_id = %(run_id)s and (%(group)s::text is null or group_name = %(group)s)
  and kcoord_sees(group_name, %(group_names)s, %(group_prefixes)s, %(group_denied)s, %(group_denied_prefixes)s)
  and kcoord_sees(topic, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
group by kind
order by kind

-- name: findings_of_group
-- From the newest successful run of reconcile.
select run.id::text as run_id, run.ended_at,
       (select count(*) from offsets_reconcilefinding
        where run_id = run.id and group_name = %(group)s
          and kcoord_sees(group_name, %(group_names)s, %(group_prefixes)s, %(group_denied)s, %(group_denied_prefixes)s)
          and kcoord_sees(topic, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)) as count
from offsets_sparkrun run
where run.kind = 'reconcile' and run.state = 'succeeded'
order by run.requested_at desc, run.id desc
limit 1
