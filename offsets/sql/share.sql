-- Items of share groups. What may be done with them is in the functions (migrations/sql/0006_share_*.sql).

-- name: share_batch
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
from kcoord.share_acquire(%(group)s, %(members)s::text[], %(most)s::bigint[], %(lock_ms)s::bigint[], %(topics)s::uuid[],
                          %(partitions)s::int[], %(places)s::text[], %(ends)s::bigint[],
                          %(rules)s::text::kcoord.share_rules, %(now)s)

-- name: settle_items
-- Settlements of many members, one after the other.
select s.number, s.why, s.held_by, s.until
from unnest(kcoord.share_settle(%(groups)s::text[], %(members)s::text[], %(items)s::text[]::jsonb[], false, true,
                                %(rules)s::text[]::kcoord.share_rules[], %(now)s)) s
order by s.number, s.place

-- name: waiting_share_members
select m.member_id, m.member_epoch
from groups_group g
join groups_consumermember m on m.group_id = g.id
where g.group_id = %(group_id)s and m.member_id = any(%(members)s::text[])

-- name: available_items
-- How many items these partitions of a group could give now to who asks for `most`, and in how many ms time alone may
-- give more. Each row has an item or more, so `most` rows of what is due are enough; locks are counted only where there
-- is something to give, and no more of them than there may be.
select p.topic_id, p.partition,
       case when ready.items > 0 then least(ready.items, greatest(%(most_locks)s::bigint - (
                select coalesce(sum(kcoord.size_of(x.held)), 0)
                from (select held from offsets_sharelock
                      where share_partition_id = p.id and until > %(now)s::bigint
                      limit %(most_locks)s::bigint) x), 0))
            else 0 end::bigint as available,
       least((select min(not_before) from offsets_shareretry
              where share_partition_id = p.id and not_before > %(now)s::bigint),
             -- Compared as a row, so that the index by `until`, of the locks of all groups, cannot be used.
             (select case when x.share_partition_id = p.id then x.until end
              from (select share_partition_id, until from offsets_sharelock
                    where (share_partition_id, until) > (p.id, %(now)s::bigint)
                    order by share_partition_id, until
                    limit 1) x)) - %(now)s::bigint as due_in_ms
from groups_group g
cross join unnest(%(topics)s::uuid[], %(partitions)s::int[]) a (topic_id, partition)
join offsets_sharepartition p on p.group_id = g.id and p.topic_id = a.topic_id and p.partition = a.partition
left join groups_topic t on t.topic_id = p.topic_id
left join lateral (select * from groups_watermark where topic_id = t.id and partition = p.partition limit 1) w on true
cross join lateral (select greatest(p.end_offset, w.log_end_offset) as last) ends
cross join lateral (
    select greatest(ends.last - p.next_offset, 0)
           + coalesce((select sum(kcoord.size_of(x.held))
                       from ((select held from offsets_shareretry
                              where share_partition_id = p.id and not_before <= %(now)s::bigint
                              order by not_before
                              limit %(most)s::bigint)
                             union all
                             (select held from offsets_sharelock
                              where share_partition_id = p.id and until <= %(now)s::bigint
                              order by until
                              limit %(most)s::bigint)) x), 0) as items
    offset 0  -- once for each partition
) ready
where g.group_id = %(group_id)s

-- name: begin_open_share_partitions
select kcoord.share_begin_open(%(topic)s)

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

-- name: extend_share_locks
update offsets_sharelock set until = %(now)s + lock_ms where until < %(now)s + lock_ms

-- name: forget_ended_locks
-- Ids grow, so that the oldest are first. An array is looked up by the key; joined, a tenth of the table is expected.
delete from offsets_shareended
where lock_id = any(array(select lock_id from offsets_shareended order by lock_id limit %(most)s)) and at < %(before)s

-- name: begin_share_partitions
select kcoord.share_begin(%(group)s, %(topics)s::uuid[], kcoord.share_rules_of(%(group_id)s))

-- name: release_share_members
select kcoord.share_leave(%(group)s, %(members)s::text[], kcoord.share_rules_of(%(group_id)s), %(now)s)

-- name: forget_share_partitions
-- Most groups and topics have no items, and settlements, which have no index by partition, would be read whole.
select case when exists (select from offsets_sharepartition where group_id = %(group)s or topic_id = any(%(topics)s::uuid[]))
            then kcoord.share_forget(%(group)s, %(topics)s::uuid[]) else 0 end

-- name: list_items
-- By partition; in each locks before retries, both by time: so is the index, and a page looks at no more of each partition
-- than it may show.
select i.kind, p.topic_id, p.partition, i.at, i.id, p.topic, i.held, i.delivery_count, i.member_id, i.acquired_at,
       i.last_error
from (select p.id, p.topic_id, p.partition, t.name as topic,
             case when f.is_first then greatest(%(after_lock)s::bigint, %(lock_after)s::bigint) else %(lock_after)s::bigint end as lock_after,
             case when f.is_first then greatest(%(after_retry)s::bigint, %(retry_after)s::bigint) else %(retry_after)s::bigint end as retry_after,
             case when f.is_first then %(after_id)s::bigint else 9223372036854775807 end as after_id
      from groups_group g
      join offsets_sharepartition p on p.group_id = g.id
      join groups_topic t on t.topic_id = p.topic_id
      cross join lateral (
          select (p.topic_id, p.partition) = (%(after_topic)s::uuid, %(after_partition)s) as is_first) f
      where g.group_id = %(group_id)s and (p.topic_id, p.partition) >= (%(after_topic)s::uuid, %(after_partition)s)
        and (%(topic)s::text is null or t.name = %(topic)s)
        and kcoord_sees(t.name, %(visible_names)s, %(visible_prefixes)s,
                        %(visible_denied)s, %(visible_denied_prefixes)s)
      order by p.topic_id, p.partition) p
cross join lateral (
    (select 0 as kind, l.until as at, l.id, l.held, l.delivery_count, l.member_id, l.acquired_at, l.last_error
     from offsets_sharelock l
     where l.share_partition_id = p.id and l.until <= %(lock_last)s::bigint and (l.until, l.id) > (p.lock_after, p.after_id)
       and (%(member)s::text is null or l.member_id = %(member)s)
     order by l.until, l.id
     limit %(limit)s)
    union all
    (select 1, r.not_before, r.id, r.held, r.delivery_count, r.last_member, null, r.last_error
     from offsets_shareretry r
     where r.share_partition_id = p.id and r.not_before <= %(retry_last)s::bigint
       and (r.not_before, r.id) > (p.retry_after, p.after_id)
       and (%(member)s::text is null or r.last_member = %(member)s)
     order by r.not_before, r.id
     limit %(limit)s)
) i
order by p.topic_id, p.partition, i.kind, i.at, i.id
limit %(limit)s

-- name: oldest_lock
-- When the items were acquired that members have for the longest.
select min(l.acquired_at)
from groups_group g
join offsets_sharepartition p on p.group_id = g.id
join groups_topic t on t.topic_id = p.topic_id
join offsets_sharelock l on l.share_partition_id = p.id and l.until > %(now)s
where g.group_id = %(group_id)s
  and kcoord_sees(t.name, %(visible_names)s, %(visible_prefixes)s, %(visible_denied)s, %(visible_denied_prefixes)s)

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

-- fragment: share_lag
-- Of the partition `p` of a topic `t`: where it ends, what is given out and not finished, and the lag, as KIP-1226 has
-- it: what is neither accepted nor given up below the end. Null: where it begins is not decided, or nobody has said
-- where it ends; an end of 0 that a worker reports counts as unknown.
left join lateral (select * from groups_watermark where topic_id = t.id and partition = p.partition limit 1) w on true
cross join lateral (
    select case when w.id is not null or p.end_offset > 0 then greatest(p.end_offset, w.log_end_offset) end as last
) ends
cross join lateral (
    select coalesce(sum(upper(h) - lower(h)), 0) as items, min(lower(h)) as first
    from offsets_sharelock x cross join lateral unnest(x.held) h
    where x.share_partition_id = p.id) l
cross join lateral (
    select coalesce(sum(upper(h) - lower(h)), 0) as items, min(lower(h)) as first
    from offsets_shareretry x cross join lateral unnest(x.held) h
    where x.share_partition_id = p.id) r
cross join lateral (
    select least(p.next_offset, l.first, r.first) as start_offset,
           case when p.next_offset is not null and ends.last is not null
                then (greatest(ends.last - p.next_offset, 0) + l.items + r.items)::bigint end as lag
) behind

-- fragment: unfinished
-- The oldest item that is not finished, for `time_lag`; not known where members report an end beyond the watermark.
cross join lateral (
    select t.id as topic_id, p.partition, greatest(behind.start_offset, w.log_start_offset) as position,
           behind.lag > 0 and greatest(behind.start_offset, w.log_start_offset) < w.log_end_offset as known
) c

-- name: share_offsets
-- `start_offset`: the first offset that is not finished; null: not decided yet.
select t.name as topic, t.topic_id, p.partition, p.next_offset, coalesce(ends.last, 0) as end_offset,
       behind.start_offset, behind.lag, l.items::bigint as acquired, (r.items - d.items)::bigint as retry,
       d.items::bigint as delayed, (select count(*) from offsets_sharedead d where d.share_partition_id = p.id) as dead,
       case when behind.lag = 0 then 0 else late.time_lag_ms end as time_lag_ms
from groups_group g
join offsets_sharepartition p on p.group_id = g.id
join groups_topic t on t.topic_id = p.topic_id
-- include: share_lag
-- include: unfinished
-- include: time_lag
cross join lateral (
    select coalesce(sum(kcoord.size_of(x.held)), 0) as items
    from offsets_shareretry x where x.share_partition_id = p.id and x.not_before > %(now)s) d
where g.group_id = %(group_id)s
  and kcoord_sees(t.name, %(visible_names)s, %(visible_prefixes)s, %(visible_denied)s, %(visible_denied_prefixes)s)
order by t.name, p.partition

-- name: share_standing
-- Share groups on some partitions of a topic: lag, what members have, and what waits to be delivered again.
select p.group_id as pk, p.partition, behind.lag, l.items::bigint as acquired, r.items::bigint as again
from groups_topic t
join offsets_sharepartition p on p.topic_id = t.topic_id
-- include: share_lag
where t.name = %(topic)s and p.group_id = any(%(groups)s::bigint[]) and p.partition between %(first)s and %(last)s

-- name: share_lag_topics
-- As `lag_topics` for other groups.
select t.name as topic, false as owned, false as deleted, count(*) as partitions,
       count(*) - count(behind.lag) as unknown_partitions, kcoord_bigint(sum(behind.lag)) as lag,
       case when bool_and(behind.lag = 0 or coalesce(late.time_lag_ms, late.at_least_ms) is not null)
                 filter (where behind.lag is not null)
            then max(case when behind.lag = 0 then 0 else late.time_lag_ms end)
       end as time_lag_ms,
       max(late.at_least_ms) as at_least_ms,
       min(w.sampled_at) filter (where behind.lag is not null) as sampled_at
from groups_group g
join offsets_sharepartition p on p.group_id = g.id
join groups_topic t on t.topic_id = p.topic_id
-- include: share_lag
-- include: unfinished
-- include: time_lag
where g.group_id = %(group_id)s and (%(topic)s::text is null or t.name = %(topic)s)
  and kcoord_sees(t.name, %(visible_names)s, %(visible_prefixes)s, %(visible_denied)s, %(visible_denied_prefixes)s)
group by t.name
order by t.name

-- name: share_lag_partitions
-- As `lag_partitions`: a page, of which alone locks and retries are added up.
select t.topic, t.partition, behind.lag, w.log_start_offset, w.log_end_offset, w.sampled_at,
       case when behind.lag = 0 then 0 else late.time_lag_ms end as time_lag_ms, late.at_least_ms
from (select t.id, t.name as topic, p.id as pk, p.partition
      from groups_group g
      join offsets_sharepartition p on p.group_id = g.id
      join groups_topic t on t.topic_id = p.topic_id
      where g.group_id = %(group_id)s and (%(topic)s::text is null or t.name = %(topic)s)
        and (t.name, p.partition) > (%(after_topic)s, %(after_partition)s)
        and kcoord_sees(t.name, %(visible_names)s, %(visible_prefixes)s,
                        %(visible_denied)s, %(visible_denied_prefixes)s)
      order by t.name, p.partition
      limit %(limit)s) t
join offsets_sharepartition p on p.id = t.pk
-- include: share_lag
-- include: unfinished
-- include: time_lag
order by t.topic, t.partition

-- name: alter_share_offset
select kcoord.share_alter(%(group)s, %(topic_id)s, %(partition)s, %(start)s)
