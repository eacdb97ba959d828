-- What the lists of groups show of the groups that `groups.sql` finds.

-- fragment: assigned
-- What assigns the partitions of consumer groups, by the core's rule (`preferred_assignor`): what most members ask for; on a
-- tie, or if none asks, what is set for the group, else the first of the server's assignors.
cross join lateral (
    select coalesce((select c.value
                     from groups_groupconfigoverride c
                     where c.group_name = g.group_id and c.name = %(setting)s and c.value = any(%(assignors)s::text[])),
                    (%(assignors)s::text[])[1]) as name) preferred
cross join lateral (
    select coalesce((select m.server_assignor
                     from groups_consumermember m
                     where m.group_id = g.id and m.server_assignor = any(%(assignors)s::text[])
                     group by m.server_assignor
                     order by count(*) desc, m.server_assignor <> preferred.name,
                              array_position(%(assignors)s::text[], m.server_assignor::text)
                     limit 1),
                    preferred.name) as name) assigned

-- name: consumer_groups_assigned_by
-- Consumer groups whose assignor has this in its name.
select g.id
from groups_group g
-- include: assigned
where g.type = 'consumer' and strpos(lower(assigned.name), lower(%(assignor)s)) > 0

-- name: assignors_of
select g.id, case g.type when 'consumer' then assigned.name when 'share' then 'simple' else g.protocol_name end
from groups_group g
-- include: assigned
where g.id = any(%(ids)s)

-- name: group_summaries
-- Topics by a loose index scan: one look per topic, however many partitions a group has. `committed`: with topics that are
-- committed alone; a group without members still has those. Those of a share group are what its members name.
select g.id as pk, g.group_id, g.type, g.state, g.state_since, g.generation_id, g.protocol_type, g.protocol_name,
       g.updated_at, g.held_until,
       (select count(*) from groups_member m where m.group_id = g.id)
       + (select count(*) from groups_consumermember m where m.group_id = g.id) as members,
       case when g.type = 'share' then array(
           select distinct n.topic
           from groups_consumermember m
           cross join lateral unnest(m.subscribed_topic_names) n (topic)
           where m.group_id = g.id
             and kcoord_sees(n.topic, %(visible_names)s, %(visible_prefixes)s,
                             %(visible_denied)s, %(visible_denied_prefixes)s)
           order by n.topic
           limit %(topics)s)
       else array(
           with recursive t (topic) as (
               select least((select min(a.topic) from groups_assignment a where a.group_id = g.id),
                            case when %(committed)s
                                 then (select min(o.topic) from offsets_committedoffset o where o.group_id = g.id)
                            end)
               union all
               select least((select min(a.topic) from groups_assignment a
                             where a.group_id = g.id and a.topic > t.topic),
                            case when %(committed)s
                                 then (select min(o.topic) from offsets_committedoffset o
                                       where o.group_id = g.id and o.topic > t.topic)
                            end)
               from t
               where t.topic is not null)
           select topic
           from t
           where topic is not null
             and kcoord_sees(topic, %(visible_names)s, %(visible_prefixes)s,
                             %(visible_denied)s, %(visible_denied_prefixes)s)
           limit %(topics)s) end as topics,
       l.lag, l.time_lag_ms, l.time_lag_at_least_ms, l.partitions, l.at as lag_sampled_at,
       array(select jsonb_build_array(v.kind, min(v.since))
             from offsets_groupverdict v
             where v.group_id = g.id
               and (v.topic = '' or kcoord_sees(v.topic, %(visible_names)s, %(visible_prefixes)s,
                                                %(visible_denied)s, %(visible_denied_prefixes)s))
             group by v.kind
             order by array_position(%(worst_first)s::text[], v.kind::text)) as verdicts,
       (select min(at) from offsets_verdictrun) as judged_at,
       coalesce(t.labels, '{}') as labels,
       (select coalesce(sum(u.unknown_partitions), 0)::int
        from offsets_topiclag u
        where u.group_id = g.id
          and kcoord_sees(u.topic, %(visible_names)s, %(visible_prefixes)s,
                          %(visible_denied)s, %(visible_denied_prefixes)s)) as unknown_partitions
from groups_group g
left join offsets_grouplag l on l.group_id = g.id
left join groups_grouplabels t on t.group_name = g.group_id
where g.id = any(%(ids)s)

-- name: visible_lags
-- How far groups were behind on some topics alone, at the last sample; a group of which that is not known has no row.
select l.group_id, kcoord_bigint(sum(s.lag))
from offsets_grouplag l
join groups_group g on g.id = l.group_id
join offsets_lagsample s on s.group_name = g.group_id and s.at = l.at
where (%(ids)s::bigint[] is null or l.group_id = any(%(ids)s))
  and kcoord_sees(s.topic, %(visible_names)s, %(visible_prefixes)s, %(visible_denied)s, %(visible_denied_prefixes)s)
group by l.group_id
having %(min_lag)s::bigint is null or sum(s.lag) >= %(min_lag)s

-- name: visible_partitions
-- How many partitions of some topics alone groups own, committed an offset on, or have begun.
select i.id, count(distinct (u.topic, u.partition))
from unnest(%(ids)s::bigint[]) i (id)
cross join lateral (select topic, partition from groups_assignment where group_id = i.id
                    union all
                    select topic, partition from offsets_committedoffset where group_id = i.id
                    union all
                    select t.name, p.partition
                    from offsets_sharepartition p
                    join groups_topic t on t.topic_id = p.topic_id
                    where p.group_id = i.id) u
where kcoord_sees(u.topic, %(visible_names)s, %(visible_prefixes)s, %(visible_denied)s, %(visible_denied_prefixes)s)
group by i.id
