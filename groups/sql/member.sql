-- name: load_members
-- Of one group or many. By id: rows keep the order of arrival.
select group_id, member_id, instance_id, client_id, client_host, session_timeout_ms, rebalance_timeout_ms, protocol_type,
       protocol_names, protocol_metadata, assignment, is_new, join_parked_until, sync_parked_until, pending_sync,
       session_deadline, last_heartbeat_at
from groups_member
where group_id = any(%(ids)s::bigint[])
order by id

-- name: load_sessions
select group_id, member_id, session_deadline, last_heartbeat_at
from groups_member
where group_id = any(%(ids)s::bigint[])

-- name: load_pending
select group_id, member_id, deadline
from groups_pendingmember
where group_id = any(%(ids)s::bigint[])
order by id

-- name: upsert_members
-- Many members of some groups at once, in order of arrival.
insert into groups_member (group_id, member_id, instance_id, client_id, client_host, session_timeout_ms,
                           rebalance_timeout_ms, protocol_type, protocol_names, protocol_metadata, assignment, is_new,
                           join_parked_until, sync_parked_until, pending_sync, session_deadline, last_heartbeat_at)
select group_id, member_id, instance_id, client_id, client_host, session_timeout_ms, rebalance_timeout_ms, protocol_type,
       protocol_names::text[], protocol_metadata::bytea[], assignment, is_new, join_parked_until, sync_parked_until,
       pending_sync, session_deadline, last_heartbeat_at
from unnest(%(id)s::bigint[], %(member_id)s::text[], %(instance_id)s::text[], %(client_id)s::text[],
            %(client_host)s::text[], %(session_timeout_ms)s::bigint[], %(rebalance_timeout_ms)s::bigint[], %(protocol_type)s::text[],
            %(protocol_names)s::text[], %(protocol_metadata)s::text[], %(assignment)s::bytea[], %(is_new)s::bool[],
            %(join_parked_until)s::bigint[], %(sync_parked_until)s::bigint[], %(pending_sync)s::bool[],
            %(session_deadline)s::bigint[], %(last_heartbeat_at)s::bigint[]) with ordinality
     as c (group_id, member_id, instance_id, client_id, client_host, session_timeout_ms, rebalance_timeout_ms,
           protocol_type, protocol_names, protocol_metadata, assignment, is_new, join_parked_until, sync_parked_until, pending_sync,
           session_deadline, last_heartbeat_at, position)
order by position
on conflict (group_id, member_id) do update
set instance_id = excluded.instance_id, client_id = excluded.client_id, client_host = excluded.client_host,
    session_timeout_ms = excluded.session_timeout_ms, rebalance_timeout_ms = excluded.rebalance_timeout_ms,
    protocol_type = excluded.protocol_type, protocol_names = excluded.protocol_names,
    protocol_metadata = excluded.protocol_metadata, assignment = excluded.assignment, is_new = excluded.is_new,
    join_parked_until = excluded.join_parked_until, sync_parked_until = excluded.sync_parked_until,
    pending_sync = excluded.pending_sync,
    session_deadline = case when (excluded.group_id, excluded.member_id) in (
                                 select * from unnest(%(renewed_id)s::bigint[], %(renewed)s::text[]))
                            then excluded.session_deadline else groups_member.session_deadline end,
    last_heartbeat_at = case when (excluded.group_id, excluded.member_id) in (
                                  select * from unnest(%(renewed_id)s::bigint[], %(renewed)s::text[]))
                             then excluded.last_heartbeat_at else groups_member.last_heartbeat_at end

-- name: update_member_progress
-- The small columns of many members at once: what a completed join, a sync or a heartbeat changes. A null
-- assignment leaves the stored one in place, and a session that was not renewed may have been extended since it was read.
update groups_member m
set is_new = c.is_new, join_parked_until = c.join_parked_until, sync_parked_until = c.sync_parked_until,
    pending_sync = c.pending_sync,
    session_deadline = case when c.is_renewed then c.session_deadline else m.session_deadline end,
    last_heartbeat_at = case when c.is_renewed then c.last_heartbeat_at else m.last_heartbeat_at end,
    assignment = coalesce(c.assignment, m.assignment)
from unnest(%(id)s::bigint[], %(member_id)s::text[], %(is_new)s::bool[], %(join_parked_until)s::bigint[],
            %(sync_parked_until)s::bigint[], %(pending_sync)s::bool[], %(session_deadline)s::bigint[],
            %(last_heartbeat_at)s::bigint[], %(assignment)s::bytea[], %(is_renewed)s::bool[])
     as c (group_id, member_id, is_new, join_parked_until, sync_parked_until, pending_sync, session_deadline, last_heartbeat_at,
           assignment, is_renewed)
where m.group_id = c.group_id and m.member_id = c.member_id

-- name: delete_members
delete from groups_member m
using unnest(%(id)s::bigint[], %(member_id)s::text[]) as d (group_id, member_id)
where m.group_id = d.group_id and m.member_id = d.member_id

-- name: upsert_pending
insert into groups_pendingmember (group_id, member_id, deadline)
select group_id, member_id, deadline
from unnest(%(id)s::bigint[], %(member_id)s::text[], %(deadline)s::bigint[])
     with ordinality as p (group_id, member_id, deadline, position)
order by position
on conflict (group_id, member_id) do update set deadline = excluded.deadline

-- name: delete_pending
delete from groups_pendingmember m
using unnest(%(id)s::bigint[], %(member_id)s::text[]) as d (group_id, member_id)
where m.group_id = d.group_id and m.member_id = d.member_id

-- name: delete_assignments
-- Asked this way only the index by owner is cheap: with two equal keys Postgres takes any index that begins with the group,
-- and reads all of it for each member.
delete from groups_assignment
where ctid = any(array(
    select a.ctid
    from unnest(%(id)s::bigint[], %(member_id)s::text[]) as d (group_id, member_id)
    cross join lateral (
        select ctid
        from groups_assignment
        where group_id = d.group_id and member_id between d.member_id and d.member_id
        order by member_id, topic, partition) a))

-- name: insert_assignments
-- A partition that a leader assigned to two members keeps its first owner; returns the rows of the others.
-- The classic protocol identifies topics by name only: the name replaces the id.
insert into groups_assignment (group_id, topic_id, topic, partition, member_id, generation_id, pending)
select group_id, topic, topic, partition, member_id, generation_id, false
from unnest(%(id)s::bigint[], %(generation_id)s::int[], %(topic)s::text[], %(partition)s::int[], %(member_id)s::text[])
     as a (group_id, generation_id, topic, partition, member_id)
on conflict (group_id, topic_id, partition) do nothing
