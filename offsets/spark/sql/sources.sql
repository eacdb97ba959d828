-- name: journal
-- {table} is one leaf of offset_commit_log: a lock of the parent would block creating and dropping days.
select ctid as block, id, at, xact_id, kind, group_name, topic, partition, committed_offset, leader_epoch, metadata,
       expire_timestamp, member_id, generation_id, client_id, principal, transactional_id, plan_id::text as plan_id
from {table}

-- name: offsets
-- With the topic and the log of each: what is not among the columns that are read is not joined either. `topic_deleted`:
-- offsets of a topic of this name are still being removed.
select o.ctid as block, g.group_id as group_name, o.topic, o.partition, o.committed_offset, o.leader_epoch, o.metadata,
       o.commit_timestamp, o.expire_timestamp, o.member_id, o.generation_id, o.record_offset,
       t.partitions as topic_partitions, t.created_at as topic_created_at,
       o.topic in (select topic from offsets_deletedtopic) as topic_deleted,
       w.log_start_offset, w.log_end_offset, w.sampled_at
from {table} o
join groups_group g on g.id = o.group_id
left join groups_topic t on t.name = o.topic
left join groups_watermark w on w.topic_id = t.id and w.partition = o.partition

-- name: topics
select ctid as block, id as topic_key, name as topic, topic_id::text as topic_id, partitions, created_at
from {table}

-- name: deleted_topics
select ctid as block, topic, deleted_at, record_offset, swept
from {table}

-- name: events
select ctid as block, id, group_name, at, kind, generation_id, member_id, detail::text as detail
from {table}

-- name: groups
-- `converted_at`: when an event last says that the group changed its protocol.
select g.ctid as block, g.group_id as group_name, g.type, g.created_at, c.converted_at
from {table} g
left join (
    select group_name, max(at) as converted_at from groups_event where kind = 'group_converted' group by group_name
) c on c.group_name = g.group_id

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
