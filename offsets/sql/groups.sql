-- What the lists of groups of the API and of the dashboard find, and in which order. A page is two statements: one finds
-- which groups and in what order, `group_summaries` reads what is shown of them. `group_conditions.sql` has what is looked up
-- for the conditions before.

-- fragment: matching
-- Every condition of a list. The empty text is part of every id, the empty prefix of every name. Topics are looked up for
-- each group, with `limit 1`, which keeps a plan from reading all there is of a topic. States and types are compared as they are
-- stored: Postgres knows how many groups have each of those, and would take a function of them for rare.
and (%(states)s::text[] is null or g.state = any(%(states)s))
and (%(types)s::text[] is null or g.type = any(%(types)s))
and (%(q)s::text = '' or strpos(lower(g.group_id), lower(%(q)s)) > 0)
and (%(regex)s::text is null or g.group_id ~ %(regex)s)
and (%(topic)s::text is null
     or (select true from groups_assignment a where a.group_id = g.id and a.topic = %(topic)s limit 1)
     or (select true from offsets_committedoffset o where o.group_id = g.id and o.topic = %(topic)s limit 1))
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
     or exists (select from offsets_grouplag l where l.group_id = g.id and l.time_lag_ms >= %(min_time_lag_ms)s))
and (%(assignor)s::text is null
     or g.type = 'classic' and strpos(lower(g.protocol_name), lower(%(assignor)s)) > 0
     or g.id in (select unnest(%(assigned)s::bigint[])))
and (%(coordinated)s::int[] is null or g.partition = any(%(coordinated)s))
and (%(lagging)s::bigint[] is null or g.id = any(%(lagging)s))
and (%(verdicts)s::text[] is null
     or exists (select from offsets_groupverdict v
                where v.group_id = g.id and v.kind = any(%(verdicts)s)
                  and (v.topic = '' or kcoord_sees(v.topic, %(topic_names)s, %(topic_prefixes)s,
                                                   %(topic_denied)s, %(topic_denied_prefixes)s))))
and kcoord_sees(g.group_id, %(visible_names)s, %(visible_prefixes)s, %(visible_denied)s, %(visible_denied_prefixes)s)

-- fragment: with_lag
-- Groups with the lag that they are sorted by: a group whose lag is not known is behind by less than any other. The sign
-- turns the smallest into the largest. `lag_of` and `lags`: what counts instead of the lag on all topics.
select g.id, g.group_id,
       %(sign)s * coalesce(case when %(lag_of)s::bigint[] is null then l.lag else v.lag end, -1) as key
from groups_group g
left join offsets_grouplag l on l.group_id = g.id
left join unnest(%(lag_of)s::bigint[], %(lags)s::bigint[]) v (id, lag) on v.id = g.id
where true

-- fragment: with_members
select g.id, g.group_id, %(sign)s * (coalesce(classic.members, 0) + coalesce(consumer.members, 0)) as key
from groups_group g
left join (select group_id, count(*) as members from groups_member group by group_id) classic
    on classic.group_id = g.id
left join (select group_id, count(*) as members from groups_consumermember group by group_id) consumer
    on consumer.group_id = g.id
where true

-- fragment: with_time_lag
select g.id, g.group_id, %(sign)s * coalesce(l.time_lag_ms, -1) as key
from groups_group g
left join offsets_grouplag l on l.group_id = g.id
where true

-- fragment: with_partitions
select g.id, g.group_id, %(sign)s * coalesce(l.partitions, -1)::bigint as key
from groups_group g
left join offsets_grouplag l on l.group_id = g.id
where true

-- fragment: with_coordinator
-- By the places of the nodes that coordinate partitions; groups without a node come before all others.
select g.id, g.group_id, %(sign)s * coalesce(n.place, 0)::bigint as key
from groups_group g
left join unnest(%(coordinated_partitions)s::int[], %(places)s::int[]) n (partition, place) on n.partition = g.partition
where true

-- fragment: with_owner
-- By the label owner, else team, as the list shows it. Its key begins with an o; that of groups without one is before or
-- after it, so that they are the last in both directions.
select g.id, g.group_id,
       coalesce('o' || coalesce(nullif(l.labels ->> 'owner', ''), nullif(l.labels ->> 'team', '')), %(unowned)s) as key
from groups_group g
left join groups_grouplabels l on l.group_name = g.group_id
where true

-- fragment: with_state_since
select g.id, g.group_id, %(sign)s * g.state_since as key
from groups_group g
where true

-- fragment: with_generation
select g.id, g.group_id, %(sign)s * g.generation_id::bigint as key
from groups_group g
where true

-- fragment: first_keys
where %(after_key)s::bigint is null or (s.key, s.group_id) > (%(after_key)s, %(after)s)
order by s.key, s.group_id
limit %(limit)s

-- fragment: last_keys
where (s.key, s.group_id) < (%(after_key)s, %(after)s)
order by s.key desc, s.group_id desc
limit %(limit)s

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

-- name: list_groups_by_members
-- Here and below: both directions, by the sign.
select s.id, s.group_id, s.key
from (
    -- include: with_members
      -- include: matching
) s
-- include: first_keys

-- name: list_groups_by_members_before
select s.id, s.group_id, s.key
from (
    -- include: with_members
      -- include: matching
) s
-- include: last_keys

-- name: list_groups_by_lag
select s.id, s.group_id, s.key
from (
    -- include: with_lag
      -- include: matching
) s
-- include: first_keys

-- name: list_groups_by_lag_before
select s.id, s.group_id, s.key
from (
    -- include: with_lag
      -- include: matching
) s
-- include: last_keys

-- name: list_groups_by_time_lag
select s.id, s.group_id, s.key
from (
    -- include: with_time_lag
      -- include: matching
) s
-- include: first_keys

-- name: list_groups_by_time_lag_before
select s.id, s.group_id, s.key
from (
    -- include: with_time_lag
      -- include: matching
) s
-- include: last_keys

-- name: list_groups_by_partitions
select s.id, s.group_id, s.key
from (
    -- include: with_partitions
      -- include: matching
) s
-- include: first_keys

-- name: list_groups_by_partitions_before
select s.id, s.group_id, s.key
from (
    -- include: with_partitions
      -- include: matching
) s
-- include: last_keys

-- name: list_groups_by_coordinator
select s.id, s.group_id, s.key
from (
    -- include: with_coordinator
      -- include: matching
) s
-- include: first_keys

-- name: list_groups_by_coordinator_before
select s.id, s.group_id, s.key
from (
    -- include: with_coordinator
      -- include: matching
) s
-- include: last_keys

-- name: list_groups_by_owner
select s.id, s.group_id, s.key
from (
    -- include: with_owner
      -- include: matching
) s
where %(after_key)s::text is null or (s.key, s.group_id) > (%(after_key)s, %(after)s)
order by s.key, s.group_id
limit %(limit)s

-- name: list_groups_by_owner_before
select s.id, s.group_id, s.key
from (
    -- include: with_owner
      -- include: matching
) s
where (s.key, s.group_id) < (%(after_key)s, %(after)s)
order by s.key desc, s.group_id desc
limit %(limit)s

-- name: list_groups_by_owner_descending
select s.id, s.group_id, s.key
from (
    -- include: with_owner
      -- include: matching
) s
where %(after_key)s::text is null or s.key < %(after_key)s or s.key = %(after_key)s and s.group_id > %(after)s
order by s.key desc, s.group_id
limit %(limit)s

-- name: list_groups_by_owner_descending_before
select s.id, s.group_id, s.key
from (
    -- include: with_owner
      -- include: matching
) s
where s.key > %(after_key)s or s.key = %(after_key)s and s.group_id < %(after)s
order by s.key, s.group_id desc
limit %(limit)s

-- name: list_groups_by_time_in_state
select s.id, s.group_id, s.key
from (
    -- include: with_state_since
      -- include: matching
) s
-- include: first_keys

-- name: list_groups_by_time_in_state_before
select s.id, s.group_id, s.key
from (
    -- include: with_state_since
      -- include: matching
) s
-- include: last_keys

-- name: list_groups_by_generation
select s.id, s.group_id, s.key
from (
    -- include: with_generation
      -- include: matching
) s
-- include: first_keys

-- name: list_groups_by_generation_before
select s.id, s.group_id, s.key
from (
    -- include: with_generation
      -- include: matching
) s
-- include: last_keys

-- name: count_groups_by_state
select g.state, count(*)
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
