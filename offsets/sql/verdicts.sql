-- Verdicts on groups, by the rules of `offsets.core.verdicts`; tests compare them. Each statement judges the groups whose
-- keys are in a range, one or all of them, and returns the fields of a verdict.

-- name: last_group
select max(id) from groups_group

-- name: judge_states
select g.id as group_id, 'stuck' as kind, '' as topic, g.state_since as since,
       coalesce(g.join_deadline, g.sync_deadline) as due_at, 0 as number, null::bigint as lag, '{}'::text[] as names
from groups_group g
where g.state in ('PreparingRebalance', 'CompletingRebalance', 'Assigning', 'Reconciling')
  and g.state_since <= %(stuck_before)s
  and g.id > %(after)s and g.id <= %(upto)s

-- name: judge_sessions
-- There is no index on sessions, since every heartbeat would have to maintain it: all members are read. Sessions count as far as
-- all servers have stored what they renewed, and not where nobody may end them: without a live owner of the
-- coordinator partition, and in groups whose deadlines start over with the next decision. A member that left
-- temporarily sends no heartbeats.
with known as materialized (
    select least(%(now)s::bigint, (select min(flushed_until) from groups_coordinatornode where ended_at is null))
               as until
), uncounted as materialized (
    select p.partition
    from groups_coordinatorpartition p
    left join groups_coordinatornode n on n.id = p.owner_id
    where (p.state = 'ACTIVE' and n.ended_at is null and n.expires_at > %(now)s) is not true
), session as (
    select group_id, member_id, session_deadline as deadline, session_deadline - session_timeout_ms as armed_at
    from groups_member
    where session_deadline is not null and group_id > %(after)s and group_id <= %(upto)s
    union all
    select group_id, member_id, session_deadline, session_armed_at
    from groups_consumermember
    where session_deadline is not null and member_epoch <> -2 and group_id > %(after)s and group_id <= %(upto)s
), late as (
    select s.*
    from session s
    cross join known k
    where (s.deadline - k.until) * 100
          <= least(s.deadline - s.armed_at, %(longest_session_ms)s) * (100 - %(late_percent)s)
)
select l.group_id, 'late' as kind, '' as topic, min(l.armed_at) as since, min(l.deadline) as due_at,
       count(*) as number, null::bigint as lag, (array_agg(l.member_id order by l.armed_at, l.member_id))[:%(named)s] as names
from late l
join groups_group g on g.id = l.group_id
left join groups_coordinatorpartition p on p.partition = g.partition
where not exists (select from uncounted u where u.partition = g.partition)
  and g.armed_gap >= coalesce(p.gap, 0)
group by l.group_id

-- name: judge_rebalances
-- Ids of events are given in the order of time, and `offsets_activity` says which was the last one by when.
select g.id as group_id, 'flapping' as kind, '' as topic, min(e.at) as since, null::bigint as due_at,
       count(*) as number, null::bigint as lag, '{}'::text[] as names
from groups_event e
join groups_group g on g.group_id = e.group_name
where e.id > coalesce((select event_id from offsets_activity where at <= %(flapping_after)s order by at desc limit 1),
                      (select event_id from offsets_activity order by at limit 1))
  and e.at > %(flapping_after)s and e.kind = any(%(rebalance_kinds)s::text[])
  and g.id > %(after)s and g.id <= %(upto)s
group by g.id
having count(*) >= %(flapping_rebalances)s

-- name: judge_owned
-- Partitions that make no progress, those whose watermark is old, and those that end earlier by another report. Of a partition on which nothing was committed, what
-- was written since the group became Stable is unread. `readable` is when the log was first seen to end beyond what is read.
-- What was committed before is looked up only where it was committed lately and there has been something to read for
-- long. The journal is partitioned by day: the second bound keeps that to a day or two.
-- Owners come first: of a group with far more partitions than most, a plan for the average one would compare each of
-- them with each watermark of the topic.
with had as materialized (
    select a.group_id, g.group_id as name, g.state, g.state_since, a.topic, a.partition, t.id as topic_id
    from groups_group g
    join groups_assignment a on a.group_id = g.id and not a.pending
    join groups_topic t on t.name = a.topic
    where g.id > %(after)s and g.id <= %(upto)s
), owned as (
    select h.*, w.log_start_offset, w.log_end_offset, w.sampled_at, w.lower_at, o.committed_offset, o.commit_timestamp
    from had h
    join groups_watermark w on w.topic_id = h.topic_id and w.partition = h.partition
    left join offsets_committedoffset o
        on o.group_id = h.group_id and o.topic = h.topic and o.partition = h.partition
), unread as (
    select o.*, o.log_end_offset - p.position as lag,
           greatest(o.state_since, coalesce(r.at, o.sampled_at)) as idle_since
    from owned o
    cross join lateral (
        select case when o.committed_offset is not null then greatest(o.committed_offset, o.log_start_offset)
                    else (select b.log_end_offset
                          from ((select s.at, s.log_end_offset
                                 from offsets_watermarksample s
                                 where s.topic_id = o.topic_id and s.partition = o.partition
                                   and s.at <= o.state_since
                                 order by s.at desc
                                 limit 1)
                                union all
                                (select s.at, s.log_end_offset
                                 from offsets_watermarksample s
                                 where s.topic_id = o.topic_id and s.partition = o.partition and s.at > o.state_since
                                 order by s.at
                                 limit 1)) b
                          order by b.at
                          limit 1)
               end as position) p
    left join lateral (
        select s.at
        from offsets_watermarksample s
        where s.topic_id = o.topic_id and s.partition = o.partition and s.log_end_offset > p.position
        order by s.log_end_offset, s.at
        limit 1) r on true
    where o.state = 'Stable' and o.state_since <= %(stalled_before)s
      and o.log_end_offset - p.position >= %(stalled_lag)s
), stalled as (
    select u.group_id, u.topic, u.partition, u.lag,
           greatest(u.idle_since, coalesce(j.at, u.commit_timestamp)) as since
    from unread u
    left join lateral (
        select l.at, l.committed_offset
        from offset_commit_log l
        where u.commit_timestamp > %(stalled_before)s
          and l.group_name = u.name and l.topic = u.topic and l.partition = u.partition
          and l.at <= %(stalled_before)s and l.at > %(stalled_before)s - 86400000
        order by l.at desc, l.id desc
        limit 1) j on true
    where u.idle_since <= %(stalled_before)s
      and (u.commit_timestamp is null or u.commit_timestamp <= %(stalled_before)s
           or j.committed_offset = u.committed_offset)
)
select group_id, 'stalled' as kind, topic, min(since) as since, null::bigint as due_at, count(*) as number,
       kcoord_bigint(sum(lag)) as lag,
       (array_agg(partition order by since, partition))[:%(named)s]::text[] as names
from stalled
group by group_id, topic
union all
select group_id, 'stale', topic, min(sampled_at), null, count(*), null,
       (array_agg(partition order by sampled_at, partition))[:%(named)s]::text[]
from owned
where sampled_at < %(stale_before)s
group by group_id, topic
union all
select group_id, 'disputed', topic, min(lower_at), null, count(*), null,
       (array_agg(partition order by lower_at, partition))[:%(named)s]::text[]
from owned
where lower_at >= %(stale_before)s
group by group_id, topic

-- name: judge_items
-- Of share groups: work that nobody does, work that does not end, and what was given up.
with part as materialized (
    select p.id, p.group_id, p.partition, t.name as topic, g.state, g.state_since,
           greatest(greatest(p.end_offset, w.log_end_offset) - p.next_offset, 0) as unread
    from groups_group g
    join offsets_sharepartition p on p.group_id = g.id
    join groups_topic t on t.topic_id = p.topic_id
    left join lateral (select * from groups_watermark where topic_id = t.id and partition = p.partition limit 1) w on true
    where g.type = 'share' and g.id > %(after)s and g.id <= %(upto)s
), waiting as (
    select p.*, p.unread + r.items as items
    from part p
    cross join lateral (
        select coalesce(sum(kcoord.size_of(x.held)), 0) as items
        from offsets_shareretry x where x.share_partition_id = p.id and x.not_before <= %(now)s) r
    where p.state = 'Empty' and p.state_since <= %(stalled_before)s
)
select group_id, 'unattended' as kind, topic, min(state_since) as since, null::bigint as due_at, count(*) as number,
       kcoord_bigint(sum(items)) as lag, (array_agg(partition order by items desc, partition))[:%(named)s]::text[] as names
from waiting
where items > 0
group by group_id, topic
union all
select p.group_id, 'unsettled', p.topic, min(l.acquired_at), null, kcoord_bigint(sum(kcoord.size_of(l.held))), null,
       (array_agg(distinct l.member_id))[:%(named)s]
from part p
join offsets_sharelock l on l.share_partition_id = p.id and l.acquired_at <= %(stalled_before)s
group by p.group_id, p.topic
union all
select p.group_id, 'dead-letters', p.topic, min(d.at), null, count(*), null,
       (array_agg(distinct p.partition))[:%(named)s]::text[]
from part p
join offsets_sharedead d on d.share_partition_id = p.id
group by p.group_id, p.topic

-- fragment: subscribed
-- What the members of the groups of a page read, by name, as far as it is known.
select p.id as group_id, u.topic
from page p
join groups_generationtopics s on s.group_id = p.id
cross join lateral unnest(s.topics) u (topic)
where p.type = 'classic' and p.protocol_type = 'consumer'
union
select p.id, u.topic
from page p
join groups_consumermember m on m.group_id = p.id
cross join lateral unnest(m.subscribed_topic_names) u (topic)
where p.type = 'consumer'
union
select p.id, u.topic
from page p
join groups_consumermember m on m.group_id = p.id and m.subscribed_topic_regex <> ''
cross join lateral jsonb_array_elements_text(p.resolution->m.topic_rights->'topics'->m.subscribed_topic_regex)
    u (topic)
where p.type = 'consumer'

-- name: judge_subscriptions
-- A classic group without any row of what it owns may have assignments that only its members can read.
with page as materialized (
    select g.id, g.type, g.protocol_type, g.resolution
    from groups_group g
    where g.state = 'Stable' and g.state_since <= %(uncovered_before)s and g.id > %(after)s and g.id <= %(upto)s
      and (g.type = 'consumer' or exists (select from groups_assignment a where a.group_id = g.id))
), subscribed as (
    -- include: subscribed
)
select s.group_id, 'uncovered' as kind, s.topic, %(now)s::bigint as since, null::bigint as due_at,
       t.partitions - c.owned as number, null::bigint as lag,
       array(select n::text
             from generate_series(0, t.partitions - 1) n
             where not exists (select from groups_assignment a
                               where a.group_id = s.group_id and a.topic = s.topic and a.partition = n)
             order by n
             limit %(named)s) as names
from subscribed s
join groups_topic t on t.name = s.topic
cross join lateral (
    select count(*) as owned
    from groups_assignment a
    where a.group_id = s.group_id and a.topic = s.topic and a.partition < t.partitions) c
where c.owned < t.partitions

-- name: judge_retention
-- Offsets that expire soon, by `offsets.core.retention`: `page` has the groups of which it does not keep all, `base` from when
-- it counts for all offsets of a group.
with page as materialized (
    select g.id, g.group_id, g.type, g.protocol_type, g.resolution,
           case when g.type = 'classic' and g.protocol_type is not null and g.state = 'Empty' then g.state_since end
               as base
    from groups_group g
    where g.id > %(after)s and g.id <= %(upto)s
      and case when g.type = 'consumer'
               then not exists (select from groups_consumermember m
                                where m.group_id = g.id and m.subscribed_topic_regex <> ''
                                  and g.resolution->m.topic_rights->'topics'->m.subscribed_topic_regex is null)
               when g.protocol_type is null or g.state = 'Empty' then true
               else g.protocol_type = 'consumer' and g.state = 'Stable' end
      and (g.type = 'consumer' or g.protocol_type is distinct from 'consumer'
           or exists (select from groups_generationtopics s where s.group_id = g.id)
           or not exists (select from groups_member m where m.group_id = g.id))
      and not exists (select from offsets_retentionpin r where r.group_name = g.group_id and r.topic = '')
), subscribed as (
    -- include: subscribed
)
select o.group_id, 'expiring' as kind, o.topic,
       kcoord_bigint(min(e.at) - (%(expiring_until)s::bigint - %(now)s)) as since, kcoord_bigint(min(e.at)) as due_at, count(*) as number, null::bigint as lag,
       (array_agg(o.partition order by e.at, o.partition))[:%(named)s]::text[] as names
from page p
join offsets_committedoffset o on o.group_id = p.id
cross join lateral (
    select coalesce(o.expire_timestamp, coalesce(p.base, o.commit_timestamp)::numeric + %(retention_ms)s) as at) e
where e.at <= %(expiring_until)s
  and not exists (select from subscribed s where s.group_id = o.group_id and s.topic = o.topic)
  and not exists (select from offsets_retentionpin r where r.group_name = p.group_id and r.topic = o.topic)
  and not exists (select from offsets_pendingoffset n
                  where n.group_id = o.group_id and n.topic = o.topic and n.partition = o.partition)
group by o.group_id, o.topic

-- name: store_verdicts
-- Of the groups in the range and the kinds that were judged, exactly these remain. Verdicts of the kinds `first_seen`
-- keep their beginning. Rows that stay the same are not written.
with found as (
    select *
    from unnest(%(group_id)s::bigint[], %(kind)s::text[], %(topic)s::text[], %(since)s::bigint[], %(due_at)s::bigint[],
                %(number)s::bigint[], %(lag)s::bigint[], %(names)s::text[])
         as f (group_id, kind, topic, since, due_at, number, lag, names)
), gone as (
    delete from offsets_groupverdict v
    where v.group_id > %(after)s and v.group_id <= %(upto)s and v.kind = any(%(kinds)s::text[])
      and not exists (select from found f where f.group_id = v.group_id and f.kind = v.kind and f.topic = v.topic)
)
insert into offsets_groupverdict as v (group_id, kind, topic, since, due_at, number, lag, names)
select group_id, kind, topic, since, due_at, number, lag, string_to_array(names, chr(10))
from found
on conflict (group_id, kind, topic) do update
set since = case when v.kind = any(%(first_seen)s::text[]) then least(v.since, excluded.since) else excluded.since end,
    due_at = excluded.due_at, number = excluded.number, lag = excluded.lag, names = excluded.names
where (v.due_at, v.number, v.lag, v.names) is distinct from
          (excluded.due_at, excluded.number, excluded.lag, excluded.names)
   or v.since > excluded.since
   or v.since <> excluded.since and v.kind <> all(%(first_seen)s::text[])

-- name: note_run
insert into offsets_verdictrun (name, at)
values (%(name)s, %(now)s)
on conflict (name) do update set at = excluded.at

-- name: note_activity
-- At most once per `before`. Events that are committed out of order may be missed. Lag that was not sampled lately is
-- not that of now.
insert into offsets_activity (at, record_offset, event_id, rebalances, lag)
select %(now)s, s.last_value, e.id,
       (select count(*) from groups_event n
        where n.id > coalesce(l.event_id, e.id) and n.id <= e.id and n.kind = any(%(rebalance_kinds)s::text[])),
       (select case when max(o.at) >= %(sampled_after)s then kcoord_bigint(sum(o.lag)) end
        from offsets_grouplag o join groups_group g on g.id = o.group_id)
from offset_commit_log_id_seq s
cross join (select coalesce(max(id), 0) as id from groups_event) e
left join lateral (select at, event_id from offsets_activity order by at desc limit 1) l on true
where l.at is null or l.at <= %(before)s
on conflict do nothing

-- name: forget_activity
delete from offsets_activity where at < %(before)s

-- name: stored_verdicts
select kind, topic, since, due_at, number, lag, names
from offsets_groupverdict
where group_id = %(group_id)s

-- name: verdict_runs
select name, at from offsets_verdictrun

-- fragment: seen
-- Verdicts on groups that the reader may describe, about topics that it may describe or none.
join groups_group s on s.id = v.group_id
    and kcoord_sees(s.group_id, %(group_names)s, %(group_prefixes)s, %(group_denied)s, %(group_denied_prefixes)s)
    and (v.topic = '' or kcoord_sees(v.topic, %(topic_names)s, %(topic_prefixes)s,
                                     %(topic_denied)s, %(topic_denied_prefixes)s))

-- name: groups_in_need
-- Of each kind the groups for which it has lasted longest; a group counts with its worst.
select w.group_id
from unnest(%(worst_first)s::text[]) with ordinality k (kind, place)
cross join lateral (
    select v.group_id, min(v.since) as since
    from offsets_groupverdict v
    -- include: seen
    where v.kind = k.kind
    group by v.group_id
    order by 2, 1
    limit %(limit)s) w
group by w.group_id
order by min(k.place), min(w.since), w.group_id
limit %(limit)s

-- name: summed_verdicts
select g.group_id, g.state, g.held_until, v.kind, min(v.since) as since, min(v.due_at) as due_at,
       kcoord_bigint(sum(v.number)) as number, kcoord_bigint(sum(v.lag)) as lag,
       coalesce((array_agg(v.topic order by v.since, v.topic) filter (where v.topic <> ''))[:%(named)s], '{}') as topics,
       count(*) filter (where v.topic <> '') as topic_count,
       (array_agg(to_jsonb(v.names) order by v.since, v.topic))[1] as names
from unnest(%(groups)s::bigint[]) with ordinality n (id, place)
join groups_group g on g.id = n.id
join offsets_groupverdict v on v.group_id = g.id
-- include: seen
group by n.place, g.group_id, g.state, g.held_until, v.kind
order by n.place, array_position(%(worst_first)s::text[], v.kind::text)

-- name: count_needy_groups
select count(*)
from (select distinct v.group_id
      from offsets_groupverdict v
      -- include: seen
     ) n

-- name: count_needy_groups_by_verdict
select n.kind, count(*)
from (select distinct v.group_id, v.kind
      from offsets_groupverdict v
      -- include: seen
     ) n
group by n.kind

-- name: activity_since
select at, record_offset, rebalances, lag from offsets_activity where at > %(since)s order by at
