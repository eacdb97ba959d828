-- name: insert_events
insert into groups_event (group_name, at, kind, generation_id, member_id, detail)
select group_name, at, kind, generation_id, member_id, detail
from unnest(%(group_id)s::text[], %(at)s::bigint[], %(kind)s::text[], %(generation_id)s::int[], %(member_id)s::text[],
            %(detail)s::jsonb[]) with ordinality as e (group_name, at, kind, generation_id, member_id, detail, position)
order by position

-- name: trim_events
-- In batches: a long delete would hold back vacuum. Ids are given in the order of time, so the oldest are the first.
delete from groups_event
where id in (select id
             from (select id, at from groups_event order by id limit %(limit)s) oldest
             where at < %(before)s)

-- name: trim_group_events
-- All but the newest `keep` of a group go, the oldest first, `limit` at most at a time.
delete from groups_event
where id in (select id
             from groups_event
             where group_name = %(group_id)s
               and id < (select id
                         from groups_event
                         where group_name = %(group_id)s
                         order by id desc
                         offset %(keep)s - 1
                         limit 1)
             order by id
             limit %(limit)s)

-- name: crowded_timelines
-- The next names that have events, by a loose index scan, and whether they have more than `keep`: that reads one index
-- entry more than `keep` of each.
with recursive named (group_name) as (
    (select group_name from groups_event where group_name > %(after)s order by group_name limit 1)
    union all
    select (select e.group_name from groups_event e where e.group_name > n.group_name order by e.group_name limit 1)
    from named n
    where n.group_name is not null)
select n.group_name,
       exists (select from groups_event e where e.group_name = n.group_name order by e.id offset %(keep)s limit 1)
from named n
where n.group_name is not null
limit %(limit)s
