-- name: sampled_topics
-- The topics on which a group's lag was sampled.
-- include: own_topics
select topic
from own
where topic is not null
  and kcoord_sees(topic, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
limit %(limit)s

-- name: lag_by_step
-- Of each group and topic the last sample of each step: the rows that are read are as many as are drawn, however often
-- lag was sampled. Samples of one look are of the same instant, so the last ones of a step add up.
select i.number, n.step, kcoord_bigint(sum(s.lag)) as lag,
       case when bool_and(s.time_lag_ms is not null) then max(s.time_lag_ms) end as time_lag_ms
from unnest(%(numbers)s::int[], %(groups)s::text[], %(topics)s::text[]) as i (number, group_name, topic)
cross join generate_series(0, %(steps)s::int - 1) as n (step)
cross join lateral (
    select s.lag, s.time_lag_ms
    from offsets_lagsample s
    where (s.group_name, s.topic, s.at) >= (i.group_name, i.topic, %(first)s::bigint + n.step * %(step_ms)s::bigint)
      and (s.group_name, s.topic, s.at) < (i.group_name, i.topic, %(first)s::bigint + (n.step + 1) * %(step_ms)s::bigint)
    order by s.group_name desc, s.topic desc, s.at desc
    limit 1) s
group by i.number, n.step
order by i.number, n.step

-- name: samples_in_span
-- How many samples of one group and topic there are in a span, at most %(most)s.
select count(*)
from (select
      from offsets_lagsample
      where (group_name, topic, at) >= (%(group_id)s, %(topic)s, %(first)s::bigint)
        and (group_name, topic, at) < (%(group_id)s, %(topic)s, %(last)s::bigint)
      limit %(most)s) s

-- name: lag_peaks_by_step
-- The largest lag of each step. One look samples everything at the same instant, so what is compared are sums by instant.
-- Of what was thinned, the peaks are kept beside: of a sum, whose other name is empty, only if it is over no more than
-- is shown; each part is at most the sum.
select number, step, least(max(lag), 9223372036854775807)::bigint as lag, max(time_lag_ms) as time_lag_ms
from (select i.number, ((s.at - %(first)s::bigint) / %(step_ms)s::bigint)::int as step, sum(s.lag) as lag,
             case when bool_and(s.time_lag_ms is not null) then max(s.time_lag_ms) end as time_lag_ms
      from unnest(%(numbers)s::int[], %(groups)s::text[], %(topics)s::text[]) as i (number, group_name, topic)
      cross join lateral (
          select s.at, s.lag, s.time_lag_ms
          from offsets_lagsample s
          where (s.group_name, s.topic, s.at) >= (i.group_name, i.topic, %(first)s::bigint)
            and (s.group_name, s.topic, s.at)
                < (i.group_name, i.topic, %(first)s::bigint + %(steps)s::bigint * %(step_ms)s::bigint)) s
      group by i.number, s.at
      union all
      select i.number, ((p.at - %(first)s::bigint) / %(step_ms)s::bigint)::int, p.lag, p.time_lag_ms
      from unnest(%(numbers)s::int[] || %(sum_numbers)s::int[], %(groups)s::text[] || %(sum_groups)s::text[],
                  %(topics)s::text[] || %(sum_topics)s::text[]) as i (number, group_name, topic)
      cross join lateral (
          select p.at, p.lag, p.time_lag_ms
          from offsets_lagpeak p
          where (p.group_name, p.topic, p.at) >= (i.group_name, i.topic, %(first)s::bigint)
            and (p.group_name, p.topic, p.at)
                < (i.group_name, i.topic, %(first)s::bigint + %(steps)s::bigint * %(step_ms)s::bigint)
            and (i.group_name <> '' and i.topic <> ''
                 or p.parts <= cardinality(array_positions(%(numbers)s::int[], i.number)))) p) looks
group by number, step
order by number, step

-- name: lag_at_end
-- The last look in a span: its instant, and the sums of what it found.
select number, at, least(sum(lag), 9223372036854775807)::bigint as lag,
       case when bool_and(time_lag_ms is not null) then max(time_lag_ms) end as time_lag_ms
from (select i.number, s.at, s.lag, s.time_lag_ms, max(s.at) over (partition by i.number) as newest
      from unnest(%(numbers)s::int[], %(groups)s::text[], %(topics)s::text[]) as i (number, group_name, topic)
      cross join lateral (
          select s.at, s.lag, s.time_lag_ms
          from offsets_lagsample s
          where (s.group_name, s.topic, s.at) >= (i.group_name, i.topic, %(first)s::bigint)
            and (s.group_name, s.topic, s.at) < (i.group_name, i.topic, %(last)s::bigint)
          order by s.group_name desc, s.topic desc, s.at desc
          limit 1) s) found
where at = newest
group by number, at

-- name: marks_in_span
-- Plans of a group, changes of the owner of its coordinator partition (null: none of them), and alerts.
select e.at, e.what, e.name
from (select p.applied_at as at, 'applied' as what, p.applied_by as name
      from offsets_offsetplan p where p.group_name = %(group_id)s
      union all
      select p.undone_at, 'undone', p.undone_by
      from offsets_offsetplan p where p.group_name = %(group_id)s
      union all
      select c.at, 'handed', coalesce(nullif(c.from_node, ''), 'nobody') || ' → ' || coalesce(nullif(c.to_node, ''), 'nobody')
      from groups_partitionchange c
      where c.partition = %(coordinator)s::int and c.at >= %(first)s and c.at < %(last)s
      union all
      select t.at, t.what, r.name
      from offsets_alert a
      join offsets_alertrule r on r.id = a.rule_id
      cross join lateral (values (a.opened_at, 'opened'), (a.resolved_at, 'resolved')) t (at, what)
      where a.group_name = %(group_id)s and a.opened_at is not null
        and (a.resolved_at is null or a.resolved_at >= %(first)s)) e
where e.at >= %(first)s and e.at < %(last)s
order by e.at

-- name: groups_of_topic
-- Groups that have committed on a topic, the furthest behind first. They are looked for at most %(rows)s offsets deep;
-- the first ones of a topic are those of its partition 0, once for each group.
select g.group_id
from (select distinct o.group_id
      from (select group_id from offsets_committedoffset where topic = %(topic)s order by partition limit %(rows)s) o) f
join groups_group g on g.id = f.group_id
left join offsets_topiclag l on l.group_id = f.group_id and l.topic = %(topic)s
where kcoord_sees(g.group_id, %(group_names)s, %(group_prefixes)s, %(group_denied)s, %(group_denied_prefixes)s)
order by l.lag desc nulls last, g.group_id
limit %(limit)s
