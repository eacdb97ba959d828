-- name: lag_looks
-- How far some groups were behind at each look of a time, on the topics that they have committed on: one range of an index
-- for each topic. Nothing of a group with more than %(most)s topics.
select g.id as group_id, t.topics,
       coalesce(array_agg(l.at order by l.at) filter (where l.at is not null), '{}') as at,
       coalesce(array_agg(l.lag order by l.at) filter (where l.at is not null), '{}') as lag,
       coalesce(array_agg(l.parts order by l.at) filter (where l.at is not null), '{}') as parts
from groups_group g
cross join lateral (
    select count(*) as topics, array_agg(topic) as names
    from (select topic
          from offsets_topiclag
          where group_id = g.id
            and kcoord_sees(topic, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
          limit %(most)s + 1) known) t
left join lateral (
    select s.at, kcoord_bigint(sum(s.lag)) as lag, count(*) as parts
    from unnest(t.names) n (topic)
    cross join lateral (
        select s.at, s.lag
        from offsets_lagsample s
        where (s.group_name, s.topic, s.at) >= (g.group_id, n.topic, %(first)s::bigint)
          and (s.group_name, s.topic, s.at) <= (g.group_id, n.topic, %(last)s::bigint)) s
    where t.topics <= %(most)s
    group by s.at) l on true
where g.id = any(%(ids)s)
group by g.id, t.topics
