-- name: topic_lags
-- Of the topics that the group owns or committed, the furthest behind first.
select p.topic, count(*), count(p.committed_offset), count(w.id) filter (where p.committed_offset is not null),
       sum(greatest(w.log_end_offset - greatest(p.committed_offset, w.log_start_offset), 0))
           filter (where p.committed_offset is not null and w.id is not null)::bigint as lag,
       min(w.sampled_at) filter (where p.committed_offset is not null), bool_or(t.id is not null)
from (select topic, partition, o.committed_offset
      from (select topic, partition from groups_assignment where group_id = %(pk)s) a
      full join (select topic, partition, committed_offset
                 from offsets_committedoffset where group_id = %(pk)s) o using (topic, partition)) p
left join groups_topic t on t.name = p.topic
left join groups_watermark w on w.topic_id = t.id and w.partition = p.partition
group by p.topic
order by lag desc nulls last, p.topic
limit %(limit)s

-- name: latest_lag_samples
select s.topic, s.at, s.lag, s.time_lag_ms
from unnest(%(topics)s::text[]) as wanted (topic)
cross join lateral (select topic, at, lag, time_lag_ms
                    from offsets_lagsample
                    where group_name = %(group_id)s and topic = wanted.topic and at > %(since)s
                    order by at desc
                    limit 1) s

-- name: lag_history
select topic, ((at - %(first)s) * %(slices)s / (%(last)s - %(first)s))::int as slice, max(lag), max(time_lag_ms)
from offsets_lagsample
where group_name = %(group_id)s and topic = any(%(topics)s) and at >= %(first)s and at < %(last)s
group by topic, slice
order by topic, slice

-- name: total_lag_history
-- One look samples all topics at the same instant.
select '', slice, max(lag), max(time_lag_ms)
from (select at, ((at - %(first)s) * %(slices)s / (%(last)s - %(first)s))::int as slice, sum(lag)::bigint as lag,
             max(time_lag_ms) as time_lag_ms
      from offsets_lagsample
      where group_name = %(group_id)s and at >= %(first)s and at < %(last)s
      group by at) looks
group by slice
order by slice
