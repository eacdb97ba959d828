-- name: insert_consumer_group
insert into groups_group (group_id, type, state, previous_state, state_since, generation_id, protocol_type,
                          new_member_added, assignment_epoch, assignment_timestamp, metadata_hash, metadata_version,
                          resolution, jobs, wake_at, held_until, held_by, hold_reason, partition, armed_gap, version,
                          version_tag, created_at, updated_at)
values (%(group_id)s, %(type)s, %(state)s, '', %(state_since)s, %(generation_id)s, %(type)s, false,
        %(assignment_epoch)s, %(assignment_timestamp)s, %(metadata_hash)s, %(metadata_version)s, %(resolution)s,
        %(jobs)s, %(wake_at)s, %(held_until)s, %(held_by)s, %(hold_reason)s, %(partition)s,
        %(armed_gap)s, 1, %(version_tag)s, %(now)s, %(now)s)
on conflict (group_id) do nothing
returning id

-- name: update_consumer_group
-- Also used when a classic group is converted: its protocol is dropped, its offsets stay.
update groups_group
set type = %(type)s, state = %(state)s, previous_state = '', state_since = %(state_since)s,
    generation_id = %(generation_id)s, protocol_type = %(type)s, protocol_name = null, leader_id = null,
    new_member_added = false, join_deadline = null, join_delay_ms = null, join_remaining_ms = null,
    sync_deadline = null, assignment_epoch = %(assignment_epoch)s, assignment_timestamp = %(assignment_timestamp)s,
    metadata_hash = %(metadata_hash)s, metadata_version = %(metadata_version)s,
    resolution = case when %(resolution_stays)s then resolution else %(resolution)s end, jobs = %(jobs)s,
    held_until = %(held_until)s, held_by = %(held_by)s, hold_reason = %(hold_reason)s,
    partition = %(partition)s, armed_gap = %(armed_gap)s,
    wake_at = %(wake_at)s, version = version + 1, version_tag = %(version_tag)s, updated_at = %(now)s
where id = %(id)s

-- name: load_consumer_members
select group_id, member_id, instance_id, rack_id, client_id, client_host, rebalance_timeout_ms, subscribed_topic_names,
       subscribed_topic_regex, server_assignor, classic_session_timeout_ms, classic_protocol_names,
       classic_protocol_metadata, member_epoch, previous_member_epoch, state,
       case when %(targets)s then target else '{}' end as target, id, session_deadline, session_armed_at, rebalance_deadline,
       rebalance_armed_at, join_deadline, join_armed_at, sync_deadline, sync_armed_at, topic_rights,
       case when %(targets)s then assigned when assigned is not null then '{}' end as assigned
from groups_consumermember
where group_id = any(%(ids)s::bigint[])

-- name: load_consumer_sessions
select member_id, session_deadline, session_armed_at
from groups_consumermember
where group_id = %(id)s

-- name: load_resolution
-- Apart from the header, which every heartbeat reads: it names each topic that a regular expression matches.
select id, resolution
from groups_group
where id = any(%(ids)s::bigint[])

-- name: load_ownership
select group_id, topic_id, partition, member_id, generation_id, pending
from groups_assignment
where group_id = any(%(ids)s::bigint[])

-- name: upsert_consumer_member
insert into groups_consumermember (group_id, member_id, instance_id, rack_id, client_id, client_host,
                                   rebalance_timeout_ms, subscribed_topic_names, subscribed_topic_regex,
                                   topic_rights, server_assignor, classic_session_timeout_ms, classic_protocol_names,
                                   classic_protocol_metadata, member_epoch, previous_member_epoch, state, target,
                                   assigned)
values (%(id)s, %(member_id)s, %(instance_id)s, %(rack_id)s, %(client_id)s, %(client_host)s,
        %(rebalance_timeout_ms)s, %(subscribed_topic_names)s, %(subscribed_topic_regex)s, %(topic_rights)s,
        %(server_assignor)s,
        %(classic_session_timeout_ms)s, %(classic_protocol_names)s, %(classic_protocol_metadata)s, %(member_epoch)s,
        %(previous_member_epoch)s, %(state)s, %(target)s, %(assigned)s)
on conflict (group_id, member_id) do update
set instance_id = excluded.instance_id, rack_id = excluded.rack_id, client_id = excluded.client_id,
    client_host = excluded.client_host, rebalance_timeout_ms = excluded.rebalance_timeout_ms,
    subscribed_topic_names = excluded.subscribed_topic_names,
    subscribed_topic_regex = excluded.subscribed_topic_regex, topic_rights = excluded.topic_rights,
    server_assignor = excluded.server_assignor,
    classic_session_timeout_ms = excluded.classic_session_timeout_ms,
    classic_protocol_names = excluded.classic_protocol_names,
    classic_protocol_metadata = excluded.classic_protocol_metadata, member_epoch = excluded.member_epoch,
    previous_member_epoch = excluded.previous_member_epoch, state = excluded.state, target = excluded.target,
    assigned = excluded.assigned

-- name: update_consumer_steps
-- Members of which only the progress changed: their subscription and target stay.
update groups_consumermember m
set member_epoch = c.member_epoch, previous_member_epoch = c.previous_member_epoch, state = c.state,
    assigned = c.assigned
from unnest(%(member_id)s::text[], %(member_epoch)s::int[], %(previous_member_epoch)s::int[], %(state)s::smallint[],
            %(assigned)s::jsonb[])
     as c (member_id, member_epoch, previous_member_epoch, state, assigned)
where m.group_id = %(id)s and m.member_id = c.member_id

-- name: update_consumer_timers
-- A session that was not renewed may have been extended since it was read.
update groups_consumermember m
set session_deadline = case when c.is_renewed then c.session_deadline else m.session_deadline end,
    session_armed_at = case when c.is_renewed then c.session_armed_at else m.session_armed_at end,
    rebalance_deadline = c.rebalance_deadline, rebalance_armed_at = c.rebalance_armed_at,
    join_deadline = c.join_deadline, join_armed_at = c.join_armed_at,
    sync_deadline = c.sync_deadline, sync_armed_at = c.sync_armed_at
from unnest(%(member_id)s::text[], %(session_deadline)s::bigint[], %(session_armed_at)s::bigint[],
            %(rebalance_deadline)s::bigint[], %(rebalance_armed_at)s::bigint[], %(join_deadline)s::bigint[],
            %(join_armed_at)s::bigint[], %(sync_deadline)s::bigint[], %(sync_armed_at)s::bigint[],
            %(is_renewed)s::bool[])
     as c (member_id, session_deadline, session_armed_at, rebalance_deadline, rebalance_armed_at, join_deadline,
           join_armed_at, sync_deadline, sync_armed_at, is_renewed)
where m.group_id = %(id)s and m.member_id = c.member_id

-- name: delete_consumer_members
delete from groups_consumermember
where group_id = %(id)s and member_id = any(%(member_id)s)

-- name: release_ownership
-- The names come back for `take_ownership`: a topic that is deleted meanwhile keeps its own on the way to be given up.
delete from groups_assignment a
using unnest(%(topic_id)s::text[], %(partition)s::int[]) as r (topic_id, partition)
where a.group_id = %(id)s and a.topic_id = r.topic_id and a.partition = r.partition
returning a.topic_id, a.topic

-- name: take_ownership
-- No `on conflict`: a second owner is refused by the primary key (invariant 1).
insert into groups_assignment (group_id, topic_id, topic, partition, member_id, generation_id, pending)
select %(id)s, t.topic_id, coalesce(n.name, t.name, t.topic_id), t.partition, t.member_id, t.epoch, t.pending
from unnest(%(topic_id)s::text[], %(name)s::text[], %(partition)s::int[], %(member_id)s::text[], %(epoch)s::int[],
            %(pending)s::bool[])
     as t (topic_id, name, partition, member_id, epoch, pending)
left join groups_topic n on n.topic_id::text = t.topic_id

-- name: delete_classic_children
with members as (delete from groups_member where group_id = %(id)s),
     pending as (delete from groups_pendingmember where group_id = %(id)s),
     topics as (delete from groups_generationtopics where group_id = %(id)s)
delete from groups_assignment
where group_id = %(id)s

-- name: delete_consumer_children
with members as (delete from groups_consumermember where group_id = %(id)s)
delete from groups_assignment
where group_id = %(id)s
