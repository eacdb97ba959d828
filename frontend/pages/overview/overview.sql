-- name: count_groups
select type, state, count(*)
from groups_group
where kcoord_sees(group_id, %(group_names)s, %(group_prefixes)s, %(group_denied)s, %(group_denied_prefixes)s)
group by type, state
order by type, state

-- name: total_lag
-- `known`: of how many groups; `sampled_at`: the oldest instant.
select kcoord_bigint(sum(l.lag)) as lag, count(l.lag) as known, min(l.at) filter (where l.lag is not null) as sampled_at
from offsets_grouplag l
join groups_group g on g.id = l.group_id
where kcoord_sees(g.group_id, %(group_names)s, %(group_prefixes)s, %(group_denied)s, %(group_denied_prefixes)s)

-- name: visible_total_lag
-- The same on the topics that can be seen.
select kcoord_bigint(sum(l.lag)) as lag, count(distinct l.group_id) as known, min(l.at) as sampled_at
from offsets_topiclag l
join groups_group g on g.id = l.group_id
where l.lag is not null
  and kcoord_sees(l.topic, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
  and kcoord_sees(g.group_id, %(group_names)s, %(group_prefixes)s, %(group_denied)s, %(group_denied_prefixes)s)

-- name: furthest_behind
select g.group_id, t.time_lag_ms, l.time_lag_ms is null as at_least, l.lag, l.at
from offsets_grouplag l
join groups_group g on g.id = l.group_id
cross join lateral (select coalesce(l.time_lag_ms, l.time_lag_at_least_ms) as time_lag_ms) t
where t.time_lag_ms > 0
  and kcoord_sees(g.group_id, %(group_names)s, %(group_prefixes)s, %(group_denied)s, %(group_denied_prefixes)s)
order by t.time_lag_ms desc, g.group_id
limit %(limit)s

-- name: labels_of_groups
select group_name, labels
from groups_grouplabels
where group_name = any(%(group_ids)s::text[])

-- name: timers_ran_at
select ticked_at from kcoord_timerheartbeat where id = 1

-- name: lag_sampled_at
select max(at) from offsets_lagsample

-- name: groups_judged_at
select name, at from offsets_verdictrun

-- name: postgres_usage
select current_setting('server_version') as version,
       (select count(*) from pg_stat_activity where backend_type = 'client backend') as used,
       current_setting('max_connections')::int as most
