-- fragment: seen_topics
where kcoord_sees(t.name, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
  and (%(q)s::text is null or strpos(lower(t.name), lower(%(q)s)) > 0)

-- fragment: keyed
-- Topics with what they are sorted by besides their name: what is not known is less than all else. The sign turns the
-- smallest into the largest.
select t.id as pk, t.name,
       %(sign)s * case %(by)s::text when 'partitions' then t.partitions
                                    when 'created' then t.created_at
                                    when 'lag' then coalesce(l.lag, -1)
                                    when 'time_lag' then coalesce(l.time_lag_at_least_ms, l.time_lag_ms, -1) end as key
from groups_topic t
left join offsets_topictotal l on l.topic = t.name

-- name: topics_by_name
select t.id as pk, t.name, 0 as key
from groups_topic t
-- include: seen_topics
  and (%(edge)s::text is null or t.name > %(edge)s)
order by t.name
limit %(limit)s

-- name: topics_by_name_before
select t.id as pk, t.name, 0 as key
from groups_topic t
-- include: seen_topics
  and (%(edge)s::text is null or t.name < %(edge)s)
order by t.name desc
limit %(limit)s

-- name: topics_by_key
select s.pk, s.name, s.key
from (
    -- include: keyed
    -- include: seen_topics
) s
where %(edge)s::text is null or (s.key, s.name) > (%(edge_key)s, %(edge)s)
order by s.key, s.name
limit %(limit)s

-- name: topics_by_key_before
select s.pk, s.name, s.key
from (
    -- include: keyed
    -- include: seen_topics
) s
where (s.key, s.name) < (%(edge_key)s, %(edge)s)
order by s.key desc, s.name desc
limit %(limit)s

-- name: topic_lines
-- Groups that own partitions, and groups that have committed offsets. The search goes partition by partition and ends
-- after a fixed number of rows, so a topic that thousands of groups read costs no more than any other; the first rows
-- of a topic are its partition 0, once for each group.
select t.id as pk, t.name, t.partitions, t.created_at,
       (select count(*) from groups_watermark w where w.topic_id = t.id) as watermarks,
       (select min(w.sampled_at) from groups_watermark w where w.topic_id = t.id) as sampled_at,
       array(
           select distinct g.group_id
           from (select a.group_id from groups_assignment a where a.topic = t.name
                 order by a.partition limit %(rows)s) a
           join groups_group g on g.id = a.group_id
           where kcoord_sees(g.group_id, %(group_names)s, %(group_prefixes)s,
                             %(group_denied)s, %(group_denied_prefixes)s)
           order by g.group_id) as groups,
       array(
           select distinct g.group_id
           from (select o.group_id from offsets_committedoffset o where o.topic = t.name
                 order by o.partition limit %(rows)s) o
           join groups_group g on g.id = o.group_id
           where kcoord_sees(g.group_id, %(group_names)s, %(group_prefixes)s,
                             %(group_denied)s, %(group_denied_prefixes)s)
           order by g.group_id) as committed
from groups_topic t
where t.id = any(%(ids)s)

-- name: count_topics
select count(*)
from groups_topic t
-- include: seen_topics

-- name: topic_totals
select o.topic, o.groups, o.lag, g.group_id as worst_group, o.worst_lag, o.time_lag_ms, o.time_lag_at_least_ms, o.at
from offsets_topictotal o
left join groups_group g on g.id = o.worst_group_id
where o.topic = any(%(names)s::text[])

-- name: visible_topic_totals
-- The same over the groups that can be seen.
select l.topic, count(*) as groups,
       kcoord_bigint(sum(l.lag)) as lag,
       (array_agg(g.group_id order by l.lag desc, g.group_id) filter (where l.lag is not null))[1] as worst_group,
       max(l.lag) as worst_lag, max(l.time_lag_ms) as time_lag_ms,
       case when bool_or(l.time_lag_at_least_ms is not null)
            then max(coalesce(l.time_lag_at_least_ms, l.time_lag_ms)) end as time_lag_at_least_ms, max(l.at) as at
from offsets_topiclag l
join groups_group g on g.id = l.group_id
where l.topic = any(%(names)s::text[])
  and kcoord_sees(g.group_id, %(group_names)s, %(group_prefixes)s, %(group_denied)s, %(group_denied_prefixes)s)
group by l.topic
