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
select group_id, member_id, session_deadline, session_armed_at
from groups_consumermember
where group_id = any(%(ids)s::bigint[])

-- name: load_resolution
-- Apart from the header, which every heartbeat reads: it names each topic that a regular expression matches.
select id, resolution
from groups_group
where id = any(%(ids)s::bigint[])

-- name: load_ownership
select group_id, topic_id, partition, member_id, generation_id, pending
from groups_assignment
where group_id = any(%(ids)s::bigint[])

-- name: upsert_consumer_members
insert into groups_consumermember (group_id, member_id, instance_id, rack_id, client_id, client_host,
                                   rebalance_timeout_ms, subscribed_topic_names, subscribed_topic_regex,
                                   topic_rights, server_assignor, classic_session_timeout_ms, classic_protocol_names,
                                   classic_protocol_metadata, member_epoch, previous_member_epoch, state, target,
                                   assigned)
select group_id, member_id, instance_id, rack_id, client_id, client_host, rebalance_timeout_ms, subscribed_topic_names,
       subscribed_topic_regex, topic_rights, server_assignor, classic_session_timeout_ms, classic_protocol_names,
       classic_protocol_metadata, member_epoch, previous_member_epoch, state, target, assigned
from json_populate_recordset(null::groups_consumermember, %(members)s::text::json)
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
from unnest(%(id)s::bigint[], %(member_id)s::text[], %(member_epoch)s::int[], %(previous_member_epoch)s::int[],
            %(state)s::smallint[], %(assigned)s::jsonb[])
     as c (group_id, member_id, member_epoch, previous_member_epoch, state, assigned)
where m.group_id = c.group_id and m.member_id = c.member_id

-- name: update_consumer_timers
-- A session that was not renewed may have been extended since it was read.
update groups_consumermember m
set session_deadline = case when c.is_renewed then c.session_deadline else m.session_deadline end,
    session_armed_at = case when c.is_renewed then c.session_armed_at else m.session_armed_at end,
    rebalance_deadline = c.rebalance_deadline, rebalance_armed_at = c.rebalance_armed_at,
    join_deadline = c.join_deadline, join_armed_at = c.join_armed_at,
    sync_deadline = c.sync_deadline, sync_armed_at = c.sync_armed_at
from unnest(%(id)s::bigint[], %(member_id)s::text[], %(session_deadline)s::bigint[], %(session_armed_at)s::bigint[],
            %(rebalance_deadline)s::bigint[], %(rebalance_armed_at)s::bigint[], %(join_deadline)s::bigint[],
            %(join_armed_at)s::bigint[], %(sync_deadline)s::bigint[], %(sync_armed_at)s::bigint[],
            %(is_renewed)s::bool[])
     as c (group_id, member_id, session_deadline, session_armed_at, rebalance_deadline, rebalance_armed_at,
           join_deadline, join_armed_at, sync_deadline, sync_armed_at, is_renewed)
where m.group_id = c.group_id and m.member_id = c.member_id

-- name: delete_consumer_members
delete from groups_consumermember m
using unnest(%(id)s::bigint[], %(member_id)s::text[]) as d (group_id, member_id)
where m.group_id = d.group_id and m.member_id = d.member_id

-- name: release_ownership
-- The names come back for `take_ownership`: a topic that is deleted meanwhile keeps its own on the way to be given up.
delete from groups_assignment a
using unnest(%(id)s::bigint[], %(topic_id)s::text[], %(partition)s::int[]) as r (group_id, topic_id, partition)
where a.group_id = r.group_id and a.topic_id = r.topic_id and a.partition = r.partition
returning a.topic_id, a.topic

-- name: take_ownership
-- No `on conflict`: a second owner is refused by the primary key (invariant 1).
insert into groups_assignment (group_id, topic_id, topic, partition, member_id, generation_id, pending)
select t.group_id, t.topic_id, coalesce(n.name, t.name, t.topic_id), t.partition, t.member_id, t.epoch, t.pending
from unnest(%(id)s::bigint[], %(topic_id)s::text[], %(name)s::text[], %(partition)s::int[], %(member_id)s::text[],
            %(epoch)s::int[], %(pending)s::bool[])
     as t (group_id, topic_id, name, partition, member_id, epoch, pending)
left join groups_topic n on n.topic_id::text = t.topic_id

-- name: delete_classic_children
with members as (delete from groups_member where group_id = any(%(ids)s::bigint[])),
     pending as (delete from groups_pendingmember where group_id = any(%(ids)s::bigint[])),
     topics as (delete from groups_generationtopics where group_id = any(%(ids)s::bigint[]))
delete from groups_assignment
where group_id = any(%(ids)s::bigint[])

-- name: delete_consumer_children
with members as (delete from groups_consumermember where group_id = any(%(ids)s::bigint[]))
delete from groups_assignment
where group_id = any(%(ids)s::bigint[])
