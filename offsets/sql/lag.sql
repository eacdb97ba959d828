-- name: lag_partitions
-- A page of what a group committed, owns, or subscribes to. Each way to find partitions is cut to a page of its own, so
-- that a page costs the same however many partitions the group has; only those of the page are looked up.
with g as (
    select id from groups_group where group_id = %(group_id)s
), named as (
    (select o.topic, o.partition
     from g
     join offsets_committedoffset o on o.group_id = g.id
     where (%(topic)s::text is null or o.topic = %(topic)s)
       and (o.topic, o.partition) > (%(after_topic)s, %(after_partition)s)
       and kcoord_sees(o.topic, %(visible_names)s, %(visible_prefixes)s,
                       %(visible_denied)s, %(visible_denied_prefixes)s)
     order by o.topic, o.partition
     limit %(limit)s)
    union
    (select distinct a.topic, a.partition
     from g
     join groups_assignment a on a.group_id = g.id
     where (%(topic)s::text is null or a.topic = %(topic)s)
       and (a.topic, a.partition) > (%(after_topic)s, %(after_partition)s)
       and kcoord_sees(a.topic, %(visible_names)s, %(visible_prefixes)s,
                       %(visible_denied)s, %(visible_denied_prefixes)s)
     order by a.topic, a.partition
     limit %(limit)s)
    union
    (select t.name, p.partition
     from g
     cross join groups_topic t
     cross join lateral generate_series(0, t.partitions - 1) as p (partition)
     where t.name = any(%(subscribed)s::text[])
       and (%(topic)s::text is null or t.name = %(topic)s)
       and t.name >= %(after_topic)s
       and (t.name, p.partition) > (%(after_topic)s, %(after_partition)s)
       and kcoord_sees(t.name, %(visible_names)s, %(visible_prefixes)s, %(visible_denied)s, %(visible_denied_prefixes)s)
     order by t.name, p.partition
     limit %(limit)s)
    order by topic, partition
    limit %(limit)s
)
select k.topic, k.partition, o.committed_offset, o.commit_timestamp as committed_at, a.member_id,
       w.log_start_offset, w.log_end_offset, w.sampled_at
from named k
cross join g
left join lateral (
    select committed_offset, commit_timestamp
    from offsets_committedoffset
    where group_id = g.id and topic = k.topic and partition = k.partition
    limit 1) o on true
left join lateral (
    select member_id
    from groups_assignment
    where group_id = g.id and topic = k.topic and partition = k.partition
    order by pending
    limit 1) a on true
left join groups_topic t on t.name = k.topic
left join lateral (select * from groups_watermark where topic_id = t.id and partition = k.partition limit 1) w on true
order by k.topic, k.partition

-- name: samples_of_positions
-- The samples that the time lag of some positions is interpolated from: the last at which the log ended there or before
-- (`b`), and the one after it, or where there is no such sample the first of all.
select d.topic, d.partition, s.at, s.until, s.log_start_offset, s.log_end_offset
from unnest(%(topics)s::text[], %(partitions)s::int[], %(positions)s::bigint[]) as d (topic, partition, position)
join groups_topic t on t.name = d.topic
left join lateral (
    select at, until, log_start_offset, log_end_offset
    from offsets_watermarksample
    where topic_id = t.id and partition = d.partition and log_end_offset <= d.position
    order by log_end_offset desc, at desc
    limit 1) b on true
cross join lateral (
    select b.at, b.until, b.log_start_offset, b.log_end_offset where b.at is not null
    union all
    (select at, until, log_start_offset, log_end_offset
     from offsets_watermarksample
     where topic_id = t.id and partition = d.partition and at > coalesce(b.at, -1)
     order by at
     limit 1)) s
order by d.topic, d.partition, s.at

-- fragment: time_lag
-- How long the record at `c.position` has waited, in a partition with the watermark `w`; null if that is not `c.known`,
-- or by no sample. `b` is the last sample at which the log ended there or before, `n` the one after it. Without `b` it
-- has waited at least since the first of all.
left join lateral (
    select s.at, s.until, s.log_end_offset
    from offsets_watermarksample s
    where c.known and c.position < w.log_end_offset
      and s.topic_id = c.topic_id and s.partition = c.partition and s.log_end_offset <= c.position
    order by s.log_end_offset desc, s.at desc
    limit 1) b on true
left join lateral (
    (select s.at, s.log_end_offset
     from offsets_watermarksample s
     where c.known and c.position < w.log_end_offset
       and s.topic_id = c.topic_id and s.partition = c.partition and s.at > coalesce(b.at, -1)
     order by s.at
     limit 1)
    union all
    select w.sampled_at, w.log_end_offset where w.sampled_at > b.until
    order by at
    limit 1) n on true
cross join lateral (
    select kcoord_bigint(
               case when not c.known then null
                    when c.position >= w.log_end_offset then 0
                    when b.at is null or n.at is null then null
                    else greatest(%(now)s - b.until - div((c.position - b.log_end_offset)::numeric * (n.at - b.until),
                                                          n.log_end_offset - b.log_end_offset), 0)
               end) as time_lag_ms,
           case when c.known and c.position < w.log_end_offset and b.at is null
                then greatest(%(now)s - coalesce(n.at, w.sampled_at), 0)
           end as at_least_ms
) late

-- name: lag_topics
-- The totals of every topic that a group committed on, owns partitions of, or subscribes to: the same as
-- `offsets.core.lag` computes from its partitions, which a test compares.
-- A watermark is looked up by its whole key (`limit 1`), here and wherever a group's partitions meet theirs: Postgres would
-- rather remember those of a topic, a few on average, and compare each partition with all of a wide topic.
with g as (
    select id from groups_group where group_id = %(group_id)s
), named as (
    select topic, partition, bool_or(owned) as owned, max(committed_offset) as committed_offset
    from (select o.topic, o.partition, false as owned, o.committed_offset
          from g
          join offsets_committedoffset o on o.group_id = g.id
          union all
          select a.topic, a.partition, true, null
          from g
          join groups_assignment a on a.group_id = g.id
          union all
          select t.name, generate_series(0, t.partitions - 1), false, null
          from g
          cross join groups_topic t
          where t.name = any(%(subscribed)s::text[])) n
    where (%(topic)s::text is null or topic = %(topic)s)
      and kcoord_sees(topic, %(visible_names)s, %(visible_prefixes)s, %(visible_denied)s, %(visible_denied_prefixes)s)
    group by topic, partition
), behind as (
    select k.topic, k.owned, t.id is null as deleted, w.sampled_at,
           case when c.known then greatest(w.log_end_offset - c.position, 0) end as lag,
           late.time_lag_ms, late.at_least_ms
    from named k
    left join groups_topic t on t.name = k.topic
    left join lateral (select * from groups_watermark where topic_id = t.id and partition = k.partition limit 1) w on true
    cross join lateral (
        select t.id as topic_id, k.partition, greatest(k.committed_offset, w.log_start_offset) as position,
               k.committed_offset is not null and w.id is not null as known) c
    -- include: time_lag
)
select topic, bool_or(owned) as owned, bool_or(deleted) as deleted, count(*) as partitions,
       count(*) - count(lag) as unknown_partitions, kcoord_bigint(sum(lag)) as lag,
       max(time_lag_ms) as time_lag_ms, max(at_least_ms) as at_least_ms,
       min(sampled_at) filter (where lag is not null) as sampled_at
from behind
group by topic
order by topic

-- name: lag_history
-- Without a topic: the totals of all topics that the caller may describe. All were sampled at the same instant. Peaks
-- of a total are of all topics, so a caller who may describe only some gets none of them.
select distinct on (at) at, lag, time_lag_ms
from (select at, kcoord_bigint(sum(lag)) as lag,
             case when bool_and(time_lag_ms is not null) then max(time_lag_ms) end as time_lag_ms
      from offsets_lagsample
      where group_name = %(group_id)s
        and (%(topic)s::text is null or topic = %(topic)s)
        and kcoord_sees(topic, %(visible_names)s, %(visible_prefixes)s, %(visible_denied)s, %(visible_denied_prefixes)s)
      group by at
      union all
      select at, lag, time_lag_ms
      from offsets_lagpeak
      where group_name = %(group_id)s
        and case when %(topic)s::text is null then %(all_topics)s and (topic = '' or parts = 1)
                 else topic = %(topic)s
                      and kcoord_sees(topic, %(visible_names)s, %(visible_prefixes)s, %(visible_denied)s,
                                      %(visible_denied_prefixes)s)
            end) looked
where (%(since)s::bigint is null or at >= %(since)s)
  and (%(until)s::bigint is null or at < %(until)s)
  and at > %(after)s
order by at, lag desc
limit %(limit)s

-- name: group_has_lag
-- Samples outlive their group.
select exists (select from groups_group where group_id = %(group_id)s)
       or exists (select from offsets_lagsample where group_name = %(group_id)s)

-- name: log_ends
-- Where the logs of partitions of a topic begin and end, as far as is known: the last watermark, and the farthest
-- offset that any group committed. One index lookup per partition for either.
select p.partition, w.log_start_offset, w.log_end_offset, c.committed
from unnest(%(partitions)s::int[]) as p (partition)
left join groups_topic t on t.name = %(topic)s
left join lateral (select * from groups_watermark where topic_id = t.id and partition = p.partition limit 1) w on true
cross join lateral (
    select max(committed_offset) as committed
    from offsets_committedoffset
    where topic = %(topic)s and partition = p.partition) c
