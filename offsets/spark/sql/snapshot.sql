-- name: leaves
-- Tables that hold the rows of a table: itself, or its leaves if it is partitioned (only then is there a tree).
select l.relname, n.nspname, pg_relation_filenode(l.oid),
       (pg_relation_size(l.oid) / current_setting('block_size')::bigint)::bigint
from pg_class l
join pg_namespace n on n.oid = l.relnamespace
where l.relkind = 'r'
  and l.oid in (select relid from pg_partition_tree(%(table)s::regclass) union all select %(table)s::regclass)
order by l.relname

-- name: filenode
select pg_relation_filenode(to_regclass(%(table)s))

-- name: lock_journal
-- Before the snapshot is taken, so that no day can go between the two; LOCK TABLE itself takes none. Maintenance of a
-- day waits for its next run. All leaves are locked with it.
lock table offset_commit_log in access share mode

-- name: keep_snapshot
select set_config('idle_in_transaction_session_timeout', %(deadline)s, true)

-- name: export_snapshot
-- Transaction ids below the bound have all ended. The timeline is that of the log being written now; that of the
-- control file is older until the first checkpoint after a promotion.
select pg_export_snapshot() as id,
       pg_snapshot_xmin(pg_current_snapshot())::text::bigint as bound,
       (select system_identifier from pg_control_system())::text as system_identifier,
       ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int as timeline,
       (extract(epoch from clock_timestamp()) * 1000)::bigint as taken_at,
       coalesce((select sum(pg_relation_size(relid)) from pg_partition_tree('offset_commit_log') where isleaf), 0)::bigint
           as journal_bytes

-- name: use_snapshot
set transaction snapshot {snapshot}
