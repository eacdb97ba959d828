-- name: limit_session
-- Versions before 17 do not know the last one.
select set_config('statement_timeout', %(statement)s, false),
       set_config('idle_in_transaction_session_timeout', %(idle)s, false),
       set_config('lock_timeout', %(lock)s, false),
       case when current_setting('server_version_num')::int >= 170000
            then set_config('transaction_timeout', %(transaction)s, false) end

-- name: limit_statements
select set_config('statement_timeout', %(timeout)s, false)

-- name: lift_transaction_limit
select set_config('transaction_timeout', '0', true)

-- name: limit_idle_transaction
select set_config('idle_in_transaction_session_timeout', %(timeout)s, true)

-- name: limit_lock_wait
select set_config('lock_timeout', %(timeout)s, true)

-- name: end_stuck_sessions
-- A client that neither sends nor reads: it has written (backend_xid) and been silent for long within a
-- transaction. Postgres itself ends it only while it waits for a message that begins a new statement.
select a.pid, a.wait_event, pg_terminate_backend(a.pid)
  from pg_stat_activity a
 where a.datname = current_database()
   and a.usename = current_user
   and a.application_name in ('kcoord', 'kcoord-node')
   and a.pid <> pg_backend_pid()
   and a.backend_xid is not null
   and a.wait_event_type = 'Client'
   and a.state_change < clock_timestamp() - %(limit_ms)s * interval '1 millisecond'

-- name: waits_for_standby
-- Statement and transaction timeouts do not end this wait.
select coalesce(bool_or(wait_event = 'SyncRep'), false) from pg_stat_activity where pid = %(pid)s

-- name: cancel_session
-- The commit is then complete on this server.
select pg_cancel_backend(%(pid)s)

-- name: write_nothing
-- A record in the log of Postgres that nothing reads: the commit waits for what other commits wait for.
select pg_logical_emit_message(true, 'kcoord', '')

-- name: read_origin
-- The name of a log file begins with the timeline. No timeline for a standby: it accepts no writes.
select (select system_identifier from pg_control_system()),
       case when not pg_is_in_recovery()
            then ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int end
