-- name: end_stuck_listeners
-- A process that is frozen reads nothing. Once its socket is full its backend waits to write: from then on CREATE and
-- DROP DATABASE hang, and the queue of notifications is not trimmed, in the whole cluster. A live listener runs this
-- statement every ten seconds. A terminated one reconnects when its process continues.
with stuck as materialized (
    select pid
    from pg_stat_activity
    where application_name = 'kcoord-listener' and datname = current_database() and usename = current_user
          and wait_event = 'ClientWrite' and state_change < clock_timestamp() - interval '30 seconds')
select pid
from stuck
where pg_terminate_backend(pid)
