-- name: lock_journal_days
-- If two processes maintain the days at the same time, one does nothing.
select pg_try_advisory_lock(hashtextextended('kcoord.journal_days', 0))

-- name: unlock_journal_days
select pg_advisory_unlock(hashtextextended('kcoord.journal_days', 0))

-- name: set_timeouts
-- For the transaction only.
select set_config('lock_timeout', %(lock)s, true), set_config('statement_timeout', %(statement)s, true)

-- name: journal_tables
-- Tables named like a day, and whether they are part of the journal: one may have been taken out by hand.
select c.relname, i.inhparent is not null
from pg_class c
left join pg_inherits i on i.inhrelid = c.oid and i.inhparent = 'offset_commit_log'::regclass
where c.relnamespace = (select relnamespace from pg_class where oid = 'offset_commit_log'::regclass)
  and c.relkind in ('r', 'p') and starts_with(c.relname, 'offset_commit_log_')

-- name: days_in_default
select distinct div(at, 86400000)::bigint from offset_commit_log_default

-- name: default_bytes
select pg_relation_size('offset_commit_log_default')

-- name: trim_default
-- Oldest first: a concurrent reader of the journal sees all lines since one instant.
delete from offset_commit_log_default
where ctid = any(array(select ctid from offset_commit_log_default where at < %(before)s order by at limit %(limit)s))

-- name: shut_days
-- Days that an interrupted run left closed to new lines.
select conname
from pg_constraint
where conrelid = 'offset_commit_log_default'::regclass and contype = 'c' and starts_with(conname, 'shut_')
