-- name: day_in_journal
-- Rows of a day, in its own partition and in the default one, and the sum of their hashes. The same hash is computed of
-- the published files: see `row_hash` in offsets/spark/archive/jobs.py.
select count(*) as rows,
       coalesce(sum(('x' || substr(encode(sha256(convert_to(concat_ws(',',
           coalesce(length(id::text) || ':' || id, '-'),
           coalesce(length(at::text) || ':' || at, '-'),
           coalesce(length(xact_id::text) || ':' || xact_id, '-'),
           coalesce(length(kind) || ':' || kind, '-'),
           coalesce(length(group_name) || ':' || group_name, '-'),
           coalesce(length(topic) || ':' || topic, '-'),
           coalesce(length(partition::text) || ':' || partition, '-'),
           coalesce(length(committed_offset::text) || ':' || committed_offset, '-'),
           coalesce(length(leader_epoch::text) || ':' || leader_epoch, '-'),
           coalesce(length(metadata) || ':' || metadata, '-'),
           coalesce(length(expire_timestamp::text) || ':' || expire_timestamp, '-'),
           coalesce(length(member_id) || ':' || member_id, '-'),
           coalesce(length(generation_id::text) || ':' || generation_id, '-'),
           coalesce(length(client_id) || ':' || client_id, '-'),
           coalesce(length(principal) || ':' || principal, '-'),
           coalesce(length(transactional_id) || ':' || transactional_id, '-'),
           coalesce(length(plan_id::text) || ':' || plan_id, '-')
       ), 'UTF8')), 'hex'), 1, 15))::bit(60)::bigint), 0) as checksum
from offset_commit_log
where at >= %(first)s and at < %(after)s

-- name: day_in_archive
-- What published runs record about the day, if they read this cluster on this timeline. Timelines change when a standby
-- takes over: the next run then reads all rows again.
select coalesce(sum(rows), 0)::bigint as rows, coalesce(sum(checksum), 0) as checksum
from offsets_archivedday
where counts and day = %(day)s and archive_id = %(archive_id)s
  and system_identifier = (select system_identifier from pg_control_system())::text
  and timeline = ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int

-- name: newest_publication
select archive_id, manifest, manifest_sha256 as sha256
from offsets_sparkrun
where archive_path = %(path)s and manifest is not null
order by started_at desc
limit 1

-- name: forget_archived_day
-- Its rows are gone from the journal. A late row is archived by a later run, and counted separately.
update offsets_archivedday set counts = false where counts and day = %(day)s

-- name: trim_day
delete from offset_commit_log_default where at >= %(first)s and at < %(after)s
