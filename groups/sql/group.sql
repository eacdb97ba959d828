-- fragment: row
-- A `groups.store.rows.GroupRow`.
select id, group_id, version, type, state, previous_state, state_since, generation_id, protocol_type, protocol_name, leader_id,
       new_member_added, join_deadline, join_delay_ms, join_remaining_ms, sync_deadline,
       wake_at, assignment_epoch, assignment_timestamp, metadata_hash, metadata_version, resolution is not null as has_resolution,
       jobs, held_until, held_by, hold_reason, version_tag, partition, armed_gap
from groups_group

-- name: lock_groups
-- One table, no join: a join of lock and load returns the new group row with the old members.
-- include: row
where group_id = any(%(group_id)s::text[])
order by id
for update

-- name: lock_groups_or_skip
-- For ticks, where the transaction that holds the lock expires the group itself, and for several groups at once: none
-- waits for the lock of another.
-- include: row
where group_id = any(%(group_id)s::text[])
order by id
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

-- name: insert_groups
-- In the order of their names, so that processes that create the same groups cannot deadlock. Returns no row of a group
-- that another process created first: its transaction starts over.
insert into groups_group (group_id, type, state, previous_state, state_since, generation_id, protocol_type,
                          protocol_name, leader_id, new_member_added, join_deadline, join_delay_ms, join_remaining_ms,
                          sync_deadline, assignment_epoch, assignment_timestamp, metadata_hash, metadata_version,
                          resolution, jobs, held_until, held_by, hold_reason, partition, armed_gap, wake_at, version,
                          version_tag, created_at, updated_at)
select group_id, type, state, previous_state, state_since, generation_id, protocol_type, protocol_name, leader_id,
       new_member_added, join_deadline, join_delay_ms, join_remaining_ms, sync_deadline, assignment_epoch,
       assignment_timestamp, metadata_hash, metadata_version, resolution, jobs, held_until, held_by, hold_reason,
       partition, armed_gap, wake_at, version, version_tag, updated_at, updated_at
from json_populate_recordset(null::groups_group, %(groups)s::text::json)
order by group_id
on conflict (group_id) do nothing
returning group_id, id

-- name: update_groups
-- Also used when a group changes its protocol: what belongs to the other one is dropped, its offsets stay.
-- `same_resolution`: keys of the groups whose resolution was not sent, as it may be large.
update groups_group g
set type = r.type, state = r.state, previous_state = r.previous_state, state_since = r.state_since,
    generation_id = r.generation_id, protocol_type = r.protocol_type, protocol_name = r.protocol_name,
    leader_id = r.leader_id, new_member_added = r.new_member_added, join_deadline = r.join_deadline,
    join_delay_ms = r.join_delay_ms, join_remaining_ms = r.join_remaining_ms, sync_deadline = r.sync_deadline,
    assignment_epoch = r.assignment_epoch, assignment_timestamp = r.assignment_timestamp,
    metadata_hash = r.metadata_hash, metadata_version = r.metadata_version,
    resolution = case when g.id = any(%(same_resolution)s::bigint[]) then g.resolution else r.resolution end,
    jobs = r.jobs, held_until = r.held_until, held_by = r.held_by, hold_reason = r.hold_reason,
    partition = r.partition, armed_gap = r.armed_gap, wake_at = r.wake_at, version = r.version,
    version_tag = r.version_tag, updated_at = r.updated_at
from json_populate_recordset(null::groups_group, %(groups)s::text::json) r
where g.id = r.id

-- name: touch_groups
-- Only deadlines and what members wait for changed: "last change" on pages stays. Where only sessions were extended,
-- copies of the group stay current, so version and tag are the same.
update groups_group g
set wake_at = t.wake_at, partition = t.partition, version = t.version, version_tag = t.version_tag
from unnest(%(id)s::bigint[], %(wake_at)s::bigint[], %(partition)s::int[], %(version)s::bigint[],
            %(version_tag)s::uuid[]) as t (id, wake_at, partition, version, version_tag)
where g.id = t.id

-- name: outrun_group
-- The row went back: generations and versions that were handed out before must not come again with other content.
update groups_group
set generation_id = %(generation_id)s, version = %(version)s, version_tag = %(version_tag)s
where id = %(id)s

-- name: delete_groups
-- Members, pending ids, assignments and offsets go with it (on delete cascade).
delete from groups_group
where id = any(%(ids)s::bigint[])

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
select pg_notify(channel, group_id)
from unnest(%(channel)s::text[], %(group_id)s::text[]) as n (channel, group_id)
