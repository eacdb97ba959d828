-- Items of share groups. What may be done with them is in the functions (migrations/sql/0006_share_items.sql and
-- 0010_share_lanes.sql).

-- name: share_flight
-- Requests of many members: the group of each with its member, whose columns are null if there is no such group or
-- member. The locks that they settle are locked, but for those that other transactions hold.
with clock as materialized (
    select coalesce(%(override)s::bigint, t.ms) as now, t.ms as database_ms
    from (select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms) t
), locked as materialized (
    select l.id from offsets_sharelock l where l.id = any(%(locks)s::bigint[]) order by l.id for update skip locked
)
select clock.now, clock.database_ms,
       array(select l.id from offsets_sharelock l
             where l.id = any(%(locks)s::bigint[]) and l.id not in (select id from locked)) as elsewhere,
       g.id as pk, g.type, m.member_epoch, m.previous_member_epoch, m.assigned, m.session_deadline
from clock
cross join unnest(%(groups)s::text[], %(members)s::text[]) with ordinality r (group_id, member_id, number)
left join groups_group g on g.group_id = r.group_id
left join groups_consumermember m on m.group_id = g.id and m.member_id = r.member_id
order by r.number

-- name: acquire_items
select place, lock_id, topic_id, partition, held, delivery_count, until, last_error
from kcoord.share_acquire(%(group)s, %(members)s::text[], %(most)s::bigint[], %(lock_ms)s::bigint[], %(places)s::int[],
                          %(topics)s::uuid[], %(partitions)s::int[], %(ends)s::bigint[],
                          %(rules)s::text::kcoord.share_rules, %(now)s)

-- name: settle_items
-- Settlements of many members, one after the other.
select r.number, s.why, s.held_by, s.until
from unnest(%(groups)s::bigint[], %(members)s::text[], %(items)s::text[], %(rules)s::text[]) with ordinality
     r (group_key, member_id, items, rules, number)
cross join lateral kcoord.share_settle(r.group_key, r.member_id, r.items::jsonb, false, true,
                                       r.rules::kcoord.share_rules, %(now)s) s
order by r.number, s.place

-- name: waiting_share_members
select m.member_id, m.member_epoch
from groups_group g
join groups_consumermember m on m.group_id = g.id
where g.group_id = %(group_id)s and m.member_id = any(%(members)s::text[])

-- name: available_items
-- How many items each partition of a group could give now, and in how many ms time alone may give it more.
select p.topic_id, p.partition,
       least(greatest(ends.last - coalesce(p.next_offset, greatest(ends.last - 1, 0)), 0) + r.due + l.overdue,
             greatest(%(most_locks)s - l.locked, 0))::bigint as available,
       least(r.next, l.next) - %(now)s as due_in_ms
from groups_group g
join offsets_sharepartition p on p.group_id = g.id
left join groups_topic t on t.topic_id = p.topic_id
left join groups_watermark w on w.topic_id = t.id and w.partition = p.partition
cross join lateral (select greatest(p.end_offset, w.log_end_offset) as last) ends
cross join lateral (
    select coalesce(sum(kcoord.size_of(x.held)) filter (where x.not_before <= %(now)s), 0) as due,
           min(x.not_before) filter (where x.not_before > %(now)s) as next
    from offsets_shareretry x where x.share_partition_id = p.id) r
cross join lateral (
    select coalesce(sum(kcoord.size_of(x.held)) filter (where x.until <= %(now)s), 0) as overdue,
           coalesce(sum(kcoord.size_of(x.held)) filter (where x.until > %(now)s), 0) as locked,
           min(x.until) filter (where x.until > %(now)s) as next
    from offsets_sharelock x where x.share_partition_id = p.id) l
where g.group_id = %(group_id)s

-- name: wake_share_groups
-- Those that work on a topic, of which an end was reported.
select pg_notify('kcoord_wake', g.group_id)
from groups_topic t
join offsets_sharepartition p on p.topic_id = t.topic_id
join groups_group g on g.id = p.group_id
where t.name = %(topic)s
group by g.group_id

-- name: groups_with_overdue_locks
select g.group_id, g.id as pk
from groups_group g
where g.id in (select p.group_id from offsets_sharelock l
               join offsets_sharepartition p on p.id = l.share_partition_id
               where l.until <= %(now)s)
order by g.id

-- name: expire_share_locks
select kcoord.share_expire(%(group)s, %(most)s, %(rules)s::text::kcoord.share_rules, %(now)s)

-- name: forget_ended_locks
-- Ids grow, so that the oldest are first.
delete from offsets_shareended e
using (select lock_id from offsets_shareended order by lock_id limit %(most)s) o
where o.lock_id = e.lock_id and e.at < %(before)s

-- name: begin_share_partitions
select kcoord.share_begin(%(group)s, %(topics)s::uuid[], kcoord.share_rules_of(%(group_id)s))

-- name: release_share_members
select kcoord.share_leave(%(group)s, %(members)s::text[], kcoord.share_rules_of(%(group_id)s), %(now)s)

-- name: forget_share_partitions
select kcoord.share_forget(%(group)s, %(topics)s::uuid[])

-- name: list_items
-- Locks before retries, each by id.
select i.kind, i.id, i.state, i.topic, i.partition, i.held, i.delivery_count, i.member_id, i.lock, i.acquired_at,
       i.until, i.last_error
from (
    (select 0 as kind, l.id, case when l.until > %(now)s then 'acquired' else 'retry' end as state, t.name as topic,
            p.partition, l.held, l.delivery_count, l.member_id, l.id as lock, l.acquired_at, l.until, l.last_error
     from groups_group g
     join offsets_sharepartition p on p.group_id = g.id
     join groups_topic t on t.topic_id = p.topic_id
     join offsets_sharelock l on l.share_partition_id = p.id
     where g.group_id = %(group_id)s and (0, l.id) > (%(after_kind)s, %(after_id)s)
       and (%(topic)s::text is null or t.name = %(topic)s)
       and (%(member)s::text is null or l.member_id = %(member)s)
       and (%(state)s::text is null or %(state)s = case when l.until > %(now)s then 'acquired' else 'retry' end)
       and kcoord_sees(t.name, %(visible_names)s, %(visible_prefixes)s, %(visible_denied)s, %(visible_denied_prefixes)s)
     order by l.id limit %(limit)s)
    union all
    (select 1, r.id, case when r.not_before > %(now)s then 'delayed' else 'retry' end, t.name, p.partition, r.held,
            r.delivery_count, r.last_member, null, null, r.not_before, r.last_error
     from groups_group g
     join offsets_sharepartition p on p.group_id = g.id
     join groups_topic t on t.topic_id = p.topic_id
     join offsets_shareretry r on r.share_partition_id = p.id
     where g.group_id = %(group_id)s and (1, r.id) > (%(after_kind)s, %(after_id)s)
       and (%(topic)s::text is null or t.name = %(topic)s)
       and (%(member)s::text is null or r.last_member = %(member)s)
       and (%(state)s::text is null or %(state)s = case when r.not_before > %(now)s then 'delayed' else 'retry' end)
       and kcoord_sees(t.name, %(visible_names)s, %(visible_prefixes)s, %(visible_denied)s, %(visible_denied_prefixes)s)
     order by r.id limit %(limit)s)
) i
order by i.kind, i.id
limit %(limit)s

-- name: list_dead_letters
select d.id, t.name as topic, p.partition, d."offset", d.delivery_count, d.cause, d.error, d.member_id, d.at
from groups_group g
join offsets_sharepartition p on p.group_id = g.id
join groups_topic t on t.topic_id = p.topic_id
join offsets_sharedead d on d.share_partition_id = p.id
where g.group_id = %(group_id)s and d.id > %(after)s
  and (%(topic)s::text is null or t.name = %(topic)s)
  and (%(cause)s::text is null or d.cause = %(cause)s)
  and (%(since)s::bigint is null or d.at >= %(since)s)
  and (%(until)s::bigint is null or d.at < %(until)s)
  and kcoord_sees(t.name, %(visible_names)s, %(visible_prefixes)s, %(visible_denied)s, %(visible_denied_prefixes)s)
order by d.id
limit %(limit)s

-- name: share_group_key
select g.id, g.type from groups_group g where g.group_id = %(group_id)s

-- name: share_partition_key
select p.id from offsets_sharepartition p
where p.group_id = %(group)s and p.topic_id = %(topic_id)s and p.partition = %(partition)s

-- name: operate_items
select kcoord.share_operate(%(partition)s, kcoord.offsets_at(%(offsets)s::text::jsonb, 'offsets'), %(kind)s, %(error)s,
                            %(rules)s::text::kcoord.share_rules, %(now)s)

-- name: topics_of_dead_letters
select distinct t.name
from offsets_sharedead d
join offsets_sharepartition p on p.id = d.share_partition_id
join groups_topic t on t.topic_id = p.topic_id
where p.group_id = %(group)s and d.id = any(%(ids)s::bigint[])

-- name: replay_dead_letters
select kcoord.share_replay(%(group)s, %(ids)s::bigint[], %(reset_count)s, %(rules)s::text::kcoord.share_rules, %(now)s)

-- name: discard_dead_letters
select kcoord.share_discard(%(group)s, %(ids)s::bigint[], %(now)s)

-- name: share_offsets
-- `start_offset`: the first offset that is not finished; null: not decided yet. Lag as KIP-1226 has it: what is neither
-- accepted nor given up below the end.
select t.name as topic, t.topic_id, p.partition, p.next_offset, ends.last as end_offset,
       least(p.next_offset, l.first, r.first) as start_offset,
       case when p.next_offset is not null
            then (greatest(ends.last - p.next_offset, 0) + l.items + r.ready + r.delayed)::bigint end as lag,
       l.items::bigint as acquired, r.ready::bigint as retry, r.delayed::bigint as delayed,
       (select count(*) from offsets_sharedead d where d.share_partition_id = p.id) as dead
from groups_group g
join offsets_sharepartition p on p.group_id = g.id
join groups_topic t on t.topic_id = p.topic_id
left join groups_watermark w on w.topic_id = t.id and w.partition = p.partition
cross join lateral (select greatest(p.end_offset, w.log_end_offset) as last) ends
cross join lateral (
    select coalesce(sum(kcoord.size_of(x.held)), 0) as items, min(lower(x.held)) as first
    from offsets_sharelock x where x.share_partition_id = p.id) l
cross join lateral (
    select coalesce(sum(kcoord.size_of(x.held)) filter (where x.not_before <= %(now)s), 0) as ready,
           coalesce(sum(kcoord.size_of(x.held)) filter (where x.not_before > %(now)s), 0) as delayed,
           min(lower(x.held)) as first
    from offsets_shareretry x where x.share_partition_id = p.id) r
where g.group_id = %(group_id)s
  and kcoord_sees(t.name, %(visible_names)s, %(visible_prefixes)s, %(visible_denied)s, %(visible_denied_prefixes)s)
order by t.name, p.partition

-- name: alter_share_offset
select kcoord.share_alter(%(group)s, %(topic_id)s, %(partition)s, %(start)s)
