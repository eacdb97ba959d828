-- name: sampled_overview
-- Groups and members by type and state, and when the last of them was sampled. No names.
select g.type, l.state, count(*) as groups, sum(l.members)::bigint as members, max(l.at) as at
from offsets_grouplag l
join groups_group g on g.id = l.group_id
where l.state <> ''
group by g.type, l.state
order by g.type, l.state

-- name: sampled_offsets
-- Committed offsets of all groups; share groups have none. No names.
select coalesce(sum(l.partitions), 0)::bigint
from offsets_topiclag l
join groups_group g on g.id = l.group_id
where g.type <> 'share'

-- name: counted_verdicts
-- Groups by verdict. No names.
select kind, count(*)
from (select distinct group_id, kind from offsets_groupverdict) v
group by kind

-- name: visible_verdicts
-- Of these groups, those about visible topics or none, and since when.
select g.group_id as "group", v.kind as verdict, min(v.since) as since
from offsets_groupverdict v
join groups_group g on g.id = v.group_id
where v.group_id = any(%(groups)s::bigint[])
  and (v.topic = '' or kcoord_sees(v.topic, %(topic_names)s, %(topic_prefixes)s,
                                   %(topic_denied)s, %(topic_denied_prefixes)s))
group by g.group_id, v.kind
order by g.group_id, v.kind

-- name: sampled_groups
-- The groups of the largest lag, as last sampled, and how many there are. Totals are those of visible topics.
with totals as (
    select group_id, max(max_lag) as max_lag,
           kcoord_bigint(sum(lag)) as lag,
           case when bool_and(time_lag_ms is not null) filter (where lag is not null) then max(time_lag_ms)
           end as time_lag_ms
    from offsets_topiclag
    where kcoord_sees(topic, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
    group by group_id
)
select g.id, count(*) over () as found, g.group_id as "group", g.type, coalesce(g.protocol_type, '') as protocol_type,
       coalesce(g.protocol_name, '') as protocol, l.state, l.generation_id, l.members, t.lag, t.max_lag, t.time_lag_ms
from offsets_grouplag l
join groups_group g on g.id = l.group_id
left join totals t on t.group_id = l.group_id
where l.state <> ''
  and kcoord_sees(g.group_id, %(group_names)s, %(group_prefixes)s, %(group_denied)s, %(group_denied_prefixes)s)
order by t.lag desc nulls last, g.group_id
limit %(limit)s

-- name: sampled_topics
-- Of these groups, the topics of the largest lag, and how many there are.
select count(*) over () as found, g.group_id as "group", l.topic, l.lag, l.time_lag_ms, l.committed_offsets,
       l.log_end_offsets, l.unknown_partitions
from offsets_topiclag l
join groups_group g on g.id = l.group_id
where l.group_id = any(%(groups)s::bigint[])
  and kcoord_sees(l.topic, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
order by l.lag desc nulls last, l.group_id, l.topic
limit %(limit)s
