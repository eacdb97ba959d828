-- name: open_lane
-- Nobody's session that ends from now on expires before this node says that it has stored what it renewed until then.
-- No row: the node was declared dead. The time is the database's, so that no session that ends before it is renewed.
update groups_coordinatornode n
set flushed_until = c.now
from (select coalesce(%(override)s::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint) as now) c
where n.id = %(incarnation)s and n.ended_at is null
returning c.now

-- name: close_lane
update groups_coordinatornode set flushed_until = null where id = %(incarnation)s

-- name: flush_members
-- The deadline counts from the time of the answer and never goes back. Rows that another transaction holds are skipped,
-- so nothing is waited for and no order of locks matters; the count tells. What a member is removed by holds its row.
with renewed as (
    select m.ctid, t.at
    from unnest(%(group_id)s::bigint[], %(member_id)s::text[], %(at)s::bigint[]) as t (group_id, member_id, at)
    join groups_member m on m.group_id = t.group_id and m.member_id = t.member_id
    for update of m skip locked
), stored as (
    update groups_member m
    set session_deadline = greatest(m.session_deadline, r.at + m.session_timeout_ms),
        last_heartbeat_at = greatest(m.last_heartbeat_at, r.at)
    from renewed r
    where m.ctid = r.ctid
    returning 1
)
select count(*) from stored

-- name: flush_consumer_members
with renewed as (
    select m.ctid, t.at, t.timeout_ms
    from unnest(%(group_id)s::bigint[], %(member_id)s::text[], %(at)s::bigint[], %(timeout_ms)s::bigint[])
         as t (group_id, member_id, at, timeout_ms)
    join groups_consumermember m on m.group_id = t.group_id and m.member_id = t.member_id
    for update of m skip locked
), stored as (
    update groups_consumermember m
    set session_deadline = greatest(m.session_deadline, r.at + r.timeout_ms),
        session_armed_at = greatest(m.session_armed_at, r.at)
    from renewed r
    where m.ctid = r.ctid
    returning 1
)
select count(*) from stored

-- name: missing_sessions
-- Of sessions that were to be stored at this instant or later: whose row is gone, and whose is there but was skipped.
select t.group_id, t.member_id,
       not exists (select from groups_member m where m.group_id = t.group_id and m.member_id = t.member_id)
       and not exists (select from groups_consumermember m where m.group_id = t.group_id and m.member_id = t.member_id)
           as is_gone
from unnest(%(group_id)s::bigint[], %(member_id)s::text[], %(at)s::bigint[]) as t (group_id, member_id, at)
where not exists (select from groups_member m
                  where m.group_id = t.group_id and m.member_id = t.member_id and m.last_heartbeat_at >= t.at)
  and not exists (select from groups_consumermember m
                  where m.group_id = t.group_id and m.member_id = t.member_id and m.session_armed_at >= t.at)

-- name: flushed
-- No row: the node was declared dead, and what it renewed counts no longer. The echo tells this process that it has
-- been notified of everything that was committed before.
update groups_coordinatornode n
set flushed_until = %(until)s
from (select (extract(epoch from clock_timestamp()) * 1000)::bigint as now, pg_notify(%(channel)s, %(echo)s) as sent) c
where n.id = %(incarnation)s and n.ended_at is null
returning c.now

-- name: changed_groups
-- Of copies of groups by key, version and tag, those that are not current.
select c.id
from unnest(%(id)s::bigint[], %(version)s::bigint[], %(version_tag)s::uuid[]) as c (id, version, version_tag)
where not exists (select from groups_group g
                  where g.id = c.id and g.version = c.version and g.version_tag = c.version_tag)
