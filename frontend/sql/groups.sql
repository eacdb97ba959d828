-- name: count_groups_by_state
-- Counts for the state filter: search and type apply to them, the chosen states do not.
select state, count(*)
from groups_group
where (%(type)s::text is null or type = %(type)s)
  and (%(q)s::text is null or strpos(lower(group_id), lower(%(q)s)) > 0)
group by state

-- name: groups_by_name_after
select id
from groups_group
where (%(after)s::text is null or group_id > %(after)s)
  and (%(states)s::text[] is null or state = any(%(states)s))
  and (%(type)s::text is null or type = %(type)s)
  and (%(q)s::text is null or strpos(lower(group_id), lower(%(q)s)) > 0)
order by group_id
limit %(limit)s

-- name: groups_by_name_before
select id
from groups_group
where group_id < %(before)s
  and (%(states)s::text[] is null or state = any(%(states)s))
  and (%(type)s::text is null or type = %(type)s)
  and (%(q)s::text is null or strpos(lower(group_id), lower(%(q)s)) > 0)
order by group_id desc
limit %(limit)s

-- name: groups_by_change_after
-- The second comparison alone would do; the first is what the index can seek to.
select id
from groups_group
where (%(after)s::text is null
       or updated_at <= %(after_at)s and (updated_at < %(after_at)s or group_id > %(after)s))
  and (%(states)s::text[] is null or state = any(%(states)s))
  and (%(type)s::text is null or type = %(type)s)
  and (%(q)s::text is null or strpos(lower(group_id), lower(%(q)s)) > 0)
order by updated_at desc, group_id
limit %(limit)s

-- name: groups_by_change_before
select id
from groups_group
where updated_at >= %(before_at)s and (updated_at > %(before_at)s or group_id < %(before)s)
  and (%(states)s::text[] is null or state = any(%(states)s))
  and (%(type)s::text is null or type = %(type)s)
  and (%(q)s::text is null or strpos(lower(group_id), lower(%(q)s)) > 0)
order by updated_at, group_id desc
limit %(limit)s

-- name: groups_by_lag_after
-- As of the last sample; groups of unknown lag come last.
select g.id
from groups_group g
left join offsets_grouplag l on l.group_id = g.id
where (%(after)s::text is null
       or (-coalesce(l.lag, -1), g.group_id) > (-(%(after_at)s::bigint), %(after)s))
  and (%(states)s::text[] is null or g.state = any(%(states)s))
  and (%(type)s::text is null or g.type = %(type)s)
  and (%(q)s::text is null or strpos(lower(g.group_id), lower(%(q)s)) > 0)
order by -coalesce(l.lag, -1), g.group_id
limit %(limit)s

-- name: groups_by_lag_before
select g.id
from groups_group g
left join offsets_grouplag l on l.group_id = g.id
where (-coalesce(l.lag, -1), g.group_id) < (-(%(before_at)s::bigint), %(before)s)
  and (%(states)s::text[] is null or g.state = any(%(states)s))
  and (%(type)s::text is null or g.type = %(type)s)
  and (%(q)s::text is null or strpos(lower(g.group_id), lower(%(q)s)) > 0)
order by -coalesce(l.lag, -1) desc, g.group_id desc
limit %(limit)s

-- name: group_summaries
-- Topics by a loose index scan: one look per topic, however many partitions a group has. A group without members
-- still has the topics it committed.
select g.id, g.group_id, g.type, g.state, g.state_since, g.generation_id, g.protocol_name, g.updated_at,
       (select count(*) from groups_member m where m.group_id = g.id)
       + (select count(*) from groups_consumermember c where c.group_id = g.id) as members,
       array(
           with recursive t (topic) as (
               select least((select min(a.topic) from groups_assignment a where a.group_id = g.id),
                            (select min(o.topic) from offsets_committedoffset o where o.group_id = g.id))
               union all
               select least((select min(a.topic) from groups_assignment a
                             where a.group_id = g.id and a.topic > t.topic),
                            (select min(o.topic) from offsets_committedoffset o
                             where o.group_id = g.id and o.topic > t.topic))
               from t
               where t.topic is not null)
           select topic from t where topic is not null limit %(topics)s) as topics,
       l.lag, l.time_lag_ms, l.at
from groups_group g
left join offsets_grouplag l on l.group_id = g.id
where g.id = any(%(ids)s)
