-- name: read_quotas
-- All quotas, and the owners of tokens where a quota of a user or a group may matter.
select (select coalesce(json_agg(json_build_array(q.kind, q.name, q.budget, q."limit")), '[]'::json)
          from kcoord_quota q) as quotas,
       (select coalesce(json_agg(json_build_array(o.id, o.username, o.groups)), '[]'::json)
          from (select t.id,
                       u.username,
                       coalesce((select json_agg(g.name)
                                   from auth_user_groups m
                                   join auth_group g on g.id = m.group_id
                                  where m.user_id = u.id), '[]'::json) as groups
                  from kcoord_apitoken t
                  join auth_user u on u.id = t.owner_id
                 where exists (select from kcoord_quota q where q.kind in ('user', 'group'))) o) as owners

-- name: note_throttled
with fresh as (
    select kind, name, budget, "limit", used, times,
           coalesce(%(now)s::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint) as at
      from unnest(%(kinds)s::text[], %(names)s::text[], %(budgets)s::text[], %(limits)s::float8[], %(used)s::float8[],
                  %(times)s::bigint[]) as given(kind, name, budget, "limit", used, times)
), old as (
    delete from kcoord_throttled
     where throttled_at < coalesce(%(now)s::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint)
                          - %(kept_ms)s
       and not exists (select from fresh f
                        where (f.kind, f.name, f.budget)
                            = (kcoord_throttled.kind, kcoord_throttled.name, kcoord_throttled.budget))
)
insert into kcoord_throttled as t (kind, name, budget, "limit", used, times, since, throttled_at)
select kind, name, budget, "limit", used, times, at, at
  from fresh
 order by kind, name, budget
on conflict (kind, name, budget) do update
   set "limit" = excluded."limit",
       used = excluded.used,
       times = case when t.throttled_at < excluded.throttled_at - %(kept_ms)s then 0 else t.times end + excluded.times,
       since = case when t.throttled_at < excluded.throttled_at - %(kept_ms)s then excluded.since else t.since end,
       throttled_at = greatest(t.throttled_at, excluded.throttled_at)

-- name: read_throttled
-- The holders that were throttled last come first.
select kind, name, budget, "limit", used, times, since, throttled_at
  from kcoord_throttled
 where throttled_at >= %(since)s
 order by throttled_at desc, kind, name, budget
 limit %(most)s
