-- name: topic_header
select t.id as pk, t.name, t.topic_id::text as topic_id, t.partitions, t.labels, t.created_at, w.watermarks, w.oldest,
       w.newest, w.records, w.lower, w.lower_at, w.lower_by
from groups_topic t
cross join lateral (select count(*) as watermarks, min(sampled_at) as oldest, max(sampled_at) as newest,
                           kcoord_bigint(sum(log_end_offset - log_start_offset)) as records,
                           count(lower_at) as lower, max(lower_at) as lower_at,
                           coalesce((array_agg(distinct lower_by) filter (where lower_at is not null))[:5], '{}')
                               as lower_by
                    from groups_watermark
                    where topic_id = t.id) w
where t.name = %(name)s

-- name: topic_partitions
select p.partition, w.log_start_offset, w.log_end_offset, w.sampled_at
from generate_series(%(first)s::int, %(last)s::int) p (partition)
left join groups_watermark w on w.topic_id = %(pk)s and w.partition = p.partition
order by p.partition

-- name: topic_ends
-- Where the logs of some partitions ended at instants: as reported then, or interpolated between two reports that are at
-- most %(old_ms)s ms apart; otherwise it is not known. Two looks into the key for each instant.
select p.partition, array_agg(e.log_end_offset order by i.number) as ends
from unnest(%(partitions)s::int[]) as p (partition)
cross join generate_series(0, %(steps)s::int) as i (number)
cross join lateral (select %(first)s::bigint + i.number * %(step_ms)s::bigint as at) t
left join lateral (
    select until, log_end_offset
    from offsets_watermarksample
    where topic_id = %(pk)s and partition = p.partition and at <= t.at
    order by at desc
    limit 1) s on true
left join lateral (
    select at, log_end_offset
    from offsets_watermarksample
    where s.until < t.at and topic_id = %(pk)s and partition = p.partition and at > t.at
    order by at
    limit 1) n on n.at - s.until <= %(old_ms)s
cross join lateral (
    select case when s.until >= t.at then s.log_end_offset
                else s.log_end_offset + div((n.log_end_offset - s.log_end_offset)::numeric * (t.at - s.until),
                                            n.at - s.until)::bigint end as log_end_offset) e
group by p.partition

-- fragment: known
known as (
    select group_id from offsets_topiclag where topic = %(topic)s
    union
    select group_id from (select group_id from groups_assignment where topic = %(topic)s
                          order by partition limit %(rows)s) a
    union
    select group_id from (select group_id from offsets_committedoffset where topic = %(topic)s
                          order by partition limit %(rows)s) o
    union
    select group_id from (select p.group_id
                          from groups_topic t
                          join offsets_sharepartition p on p.topic_id = t.topic_id
                          where t.name = %(topic)s
                          limit %(rows)s) s)

-- name: topic_groups
-- Groups that committed, as the sampler noted them, and besides these the groups in the first rows of owners, offsets and
-- share groups: those that own without having committed, and those that the sampler has not seen yet. The furthest behind
-- come first.
with
-- include: known
, found as (
    select g.id as pk, g.group_id, g.type, g.state, g.held_until, l.lag, l.max_lag, l.time_lag_ms,
           l.time_lag_at_least_ms, l.at as sampled_at, count(*) over () as total
    from known k
    join groups_group g on g.id = k.group_id
    left join offsets_topiclag l on l.group_id = g.id and l.topic = %(topic)s
    where kcoord_sees(g.group_id, %(group_names)s, %(group_prefixes)s, %(group_denied)s, %(group_denied_prefixes)s)
    order by l.lag desc nulls last, g.group_id
    limit %(limit)s offset %(skip)s)
select f.pk, f.group_id, f.type, f.state, f.held_until, f.lag, f.max_lag, f.time_lag_ms, f.time_lag_at_least_ms,
       f.sampled_at, f.total,
       (select count(*) from groups_assignment a where a.group_id = f.pk and a.topic = %(topic)s) as owned,
       (select count(*) from offsets_committedoffset o where o.group_id = f.pk and o.topic = %(topic)s) as committed
from found f
order by f.lag desc nulls last, f.group_id

-- name: topic_groups_after
-- The same groups by name, from one on.
with
-- include: known
select g.id as pk, g.group_id, g.type, g.state, g.held_until, l.lag, l.max_lag, l.time_lag_ms,
       l.time_lag_at_least_ms, l.at as sampled_at, 0 as total,
       (select count(*) from groups_assignment a where a.group_id = g.id and a.topic = %(topic)s) as owned,
       (select count(*) from offsets_committedoffset o where o.group_id = g.id and o.topic = %(topic)s) as committed
from known k
join groups_group g on g.id = k.group_id
left join offsets_topiclag l on l.group_id = g.id and l.topic = %(topic)s
where (%(after)s::text is null or g.group_id > %(after)s)
  and kcoord_sees(g.group_id, %(group_names)s, %(group_prefixes)s, %(group_denied)s, %(group_denied_prefixes)s)
order by g.group_id
limit %(limit)s

-- name: topic_cells
-- Group by partition: who owns it, and what is committed there. Members of consumer groups may use topics that cannot be
-- seen, so that what they are called is shown only to those who see all.
select coalesce(o.group_id, a.group_id) as pk, coalesce(o.partition, a.partition) as partition, o.committed_offset,
       a.member_id as owner, m.client_id, m.client_host
from (select group_id, partition, committed_offset
      from offsets_committedoffset
      where group_id = any(%(groups)s::bigint[]) and topic = %(topic)s
        and partition between %(first)s and %(last)s) o
full join (select group_id, partition, member_id
           from groups_assignment
           where group_id = any(%(groups)s::bigint[]) and topic = %(topic)s
             and partition between %(first)s and %(last)s) a using (group_id, partition)
left join lateral (
    select client_id, client_host from groups_member
    where group_id = a.group_id and member_id = a.member_id
    union all
    select client_id, client_host from groups_consumermember
    where group_id = a.group_id and member_id = a.member_id and %(all_topics)s
    limit 1) m on true
