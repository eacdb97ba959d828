-- name: plan_committed
-- What the group has committed, with the log beside it: the scope of a plan that names no topics.
select o.topic, o.partition, coalesce(o.partition < t.partitions, false), o.committed_offset, o.leader_epoch,
       o.metadata, o.commit_timestamp, o.expire_timestamp, o.record_offset, w.log_start_offset, w.log_end_offset
from groups_group g
join offsets_committedoffset o on o.group_id = g.id
left join groups_topic t on t.name = o.topic
left join groups_watermark w on w.topic_id = t.id and w.partition = o.partition
where g.group_id = %(group_id)s
order by o.topic, o.partition
limit %(limit)s

-- name: plan_named
-- The same for partitions that are named, whether or not they exist or have anything committed.
select n.topic, n.partition, coalesce(n.partition between 0 and t.partitions - 1, false), o.committed_offset,
       o.leader_epoch, o.metadata, o.commit_timestamp, o.expire_timestamp, o.record_offset, w.log_start_offset,
       w.log_end_offset
from unnest(%(topic)s::text[], %(partition)s::int[]) as n (topic, partition)
left join groups_topic t on t.name = n.topic
left join groups_watermark w on w.topic_id = t.id and w.partition = n.partition
left join groups_group g on g.group_id = %(group_id)s
left join offsets_committedoffset o on o.group_id = g.id and o.topic = n.topic and o.partition = n.partition
order by n.topic, n.partition

-- name: journal_topics
-- Steps through the index from topic to topic: a group has few topics and very many lines.
with recursive found as (
    (select topic from offset_commit_log where group_name = %(group_id)s order by topic limit 1)
    union all
    select (select log.topic from offset_commit_log log
            where log.group_name = %(group_id)s and log.topic > found.topic
            order by log.topic limit 1)
    from found
    where found.topic is not null
)
select topic from found where topic is not null

-- name: journal_at
-- The last line of each partition in a span of time. The bounds leave only the days of the span to be looked at.
select n.topic, n.partition, last.committed_offset
from unnest(%(topic)s::text[], %(partition)s::int[]) as n (topic, partition)
cross join lateral (
    select log.committed_offset
    from offset_commit_log log
    where log.group_name = %(group_id)s and log.topic = n.topic and log.partition = n.partition
      and log.at > %(after)s and log.at <= %(until)s
    order by log.at desc, log.id desc
    limit 1
) last

-- name: journal_since
-- Which partitions have a line after an instant: only what has none stands as it stood then.
select n.topic, n.partition
from unnest(%(topic)s::text[], %(partition)s::int[]) as n (topic, partition)
where exists (
    select from offset_commit_log log
    where log.group_name = %(group_id)s and log.topic = n.topic and log.partition = n.partition
      and log.at > %(after)s
)

-- name: insert_plan
insert into offsets_offsetplan (id, group_name, strategy, parameters, totals, state, reason, created_at, created_by)
values (%(id)s, %(group_id)s, %(strategy)s, %(parameters)s, %(totals)s, 'planned', %(reason)s, %(now)s, %(principal)s)

-- name: insert_plan_lines
insert into offsets_plannedoffset (plan_id, topic, partition, old_offset, old_leader_epoch, old_metadata,
                                   old_commit_timestamp, old_expire_timestamp, old_record_offset, requested_offset,
                                   new_offset, log_start_offset, log_end_offset, note)
select %(id)s, l.*
from unnest(%(topic)s::text[], %(partition)s::int[], %(old_offset)s::bigint[], %(old_leader_epoch)s::int[],
            %(old_metadata)s::text[], %(old_commit_timestamp)s::bigint[], %(old_expire_timestamp)s::bigint[],
            %(old_record_offset)s::bigint[], %(requested_offset)s::bigint[], %(new_offset)s::bigint[],
            %(log_start_offset)s::bigint[], %(log_end_offset)s::bigint[], %(note)s::text[]) l

-- name: read_plan
select id, group_name, strategy, parameters, totals, state, reason, created_at, created_by, applied_at, applied_by,
       undone_at, undone_by
from offsets_offsetplan
where id = %(id)s and group_name = %(group_id)s

-- name: list_plans
select id, group_name, strategy, parameters, totals, state, reason, created_at, created_by, applied_at, applied_by,
       undone_at, undone_by
from offsets_offsetplan
where group_name = %(group_id)s
  and (%(before)s::bigint is null or (created_at, id) < (%(before)s::bigint, %(before_id)s::uuid))
order by created_at desc, id desc
limit %(limit)s

-- name: plan_topics
-- Steps through the key from topic to topic: a plan has few topics and perhaps very many lines.
with recursive found as (
    (select topic from offsets_plannedoffset where plan_id = %(id)s order by topic limit 1)
    union all
    select (select line.topic from offsets_plannedoffset line
            where line.plan_id = %(id)s and line.topic > found.topic
            order by line.topic limit 1)
    from found
    where found.topic is not null
)
select topic from found where topic is not null

-- name: plan_lines
select topic, partition, old_offset, old_leader_epoch, old_metadata, old_commit_timestamp, old_expire_timestamp,
       old_record_offset, requested_offset, new_offset, log_start_offset, log_end_offset, note
from offsets_plannedoffset
where plan_id = %(id)s
order by topic, partition

-- name: plan_lines_page
select topic, partition, old_offset, old_leader_epoch, old_metadata, old_commit_timestamp, old_expire_timestamp,
       old_record_offset, requested_offset, new_offset, log_start_offset, log_end_offset, note
from offsets_plannedoffset
where plan_id = %(id)s
  and (topic, partition) > (%(after_topic)s, %(after_partition)s)
  and (topic = any(%(visible_names)s::text[])
       or exists (select from unnest(%(visible_prefixes)s::text[]) prefix where starts_with(topic, prefix)))
order by topic, partition
limit %(limit)s

-- name: group_key
select id from groups_group where group_id = %(group_id)s

-- name: lock_plan
-- Taken while the group's lock is held, never the other way round.
select state from offsets_offsetplan where id = %(id)s for update

-- name: moved_since_planned
select l.topic, l.partition
from offsets_plannedoffset l
left join offsets_committedoffset o on o.group_id = %(group)s and o.topic = l.topic and o.partition = l.partition
where l.plan_id = %(id)s and o.record_offset is distinct from l.old_record_offset
order by l.topic, l.partition
limit %(limit)s

-- name: moved_since_applied
select l.topic, l.partition
from offsets_plannedoffset l
left join offsets_committedoffset o on o.group_id = %(group)s and o.topic = l.topic and o.partition = l.partition
where l.plan_id = %(id)s and o.record_offset is distinct from l.applied_record_offset
order by l.topic, l.partition
limit %(limit)s

-- name: pending_on_plan
select distinct l.topic, l.partition
from offsets_pendingoffset p
join offsets_plannedoffset l on l.plan_id = %(id)s and l.topic = p.topic and l.partition = p.partition
where p.group_id = %(group)s
order by l.topic, l.partition
limit %(limit)s

-- name: note_applied_offsets
update offsets_plannedoffset l
set applied_record_offset = o.record_offset
from offsets_committedoffset o
where l.plan_id = %(id)s and o.group_id = %(group)s and o.topic = l.topic and o.partition = l.partition

-- name: plan_applied
update offsets_offsetplan
set state = 'applied', applied_at = %(now)s, applied_by = %(principal)s
where id = %(id)s

-- name: plan_undone
update offsets_offsetplan
set state = 'undone', undone_at = %(now)s, undone_by = %(principal)s
where id = %(id)s

-- name: lock_expired_plan
-- The one that rested longest, unless somebody works with it.
select id
from offsets_offsetplan
where coalesce(undone_at, applied_at, created_at) < %(before)s
order by coalesce(undone_at, applied_at, created_at)
limit 1
for update skip locked

-- name: delete_plan_lines
delete from offsets_plannedoffset where plan_id = %(id)s

-- name: delete_plan
delete from offsets_offsetplan where id = %(id)s
