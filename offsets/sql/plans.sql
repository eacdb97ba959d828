-- name: plan_committed
-- What the group has committed, with the log beside it: the scope of a plan that names no topics.
select o.topic, o.partition, coalesce(o.partition < t.partitions, false) as "exists", o.committed_offset,
       o.leader_epoch, o.metadata, o.commit_timestamp, o.expire_timestamp, o.record_offset, w.log_start_offset,
       w.log_end_offset
from groups_group g
join offsets_committedoffset o on o.group_id = g.id
left join groups_topic t on t.name = o.topic
left join lateral (select * from groups_watermark where topic_id = t.id and partition = o.partition limit 1) w on true
where g.group_id = %(group_id)s and (o.topic, o.partition) > (%(after_topic)s, %(after_partition)s)
order by o.topic, o.partition
limit %(limit)s

-- name: plan_begun
-- The same of a share group: what is committed is the first offset that is not finished.
select t.name as topic, p.partition, p.partition < t.partitions as "exists", behind.start_offset as committed_offset,
       -1 as leader_epoch, '' as metadata, 0::bigint as commit_timestamp, null::bigint as expire_timestamp,
       kcoord.share_state(p.id) as record_offset,
       case when ends.last is not null then coalesce(w.log_start_offset, 0) end as log_start_offset,
       ends.last as log_end_offset
from groups_group g
join offsets_sharepartition p on p.group_id = g.id
join groups_topic t on t.topic_id = p.topic_id
-- include: share_lag
where g.group_id = %(group_id)s and (t.name, p.partition) > (%(after_topic)s, %(after_partition)s)
order by t.name, p.partition
limit %(limit)s

-- name: plan_begun_named
-- The same for partitions that are named, whether or not they exist or are begun.
select n.topic, n.partition, coalesce(n.partition between 0 and t.partitions - 1, false) as "exists",
       behind.start_offset as committed_offset, -1 as leader_epoch, '' as metadata, 0::bigint as commit_timestamp,
       null::bigint as expire_timestamp, kcoord.share_state(p.id) as record_offset,
       case when ends.last is not null then coalesce(w.log_start_offset, 0) end as log_start_offset,
       ends.last as log_end_offset
from unnest(%(topic)s::text[], %(partition)s::int[]) as n (topic, partition)
left join groups_topic t on t.name = n.topic
left join groups_group g on g.group_id = %(group_id)s
cross join lateral (
    select b.id, n.partition, b.next_offset, coalesce(b.end_offset, 0) as end_offset
    from (values (0)) one
    left join offsets_sharepartition b
         on b.group_id = g.id and b.topic_id = t.topic_id and b.partition = n.partition) p
-- include: share_lag
order by n.topic, n.partition

-- name: plan_named
-- The same for partitions that are named, whether or not they exist or have anything committed. One look into each key
-- for each of them: a join would be planned by statistics, which do not yet cover a new group.
select n.topic, n.partition, coalesce(n.partition between 0 and t.partitions - 1, false) as "exists",
       o.committed_offset, o.leader_epoch, o.metadata, o.commit_timestamp, o.expire_timestamp, o.record_offset,
       w.log_start_offset, w.log_end_offset
from unnest(%(topic)s::text[], %(partition)s::int[]) as n (topic, partition)
left join groups_topic t on t.name = n.topic
left join groups_group g on g.group_id = %(group_id)s
left join lateral (
    select log_start_offset, log_end_offset from groups_watermark
    where topic_id = t.id and partition = n.partition
    limit 1
) w on true
left join lateral (
    select committed_offset, leader_epoch, metadata, commit_timestamp, expire_timestamp, record_offset
    from offsets_committedoffset
    where group_id = g.id and topic = n.topic and partition = n.partition
    limit 1
) o on true
order by n.topic, n.partition

-- name: journal_topics
-- Steps through the index from topic to topic: a group has few topics and very many lines. The full order of the index
-- is written out so that no other index can be chosen.
with recursive found as (
    (select topic from offset_commit_log
     where group_name = %(group_id)s
     order by topic, partition, at, id
     limit 1)
    union all
    select (select log.topic from offset_commit_log log
            where log.group_name = %(group_id)s and log.topic > found.topic
            order by log.topic, log.partition, log.at, log.id
            limit 1)
    from found
    where found.topic is not null
)
select topic from found where topic is not null

-- name: journal_at
-- The last line of each partition up to `until`, as far as it is not before `since`. It is the nearest line in the
-- order of the index by partition, if that is of the same partition at all: asked this way no other index is ever
-- cheaper, whatever the statistics of a new group are. The bound of `at` only leaves out tables of earlier days; where
-- `since` is the start of a day, no line that is looked at fails it.
select n.topic, n.partition, last.committed_offset
from unnest(%(topic)s::text[], %(partition)s::int[]) as n (topic, partition)
cross join lateral (
    select log.group_name, log.topic, log.partition, log.committed_offset
    from offset_commit_log log
    where (log.group_name, log.topic, log.partition, log.at) <= (%(group_id)s, n.topic, n.partition, %(until)s::bigint)
      and log.at >= %(since)s::bigint
    order by log.group_name desc, log.topic desc, log.partition desc, log.at desc, log.id desc
    limit 1
) last
where last.group_name = %(group_id)s and last.topic = n.topic and last.partition = n.partition

-- name: journal_since
-- Which partitions have a line after an instant: only partitions without one are unchanged since. Written like
-- `journal_at`; `day` is the start of the day of that instant.
select n.topic, n.partition
from unnest(%(topic)s::text[], %(partition)s::int[]) as n (topic, partition)
cross join lateral (
    select log.group_name, log.topic, log.partition
    from offset_commit_log log
    where (log.group_name, log.topic, log.partition, log.at) > (%(group_id)s, n.topic, n.partition, %(after)s::bigint)
      and log.at >= %(day)s::bigint
    order by log.group_name, log.topic, log.partition, log.at, log.id
    limit 1
) next
where next.group_name = %(group_id)s and next.topic = n.topic and next.partition = n.partition

-- name: insert_plan
insert into offsets_offsetplan (id, group_name, strategy, parameters, totals, state, reason, created_at, created_by,
                                maker)
values (%(id)s, %(group_id)s, %(strategy)s, %(parameters)s, %(totals)s, 'planned', %(reason)s, %(now)s, %(principal)s,
        %(maker)s)

-- name: insert_plan_lines
insert into offsets_plannedoffset (plan_id, topic, partition, old_offset, old_leader_epoch, old_metadata,
                                   old_commit_timestamp, old_expire_timestamp, old_record_offset, requested_offset,
                                   new_offset, log_start_offset, log_end_offset, note)
select %(id)s, l.*
from unnest(%(topic)s::text[], %(partition)s::int[], %(old_offset)s::bigint[], %(old_leader_epoch)s::int[],
            %(old_metadata)s::text[], %(old_commit_timestamp)s::bigint[], %(old_expire_timestamp)s::bigint[],
            %(old_record_offset)s::bigint[], %(requested_offset)s::bigint[], %(new_offset)s::bigint[],
            %(log_start_offset)s::bigint[], %(log_end_offset)s::bigint[], %(note)s::text[]) l

-- fragment: plan
-- A `offsets.core.plan_types.PlanHeader`.
select p.id::text as id, p.group_name as group_id, p.strategy, p.parameters, p.totals, p.state, p.reason, p.created_at,
       p.created_by, p.maker, p.approved_at, p.approved_by, p.applied_at, p.applied_by, p.undone_at, p.undone_by
from offsets_offsetplan p

-- name: read_plan
-- include: plan
where p.id = %(id)s and p.group_name = %(group_id)s

-- name: list_plans
-- include: plan
where p.group_name = %(group_id)s
  and (%(before)s::bigint is null or (p.created_at, p.id) < (%(before)s::bigint, %(before_id)s::uuid))
order by p.created_at desc, p.id desc
limit %(limit)s

-- name: plan_topics
-- Steps through the key from topic to topic: a plan has few topics and possibly very many lines.
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

-- name: plan_lines_page
select topic, partition, old_offset, old_leader_epoch as leader_epoch, old_metadata as metadata,
       old_commit_timestamp as commit_timestamp, old_expire_timestamp as expire_timestamp,
       old_record_offset as record_offset, requested_offset, new_offset, log_start_offset, log_end_offset, note
from offsets_plannedoffset
where plan_id = %(id)s
  and (topic, partition) > (%(after_topic)s, %(after_partition)s)
  and (not %(risky)s::bool or new_offset is null and old_offset is not null
       or new_offset < log_start_offset or new_offset > log_end_offset)
  and kcoord_sees(topic, %(visible_names)s, %(visible_prefixes)s, %(visible_denied)s, %(visible_denied_prefixes)s)
order by topic, partition
limit %(limit)s

-- name: seen_totals
-- The totals of the lines on some topics only, as in `offsets.core.plan.totals`: a test compares them.
select plan_id, count(*) as partitions, count(*) filter (where old_offset is distinct from new_offset) as changed,
       count(*) filter (where requested_offset is distinct from new_offset) as clamped,
       count(*) filter (where new_offset is null and old_offset is not null) as removed,
       count(*) filter (where new_offset is null and old_offset is not null and note = %(unknown)s) as unknown,
       count(*) filter (where new_offset < log_start_offset or new_offset > log_end_offset) as outside,
       kcoord_bigint(sum(greatest(log_end_offset - greatest(new_offset, log_start_offset), 0)
           - greatest(log_end_offset - greatest(old_offset, log_start_offset), 0))
           filter (where log_end_offset is not null and new_offset is not null and old_offset is not null))
           as lag_change
from offsets_plannedoffset
where plan_id = any(%(ids)s::uuid[])
  and kcoord_sees(topic, %(visible_names)s, %(visible_prefixes)s, %(visible_denied)s, %(visible_denied_prefixes)s)
group by plan_id

-- name: group_key
select id from groups_group where group_id = %(group_id)s

-- name: lock_plan
-- Taken while the group's lock is held, never the other way round.
select state from offsets_offsetplan where id = %(id)s for update

-- name: approve_plan
-- The first approval counts; a row comes back only for it.
update offsets_offsetplan
set approved_at = %(now)s, approved_by = %(principal)s
where id = %(id)s and state = 'planned' and approved_at is null
returning approved_at

-- name: moved_since_planned
-- One key lookup per line: see `plan_named`. The group is locked meanwhile.
select l.topic, l.partition
from offsets_plannedoffset l
left join lateral (
    select record_offset from offsets_committedoffset
    where group_id = %(group)s and topic = l.topic and partition = l.partition
    limit 1
) o on true
where l.plan_id = %(id)s and o.record_offset is distinct from l.old_record_offset
order by l.topic, l.partition
limit %(limit)s

-- name: items_moved
-- Partitions of a share group to whose items something happened since the plan was made, or `applied`.
select l.topic, l.partition
from offsets_plannedoffset l
where l.plan_id = %(id)s
  and (select kcoord.share_state(p.id)
       from offsets_sharepartition p
       join groups_topic t on t.topic_id = p.topic_id
       where p.group_id = %(group)s and t.name = l.topic and p.partition = l.partition)
      is distinct from case when %(applied)s then l.applied_record_offset else l.old_record_offset end
order by l.topic, l.partition
limit %(limit)s

-- name: apply_share_plan
select kcoord.share_apply_plan(%(id)s, %(group)s, %(rules)s::text::kcoord.share_rules, %(now)s)

-- name: undo_share_plan
select kcoord.share_undo_plan(%(id)s, %(group)s, %(now)s)

-- name: note_applied_items
update offsets_plannedoffset l
set applied_record_offset = (
    select kcoord.share_state(p.id)
    from offsets_sharepartition p
    join groups_topic t on t.topic_id = p.topic_id
    where p.group_id = %(group)s and t.name = l.topic and p.partition = l.partition
)
where l.plan_id = %(id)s

-- name: moved_since_applied
-- A partition whose offset the plan removed looks the same if a later commit was removed again: the journal tells the
-- two apart.
select l.topic, l.partition
from offsets_offsetplan p
join offsets_plannedoffset l on l.plan_id = p.id
left join lateral (
    select record_offset from offsets_committedoffset
    where group_id = %(group)s and topic = l.topic and partition = l.partition
    limit 1
) o on true
where p.id = %(id)s
  and (o.record_offset is distinct from l.applied_record_offset
       or l.applied_record_offset is null and exists (
           select from offset_commit_log taken
           join offset_commit_log later
                on later.group_name = taken.group_name and later.topic = taken.topic
                   and later.partition = taken.partition and later.at >= p.applied_at and later.id > taken.id
           where taken.group_name = p.group_name and taken.topic = l.topic and taken.partition = l.partition
             and taken.at >= p.applied_at and taken.plan_id = p.id))
order by l.topic, l.partition
limit %(limit)s

-- name: topics_gone
select n.topic
from unnest(%(topics)s::text[]) as n (topic)
left join groups_topic t on t.name = n.topic
where t.name is null or t.created_at > %(since)s
order by n.topic

-- name: pending_on_plan
select distinct p.topic, p.partition
from offsets_pendingoffset p
cross join lateral (
    select from offsets_plannedoffset
    where plan_id = %(id)s and topic = p.topic and partition = p.partition
    limit 1
) l
where p.group_id = %(group)s
order by p.topic, p.partition
limit %(limit)s

-- name: note_applied_offsets
update offsets_plannedoffset l
set applied_record_offset = (
    select o.record_offset from offsets_committedoffset o
    where o.group_id = %(group)s and o.topic = l.topic and o.partition = l.partition
)
where l.plan_id = %(id)s

-- name: plan_applied
update offsets_offsetplan
set state = 'applied', applied_at = %(now)s, applied_by = %(principal)s
where id = %(id)s

-- name: plan_undone
update offsets_offsetplan
set state = 'undone', undone_at = %(now)s, undone_by = %(principal)s
where id = %(id)s

-- name: lock_expired_plan
-- The one idle longest, unless it is in use.
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
