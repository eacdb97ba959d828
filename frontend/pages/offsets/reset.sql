-- name: group_pk
select id from groups_group where group_id = %(group_id)s

-- name: reset_topics
-- The topics on which a group has committed, the furthest behind first. Lag as in `topic_lags`.
select o.topic, count(*) as partitions, count(w.id) as measured,
       kcoord_bigint(sum(greatest(w.log_end_offset - greatest(o.committed_offset, w.log_start_offset), 0))
           filter (where w.id is not null)) as lag,
       count(*) over () as topics
from offsets_committedoffset o
left join groups_topic t on t.name = o.topic
left join lateral (select * from groups_watermark where topic_id = t.id and partition = o.partition limit 1) w on true
where o.group_id = %(pk)s
  and kcoord_sees(o.topic, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
group by o.topic
order by 4 desc nulls last, o.topic
limit %(limit)s

-- name: reset_partitions
select o.topic, o.partition, o.committed_offset,
       case when w.id is not null
            then greatest(w.log_end_offset - greatest(o.committed_offset, w.log_start_offset), 0) end as lag
from offsets_committedoffset o
left join groups_topic t on t.name = o.topic
left join lateral (select * from groups_watermark where topic_id = t.id and partition = o.partition limit 1) w on true
where o.group_id = %(pk)s and o.topic = any(%(topics)s)
  and kcoord_sees(o.topic, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
order by o.topic, o.partition
limit %(limit)s

-- name: plan_progress
-- Where the partitions of a plan are now. `planned_lag`: right after the plan is applied, over logs that are known.
-- Each partition is looked up by itself: a join compares all with all, for seconds, while Postgres takes a group that
-- has just grown, or a plan that was just made, for a few rows.
select count(*) as partitions,
       count(*) filter (where o.committed_offset is not distinct from l.new_offset) as as_planned,
       count(*) filter (where o.committed_offset > l.new_offset) as ahead,
       count(*) filter (where w.id is null) as unmeasured,
       kcoord_bigint(sum(greatest(w.log_end_offset - greatest(l.new_offset, w.log_start_offset), 0))) as planned_lag,
       kcoord_bigint(sum(greatest(w.log_end_offset - greatest(o.committed_offset, w.log_start_offset), 0))) as lag,
       (select coalesce(array_agg(distinct p.topic), '{}') from
           (select topic
            from offsets_plannedoffset
            where plan_id = %(id)s
              and kcoord_sees(topic, %(topic_names)s, %(topic_prefixes)s,
                              %(topic_denied)s, %(topic_denied_prefixes)s)
            limit 10000) p) as topics
from offsets_plannedoffset l
left join lateral (select committed_offset
                   from offsets_committedoffset
                   where group_id = %(pk)s and topic = l.topic and partition = l.partition
                   limit 1) o on true
left join lateral (select m.id, m.log_start_offset, m.log_end_offset
                   from groups_topic t
                   join groups_watermark m on m.topic_id = t.id and m.partition = l.partition
                   where t.name = l.topic
                   limit 1) w on true
where l.plan_id = %(id)s
  and kcoord_sees(l.topic, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)

-- name: reading_rate
-- How much lag changed on some topics between their first and last sample since `since`, and how far the logs of their
-- first partitions grew in about that time. Topics with a single sample say nothing.
with sampled as (
    select wanted.topic, first.at as first_at, last.at as last_at, first.lag as first_lag, last.lag as last_lag
    from unnest(%(topics)s::text[]) as wanted (topic)
    cross join lateral (select at, lag from offsets_lagsample
                        where group_name = %(group_id)s and topic = wanted.topic and at >= %(since)s
                        order by at limit 1) first
    cross join lateral (select at, lag from offsets_lagsample
                        where group_name = %(group_id)s and topic = wanted.topic and at >= %(since)s
                        order by at desc limit 1) last
    where last.at > first.at),
partition as (
    select t.id as topic_id, o.partition, s.first_at
    from sampled s
    join groups_topic t on t.name = s.topic
    join offsets_committedoffset o on o.group_id = %(pk)s and o.topic = s.topic
    limit %(limit)s),
grown as (
    select kcoord_bigint(sum(w.log_end_offset - b.log_end_offset)) as written, count(*) as measured
    from partition p
    join groups_watermark w on w.topic_id = p.topic_id and w.partition = p.partition
    cross join lateral (select log_end_offset from offsets_watermarksample
                        where topic_id = p.topic_id and partition = p.partition and at <= p.first_at
                        order by at desc limit 1) b)
select max(s.last_at) - min(s.first_at) as span_ms, kcoord_bigint(sum(s.last_lag - s.first_lag)) as lag_change,
       g.written, g.measured, (select count(*) from partition) as partitions
from grown g
left join sampled s on true
group by g.written, g.measured
