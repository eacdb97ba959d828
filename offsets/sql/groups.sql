-- What the lists of groups of the API and of the dashboard find, and in which order. A page is two statements: one finds
-- which groups and in what order, `group_summaries` reads what is shown of them. `groups_by_key.sql` has
-- the orders without an index, `group_conditions.sql` what is looked up for the conditions before.

-- fragment: matching
-- Every condition of a list. The empty text is part of every id, the empty prefix of every name. Topics are looked up for
-- each group, with `limit 1`, which keeps a plan from reading all there is of a topic. States and types are compared as they are
-- stored: Postgres knows how many groups have each of those, and would take a function of them for rare.
and (%(states)s::text[] is null or g.state = any(%(states)s) or g.held_until > %(held_at)s)
and (%(types)s::text[] is null or g.type = any(%(types)s))
and (%(q)s::text = '' or strpos(lower(g.group_id), lower(%(q)s)) > 0)
and (%(regex)s::text is null or g.group_id ~ %(regex)s)
and (%(topic)s::text is null
     or (select true from groups_assignment a where a.group_id = g.id and a.topic = %(topic)s limit 1)
     or (select true from offsets_committedoffset o where o.group_id = g.id and o.topic = %(topic)s limit 1)
     or g.type = 'share' and (select true from groups_consumermember m
                              where m.group_id = g.id and m.subscribed_topic_names @> array[%(topic)s::text] limit 1))
and (%(labelled)s::text[] is null
     or exists (select from groups_grouplabels l
                where l.group_name = g.group_id
                  and (l.labels @> any(%(label_pairs)s::jsonb[]) or l.labels ?| %(label_names)s::text[]))
     or (select true from groups_assignment a where a.group_id = g.id and a.topic = any(%(labelled)s) limit 1)
     or (select true from offsets_committedoffset o
         where o.group_id = g.id and o.topic = any(%(labelled)s) limit 1)
     or (select true from groups_consumermember m where m.group_id = g.id
                and m.subscribed_topic_names && %(labelled)s limit 1))
and (%(among)s::bigint[] is null or g.id in (select unnest(%(among)s)))
and (%(min_lag)s::bigint is null
     or exists (select from offsets_grouplag l where l.group_id = g.id and l.lag >= %(min_lag)s))
and (%(min_time_lag_ms)s::bigint is null
     or exists (select from offsets_grouplag l where l.group_id = g.id
                  and coalesce(l.time_lag_ms, l.time_lag_at_least_ms) >= %(min_time_lag_ms)s))
and (%(assignor)s::text is null
     or g.type = 'classic' and strpos(lower(g.protocol_name), lower(%(assignor)s)) > 0
     or g.type = 'share' and strpos('simple', lower(%(assignor)s)) > 0
     or g.id in (select unnest(%(assigned)s::bigint[])))
and (%(coordinated)s::int[] is null or g.partition = any(%(coordinated)s))
and (%(lagging)s::bigint[] is null or g.id = any(%(lagging)s))
and (%(verdicts)s::text[] is null
     or exists (select from offsets_groupverdict v
                where v.group_id = g.id and v.kind = any(%(verdicts)s)
                  and (v.topic = '' or kcoord_sees(v.topic, %(topic_names)s, %(topic_prefixes)s,
                                                   %(topic_denied)s, %(topic_denied_prefixes)s))))
and (not %(well)s::boolean
     or not exists (select from offsets_groupverdict v
                    where v.group_id = g.id
                      and (v.topic = '' or kcoord_sees(v.topic, %(topic_names)s, %(topic_prefixes)s,
                                                       %(topic_denied)s, %(topic_denied_prefixes)s))))
and kcoord_sees(g.group_id, %(visible_names)s, %(visible_prefixes)s, %(visible_denied)s, %(visible_denied_prefixes)s)

-- name: list_groups_by_id
select g.id, g.group_id, null::bigint as key
from groups_group g
where g.group_id > %(after)s
  -- include: matching
order by g.group_id
limit %(limit)s

-- name: list_groups_by_id_before
select g.id, g.group_id, null::bigint as key
from groups_group g
where g.group_id < %(after)s
  -- include: matching
order by g.group_id desc
limit %(limit)s

-- name: list_groups_by_id_descending
select g.id, g.group_id, null::bigint as key
from groups_group g
where (%(after)s::text = '' or g.group_id < %(after)s)
  -- include: matching
order by g.group_id desc
limit %(limit)s

-- name: list_groups_by_id_descending_before
select g.id, g.group_id, null::bigint as key
from groups_group g
where g.group_id > %(after)s
  -- include: matching
order by g.group_id
limit %(limit)s

-- name: list_groups_by_id_within
-- Groups whose ids are in one of several ranges: a look into the index for each, however many other groups there are.
select found.id, found.group_id, null::bigint as key
from unnest(%(low)s::text[], %(high)s::text[]) as r (low, high)
cross join lateral (
    select g.id, g.group_id
    from groups_group g
    where g.group_id > %(after)s
      and g.group_id >= r.low
      and g.group_id < r.high
      -- include: matching
    order by g.group_id
    limit %(limit)s) found
order by found.group_id
limit %(limit)s

-- name: list_groups_by_id_within_descending
select found.id, found.group_id, null::bigint as key
from unnest(%(low)s::text[], %(high)s::text[]) as r (low, high)
cross join lateral (
    select g.id, g.group_id
    from groups_group g
    where g.group_id < %(after)s
      and g.group_id >= r.low
      and g.group_id < r.high
      -- include: matching
    order by g.group_id desc
    limit %(limit)s) found
order by found.group_id desc
limit %(limit)s

-- name: list_groups_by_change
-- The second comparison alone would do; the first is what the index can seek to.
select g.id, g.group_id, g.updated_at as key
from groups_group g
where (%(after_key)s::bigint is null
       or g.updated_at <= %(after_key)s and (g.updated_at < %(after_key)s or g.group_id > %(after)s))
  -- include: matching
order by g.updated_at desc, g.group_id
limit %(limit)s

-- name: list_groups_by_change_before
select g.id, g.group_id, g.updated_at as key
from groups_group g
where g.updated_at >= %(after_key)s and (g.updated_at > %(after_key)s or g.group_id < %(after)s)
  -- include: matching
order by g.updated_at, g.group_id desc
limit %(limit)s

-- name: list_groups_by_change_ascending
select g.id, g.group_id, g.updated_at as key
from groups_group g
where (%(after_key)s::bigint is null
       or g.updated_at >= %(after_key)s and (g.updated_at > %(after_key)s or g.group_id > %(after)s))
  -- include: matching
order by g.updated_at, g.group_id
limit %(limit)s

-- name: list_groups_by_change_ascending_before
select g.id, g.group_id, g.updated_at as key
from groups_group g
where g.updated_at <= %(after_key)s and (g.updated_at < %(after_key)s or g.group_id < %(after)s)
  -- include: matching
order by g.updated_at desc, g.group_id desc
limit %(limit)s

-- name: list_groups_by_state
select g.id, g.group_id, g.state as key
from groups_group g
where (g.state, g.group_id) > (%(after_key)s, %(after)s)
  -- include: matching
order by g.state, g.group_id
limit %(limit)s

-- name: list_groups_by_state_before
select g.id, g.group_id, g.state as key
from groups_group g
where (g.state, g.group_id) < (%(after_key)s, %(after)s)
  -- include: matching
order by g.state desc, g.group_id desc
limit %(limit)s

-- name: list_groups_by_state_descending
-- State by state, because the index has the ids of a state in ascending order only.
select s.id, s.group_id, s.state as key
from unnest(%(states_of_groups)s::text[]) of_groups (state)
cross join lateral (select g.id, g.group_id, g.state
                    from groups_group g
                    where g.state = of_groups.state
                      and (%(after_key)s::text is null or g.state < %(after_key)s
                           or g.state = %(after_key)s and g.group_id > %(after)s)
                      -- include: matching
                    order by g.group_id
                    limit %(limit)s) s
order by s.state desc, s.group_id
limit %(limit)s

-- name: list_groups_by_state_descending_before
select s.id, s.group_id, s.state as key
from unnest(%(states_of_groups)s::text[]) of_groups (state)
cross join lateral (select g.id, g.group_id, g.state
                    from groups_group g
                    where g.state = of_groups.state
                      and (g.state > %(after_key)s or g.state = %(after_key)s and g.group_id < %(after)s)
                      -- include: matching
                    order by g.group_id desc
                    limit %(limit)s) s
order by s.state, s.group_id desc
limit %(limit)s

-- name: count_groups_by_state
-- And how many of each are held.
select g.state, count(*), count(*) filter (where g.held_until > %(held_now)s)
from groups_group g
where true
  -- include: matching
group by g.state

-- name: count_groups_by_verdict
select w.kind, count(*)
from (select distinct group_id, kind
      from offsets_groupverdict
      where topic = '' or kcoord_sees(topic, %(topic_names)s, %(topic_prefixes)s,
                                      %(topic_denied)s, %(topic_denied_prefixes)s)) w
join groups_group g on g.id = w.group_id
where true
  -- include: matching
group by w.kind
