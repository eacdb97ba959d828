-- name: count_groups
select type, state, count(*)
from groups_group
where kcoord_sees(group_id, %(group_names)s, %(group_prefixes)s, %(group_denied)s, %(group_denied_prefixes)s)
group by type, state
order by type, state

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
