-- name: topic_lags
-- Sums over all topics that the group owns or has committed, and the topics with the largest lag. The sums
-- are read from indexes where nothing was committed. For a committed offset below the start of the log, lag counts from
-- the start: deleted records cannot be read.
with owned as (
    select topic, count(*) as partitions
    from groups_assignment
    where group_id = %(pk)s
      and kcoord_sees(topic, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
    group by topic),
committed as (
    select o.topic, count(*) as committed, count(*) filter (where a.partition is null) as unowned,
           count(w.id) as measured,
           kcoord_bigint(sum(greatest(w.log_end_offset - greatest(o.committed_offset, w.log_start_offset), 0))
               filter (where w.id is not null)) as lag,
           min(w.sampled_at) as sampled_at
    from offsets_committedoffset o
    left join groups_assignment a on a.group_id = o.group_id and a.topic = o.topic and a.partition = o.partition
    left join groups_topic t on t.name = o.topic
    left join lateral (select * from groups_watermark where topic_id = t.id and partition = o.partition limit 1) w on true
    where o.group_id = %(pk)s
      and kcoord_sees(o.topic, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
    group by o.topic),
line as (
    select topic, coalesce(o.partitions, 0) + coalesce(c.unowned, 0) as partitions,
           coalesce(c.committed, 0) as committed, coalesce(c.measured, 0) as measured, c.lag, c.sampled_at
    from owned o
    full join committed c using (topic)),
furthest as (
    select *
    from line
    where strpos(lower(topic), lower(%(q)s)) > 0
    order by lag desc nulls last, topic
    limit %(limit)s)
select total.*, f.topic, f.partitions, f.committed, f.measured, f.lag, f.sampled_at, t.id is not null as "exists"
from (select coalesce(sum(partitions), 0)::bigint as all_partitions,
             coalesce(sum(committed), 0)::bigint as all_committed, coalesce(sum(measured), 0)::bigint as all_measured,
             kcoord_bigint(sum(lag)) as all_lag, count(*) as topics
      from line) total
left join furthest f on true
left join groups_topic t on t.name = f.topic
order by f.lag desc nulls last, f.topic

-- name: latest_lag_samples
select s.topic, s.at, s.lag, s.time_lag_ms, l.time_lag_at_least_ms
from unnest(%(topics)s::text[]) as wanted (topic)
cross join lateral (select topic, at, lag, time_lag_ms
                    from offsets_lagsample
                    where group_name = %(group_id)s and topic = wanted.topic and at > %(since)s
                    order by at desc
                    limit 1) s
left join offsets_topiclag l on l.group_id = %(pk)s and l.topic = s.topic and l.at = s.at

-- name: lag_history
select topic, ((at - %(first)s) * %(slices)s / (%(last)s - %(first)s))::int as slice, max(lag) as lag,
       max(time_lag_ms) as time_lag_ms
from (select topic, at, lag, time_lag_ms
      from offsets_lagsample
      where group_name = %(group_id)s and topic = any(%(topics)s) and at >= %(first)s and at < %(last)s
      union all
      select topic, at, lag, time_lag_ms
      from offsets_lagpeak
      where group_name = %(group_id)s and topic = any(%(topics)s) and at >= %(first)s and at < %(last)s) looked
group by topic, slice
order by topic, slice

-- fragment: own_topics
-- The topics on which a group's lag was sampled, by steps through the key, which begins with the group: one look into the
-- index for each. The index of instants has the samples of all groups. The last step finds none.
with recursive own as (
    (select topic from offsets_lagsample where group_name = %(group_id)s order by topic limit 1)
    union all
    select (select s.topic from offsets_lagsample s
            where s.group_name = %(group_id)s and s.topic > own.topic
            order by s.topic limit 1)
    from own
    where own.topic is not null)

-- name: total_lag_history
-- One look samples all topics at the same instant. The peak of a topic alone is at most that of the sum; the peak of the
-- sum is over all topics, which the viewer must see.
-- include: own_topics
select '' as topic, slice, max(lag) as lag, max(time_lag_ms) as time_lag_ms
from (select at, ((at - %(first)s) * %(slices)s / (%(last)s - %(first)s))::int as slice,
             kcoord_bigint(sum(lag)) as lag,
             case when bool_and(time_lag_ms is not null) then max(time_lag_ms) end as time_lag_ms
      from own
      cross join lateral (select s.at, s.lag, s.time_lag_ms
                          from offsets_lagsample s
                          where (s.group_name, s.topic, s.at) >= (%(group_id)s, own.topic, %(first)s::bigint)
                            and (s.group_name, s.topic, s.at) < (%(group_id)s, own.topic, %(last)s::bigint)) looked
      where kcoord_sees(own.topic, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
      group by at
      union all
      select at, ((at - %(first)s) * %(slices)s / (%(last)s - %(first)s))::int, lag, time_lag_ms
      from offsets_lagpeak
      where group_name = %(group_id)s and at >= %(first)s and at < %(last)s
        and case when topic = '' then %(all_topics)s
                 else kcoord_sees(topic, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s,
                                  %(topic_denied_prefixes)s)
            end) looks
group by slice
order by slice
