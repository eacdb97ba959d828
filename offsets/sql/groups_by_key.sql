-- Orders of the lists of groups by what no index has: every group that matches (`groups.sql`) is read with its key, and a
-- page of them is kept.

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
select g.id, g.group_id, %(sign)s * coalesce(l.time_lag_ms, l.time_lag_at_least_ms, -1) as key
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

-- fragment: with_severity
-- Groups with a verdict on what can be seen, by the rank of the worst.
select g.id, g.group_id, w.key
from (select group_id, min(array_position(%(worst_first)s::text[], kind::text))::bigint as key
      from offsets_groupverdict
      where topic = '' or kcoord_sees(topic, %(topic_names)s, %(topic_prefixes)s,
                                      %(topic_denied)s, %(topic_denied_prefixes)s)
      group by group_id) w
join groups_group g on g.id = w.group_id
where true

-- fragment: first_keys
-- Of any type: the comparison says which, before the parameter is asked whether it is there.
where (s.key, s.group_id) > (%(after_key)s, %(after)s) or %(after_key)s is null
order by s.key, s.group_id
limit %(limit)s

-- fragment: last_keys
where (s.key, s.group_id) < (%(after_key)s, %(after)s)
order by s.key desc, s.group_id desc
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
-- include: first_keys

-- name: list_groups_by_owner_before
select s.id, s.group_id, s.key
from (
    -- include: with_owner
      -- include: matching
) s
-- include: last_keys

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

-- name: list_groups_by_severity
select s.id, s.group_id, s.key
from (
    -- include: with_severity
      -- include: matching
) s
-- include: first_keys

-- name: list_groups_by_severity_before
-- Also from the end backwards: groups without verdicts follow these.
select s.id, s.group_id, s.key
from (
    -- include: with_severity
      -- include: matching
) s
where %(after_key)s::bigint is null or (s.key, s.group_id) < (%(after_key)s, %(after)s)
order by s.key desc, s.group_id desc
limit %(limit)s
