-- fragment: row
-- A `groups.store.header.GroupRow`.
select id, version, type, state, previous_state, state_since, generation_id, protocol_type, protocol_name, leader_id,
       new_member_added, join_deadline, join_delay_ms, join_remaining_ms, sync_deadline,
       wake_at, assignment_epoch, assignment_timestamp, metadata_hash, metadata_version, resolution is not null as has_resolution,
       jobs, held_until, held_by, hold_reason, version_tag, partition, armed_gap
from groups_group

-- name: lock_group
-- One row, no join: a join of lock and load returns the new group row with the old members.
-- include: row
where group_id = %(group_id)s
for update

-- name: lock_group_or_skip
-- For ticks: the transaction that holds the lock expires the group itself.
-- include: row
where group_id = %(group_id)s
for update skip locked

-- name: read_group
-- include: row
where group_id = %(group_id)s

-- name: read_groups
-- include: row
where id = any(%(ids)s::bigint[])

-- name: group_sizes
-- Rows that loading a group reads, counted up to `most` of each kind.
select g.id, g.group_id, m.count + c.count + a.count as size
from groups_group g
cross join lateral (select count(*) from (
    select from groups_member where group_id = g.id and g.type = 'classic' limit %(most)s) x) m
cross join lateral (select count(*) from (
    select from groups_consumermember where group_id = g.id and g.type <> 'classic' limit %(most)s) x) c
cross join lateral (select count(*) from (
    select from groups_assignment where group_id = g.id and g.type = 'consumer' limit %(most)s) x) a
where g.group_id = any(%(group_id)s::text[])

-- name: insert_group
-- Returns no row if another process created the group first: the transaction starts over.
insert into groups_group (group_id, type, state, previous_state, state_since, generation_id, protocol_type,
                          protocol_name, leader_id, new_member_added, join_deadline, join_delay_ms, join_remaining_ms,
                          sync_deadline, wake_at, held_until, held_by, hold_reason, partition, armed_gap, version,
                          version_tag, created_at, updated_at)
values (%(group_id)s, 'classic', %(state)s, %(previous_state)s, %(state_since)s, %(generation_id)s, %(protocol_type)s,
        %(protocol_name)s, %(leader_id)s, %(new_member_added)s, %(join_deadline)s, %(join_delay_ms)s,
        %(join_remaining_ms)s, %(sync_deadline)s, %(wake_at)s, %(held_until)s, %(held_by)s, %(hold_reason)s,
        %(partition)s, %(armed_gap)s, 1, %(version_tag)s, %(now)s, %(now)s)
on conflict (group_id) do nothing
returning id

-- name: update_group
update groups_group
set type = 'classic', state = %(state)s, previous_state = %(previous_state)s, state_since = %(state_since)s,
    generation_id = %(generation_id)s, protocol_type = %(protocol_type)s, protocol_name = %(protocol_name)s,
    leader_id = %(leader_id)s, new_member_added = %(new_member_added)s, join_deadline = %(join_deadline)s,
    join_delay_ms = %(join_delay_ms)s, join_remaining_ms = %(join_remaining_ms)s, sync_deadline = %(sync_deadline)s,
    assignment_epoch = 0, assignment_timestamp = 0, metadata_hash = '', metadata_version = -1, resolution = null,
    jobs = null, held_until = %(held_until)s, held_by = %(held_by)s, hold_reason = %(hold_reason)s,
    partition = %(partition)s, armed_gap = %(armed_gap)s,
    wake_at = %(wake_at)s, version = version + 1, version_tag = %(version_tag)s, updated_at = %(now)s
where id = %(id)s

-- name: move_wake_up
-- Only sessions were extended: copies of the group stay current, so version and tag stay.
update groups_group
set wake_at = %(wake_at)s, partition = %(partition)s
where id = %(id)s

-- name: touch_group
-- Only deadlines and what members wait for changed: "last change" on pages stays.
update groups_group
set wake_at = %(wake_at)s, partition = %(partition)s, version = version + 1, version_tag = %(version_tag)s
where id = %(id)s

-- name: outrun_group
-- The row went back: generations and versions that were handed out before must not come again with other content.
update groups_group
set generation_id = %(generation_id)s, version = %(version)s, version_tag = %(version_tag)s
where id = %(id)s

-- name: delete_group
-- Members, pending ids, assignments and offsets go with it (on delete cascade).
delete from groups_group
where id = %(id)s

-- name: due_groups
-- The time is a parameter: compared with a function of its own, the index would be read to its end.
-- A group of a partition that no node has owned yet has no owner to ask.
select g.group_id
from groups_group g
left join groups_coordinatorpartition p on p.partition = g.partition
left join groups_coordinatornode n on n.id = p.owner_id
where g.wake_at <= %(now)s
  and (p.partition is null and %(owner)s::bigint is null
       or p.state = 'ACTIVE' and n.ended_at is null and n.expires_at > %(now)s + %(margin_ms)s
          and n.id = coalesce(%(owner)s::bigint, n.id))
order by g.wake_at
limit %(limit)s

-- name: postpone_group
-- A group whose tick fails must not stop the others. A locked group is left to the transaction that has the lock.
update groups_group
set wake_at = coalesce(%(override)s::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint) + %(delay_ms)s
where id = (select id from groups_group where group_id = %(group_id)s for update skip locked)

-- name: record_tick
insert into kcoord_timerheartbeat (id, ticked_at)
values (1, coalesce(%(override)s::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint))
on conflict (id) do update set ticked_at = excluded.ticked_at

-- name: notify
select pg_notify(%(channel)s, %(group_id)s)
