-- The order of locks: groups, by the keys of their rows, then one producer. Commits of one group share the locks of
-- theirs, so none of them waits for another; a transaction that locks only a producer waits for nothing after it.
-- Pending offsets are written and removed under the lock of their group alone.

-- fragment: producer
select transactional_id, producer_id, producer_epoch
from offsets_producer
where transactional_id = %(transactional_id)s

-- name: find_producer
-- include: producer

-- name: is_known_producer
select exists (select from offsets_producer where producer_id = %(producer_id)s)

-- name: share_producer
-- For commits, under their group's lock: fencing this producer waits until they are done.
-- include: producer
for share

-- name: lock_producer
-- include: producer
for update

-- name: register_producer
-- Returns no row if the transactional id already has a producer, or the producer another transactional id.
insert into offsets_producer (producer_id, transactional_id, producer_epoch, updated_at)
values (%(producer_id)s, %(transactional_id)s, %(producer_epoch)s, %(now)s)
on conflict do nothing
returning producer_id

-- name: last_end
-- Under the lock of the producer.
select ended_producer_id as producer_id, ended_producer_epoch as producer_epoch, ended_committed as committed
from offsets_producer
where transactional_id = %(transactional_id)s and ended_producer_id is not null

-- name: replace_producer
-- `committed` null: the producer is fenced, and no end of a transaction has given it a new epoch.
update offsets_producer
set ended_producer_id = case when %(committed)s::boolean is not null then producer_id end,
    ended_producer_epoch = case when %(committed)s::boolean is not null then producer_epoch end,
    ended_committed = %(committed)s,
    producer_id = %(producer_id)s, producer_epoch = %(producer_epoch)s, updated_at = %(now)s
where transactional_id = %(transactional_id)s

-- name: touch_producer
update offsets_producer
set updated_at = %(now)s
where transactional_id = %(transactional_id)s

-- name: lock_idle_producers
-- A producer at work holds its row, and is not idle.
select p.producer_id
from offsets_producer p
where p.updated_at <= %(before)s
  and not exists (select from offsets_pendingoffset o where o.producer_id = p.producer_id)
limit %(limit)s
for update skip locked

-- name: forget_producers
-- In the statement after the lock: before it something may have become pending that the lock's statement cannot see.
delete from offsets_producer p
where p.producer_id = any(%(producers)s)
  and not exists (select from offsets_pendingoffset o where o.producer_id = p.producer_id)
returning p.producer_id

-- name: free_producer_id
-- Returns no row if every candidate already has a producer.
select id
from unnest(%(candidates)s::bigint[]) candidate (id)
where not exists (select from offsets_producer p where p.producer_id = candidate.id)
limit 1

-- name: groups_of_producer
select distinct o.group_id
from offsets_producer p
join offsets_pendingoffset o on o.producer_id = p.producer_id
where p.transactional_id = %(transactional_id)s
order by o.group_id

-- name: lock_groups
select id as pk, group_id, generation_id
from groups_group
where id = any(%(groups)s)
order by id
for update

-- name: pending_of_producer
select o.group_id as "group", o.topic, o.partition, o.record_offset, c.record_offset as committed_record_offset,
       o.opened_at
from offsets_pendingoffset o
left join offsets_committedoffset c
     on c.group_id = o.group_id and c.topic = o.topic and c.partition = o.partition
where o.producer_id = %(producer_id)s

-- name: write_pending
-- The sequence of the journal puts transactional and plain commits of a group into one order.
insert into offsets_pendingoffset (producer_id, group_id, topic, partition, committed_offset, leader_epoch, metadata,
                                   commit_timestamp, opened_at, record_offset, member_id, generation_id, client_id,
                                   principal)
select %(producer_id)s, %(group)s, topic, partition, committed_offset, leader_epoch, metadata, %(now)s, %(now)s,
       nextval('offset_commit_log_id_seq'), %(member_id)s, %(generation_id)s, %(client_id)s, %(principal)s
from unnest(%(topic)s::text[], %(partition)s::int[], %(committed_offset)s::bigint[], %(leader_epoch)s::int[],
            %(metadata)s::text[])
     as c (topic, partition, committed_offset, leader_epoch, metadata)
on conflict (producer_id, group_id, topic, partition) do update
set committed_offset = excluded.committed_offset, leader_epoch = excluded.leader_epoch,
    metadata = excluded.metadata, commit_timestamp = excluded.commit_timestamp,
    record_offset = excluded.record_offset, member_id = excluded.member_id,
    generation_id = excluded.generation_id, client_id = excluded.client_id, principal = excluded.principal

-- name: commit_pending
-- The committed offset keeps the place of the transactional write in the order of writing, and its time; the journal
-- has the time of the marker.
with ended as (
    select p.*
    from offsets_pendingoffset p
    join unnest(%(group)s::bigint[], %(topic)s::text[], %(partition)s::int[]) as n (group_id, topic, partition)
         on n.group_id = p.group_id and n.topic = p.topic and n.partition = p.partition
    where p.producer_id = %(producer_id)s
), journal as (
    insert into offset_commit_log (at, kind, group_name, topic, partition, committed_offset, leader_epoch, metadata,
                                   member_id, generation_id, client_id, principal, transactional_id)
    select %(now)s, %(kind)s, g.group_id, e.topic, e.partition, e.committed_offset, e.leader_epoch, e.metadata,
           e.member_id, e.generation_id, e.client_id, e.principal, %(transactional_id)s
    from ended e
    join groups_group g on g.id = e.group_id
    order by e.record_offset
)
insert into offsets_committedoffset (group_id, topic, partition, committed_offset, leader_epoch, metadata,
                                     commit_timestamp, expire_timestamp, member_id, generation_id, record_offset)
select group_id, topic, partition, committed_offset, leader_epoch, metadata, commit_timestamp, null, member_id,
       generation_id, record_offset
from ended
on conflict (group_id, topic, partition) do update
set committed_offset = excluded.committed_offset, leader_epoch = excluded.leader_epoch,
    metadata = excluded.metadata, commit_timestamp = excluded.commit_timestamp,
    expire_timestamp = excluded.expire_timestamp, member_id = excluded.member_id,
    generation_id = excluded.generation_id, record_offset = excluded.record_offset

-- name: remove_pending
delete from offsets_pendingoffset
where producer_id = %(producer_id)s

-- name: pending_partitions
select distinct o.topic, o.partition
from groups_group g
join offsets_pendingoffset o on o.group_id = g.id
where g.group_id = %(group_id)s and g.state <> 'Dead'

-- name: abandoned_transactions
select p.transactional_id
from offsets_pendingoffset o
join offsets_producer p on p.producer_id = o.producer_id
group by p.transactional_id
having min(o.opened_at) <= %(before)s
order by min(o.opened_at)
limit %(limit)s

-- name: list_transactions
-- `transactional_id` null: of all producers. Without an open transaction `opened_at` is null.
select p.transactional_id, p.producer_id, p.producer_epoch, min(o.opened_at) as opened_at,
       coalesce(array_agg(distinct g.group_id) filter (where g.group_id is not null), '{}') as groups
from offsets_producer p
left join offsets_pendingoffset o on o.producer_id = p.producer_id
left join groups_group g on g.id = o.group_id
where %(transactional_id)s::text[] is null or p.transactional_id = any(%(transactional_id)s)
group by p.producer_id
order by p.transactional_id
