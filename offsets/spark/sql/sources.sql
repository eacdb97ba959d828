-- name: journal
-- {table} is one leaf of offset_commit_log: a lock of the parent would block creating and dropping days.
select ctid as block, id, at, xact_id, kind, group_name, topic, partition, committed_offset, leader_epoch, metadata,
       expire_timestamp, member_id, generation_id, client_id, principal, transactional_id, plan_id::text as plan_id
from {table}

-- name: offsets
select o.ctid as block, g.group_id as group_name, o.topic, o.partition, o.committed_offset, o.leader_epoch, o.metadata,
       o.commit_timestamp, o.expire_timestamp, o.member_id, o.generation_id, o.record_offset
from {table} o
join groups_group g on g.id = o.group_id

-- name: pending_offsets
select o.ctid as block, g.group_id as group_name, o.topic, o.partition, o.producer_id, o.committed_offset,
       o.leader_epoch, o.metadata, o.commit_timestamp, o.opened_at, o.record_offset, o.member_id, o.generation_id
from {table} o
join groups_group g on g.id = o.group_id

-- name: topics
select ctid as block, id as topic_key, name as topic, topic_id::text as topic_id, partitions, created_at
from {table}

-- name: deleted_topics
select ctid as block, topic, deleted_at, record_offset, swept
from {table}

-- name: watermarks
select w.ctid as block, t.name as topic, w.topic_id as topic_key, w.partition, w.log_start_offset, w.log_end_offset,
       w.sampled_at
from {table} w
join groups_topic t on t.id = w.topic_id

-- name: samples
-- Watermarks over time. A deleted topic has no name, and maintenance removes its samples soon.
select s.ctid as block, t.name as topic, s.topic_id as topic_key, s.partition, s.at, s.until, s.log_start_offset,
       s.log_end_offset
from {table} s
left join groups_topic t on t.id = s.topic_id

-- name: lag_samples
select ctid as block, group_name, topic, at, lag, time_lag_ms
from {table}

-- name: events
select ctid as block, id, group_name, at, kind, generation_id, member_id, detail::text as detail
from {table}

-- name: groups
select ctid as block, id as group_key, group_id as group_name, type, state, state_since, generation_id,
       assignment_epoch, protocol_type, protocol_name, held_until, version, created_at, updated_at
from {table}

-- name: members
select m.ctid as block, g.group_id as group_name, m.member_id, m.instance_id, m.client_id, m.client_host,
       m.session_deadline, m.last_heartbeat_at
from {table} m
join groups_group g on g.id = m.group_id

-- name: consumer_members
select m.ctid as block, g.group_id as group_name, m.member_id, m.instance_id, m.client_id, m.client_host,
       m.member_epoch, m.previous_member_epoch, m.state, m.session_deadline
from {table} m
join groups_group g on g.id = m.group_id

-- name: assignments
select a.ctid as block, g.group_id as group_name, a.topic_id, a.topic, a.partition, a.member_id, a.generation_id,
       a.pending
from {table} a
join groups_group g on g.id = a.group_id

-- name: share_partitions
select p.ctid as block, g.group_id as group_name, t.name as topic, p.partition, p.next_offset
from {table} p
join groups_group g on g.id = p.group_id
join groups_topic t on t.topic_id = p.topic_id

-- name: share_locks
select h.ctid as block, g.group_id as group_name, t.name as topic, p.partition, lower(r) as first, upper(r) as after
from {table} h
join offsets_sharepartition p on p.id = h.share_partition_id
join groups_group g on g.id = p.group_id
join groups_topic t on t.topic_id = p.topic_id
cross join lateral unnest(h.held) r

-- name: share_retries
select h.ctid as block, g.group_id as group_name, t.name as topic, p.partition, lower(r) as first, upper(r) as after
from {table} h
join offsets_sharepartition p on p.id = h.share_partition_id
join groups_group g on g.id = p.group_id
join groups_topic t on t.topic_id = p.topic_id
cross join lateral unnest(h.held) r

-- name: share_dead
select h.ctid as block, g.group_id as group_name, t.name as topic, p.partition, h."offset" as first, h."offset" + 1 as after
from {table} h
join offsets_sharepartition p on p.id = h.share_partition_id
join groups_group g on g.id = p.group_id
join groups_topic t on t.topic_id = p.topic_id
