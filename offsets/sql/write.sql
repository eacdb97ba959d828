-- name: write_offsets
-- The journal and the view in one statement. The journal's ids come from one sequence; under the group's lock they are
-- in the order of writing.
with journal as (
    insert into offset_commit_log (at, kind, group_name, topic, partition, committed_offset, leader_epoch, metadata,
                                   expire_timestamp, member_id, generation_id, client_id, principal, transactional_id,
                                   plan_id)
    select %(now)s, %(kind)s, %(group_id)s, topic, partition, committed_offset, leader_epoch, metadata,
           expire_timestamp, %(member_id)s, %(generation_id)s, %(client_id)s, %(principal)s, %(transactional_id)s,
           %(plan_id)s
    from unnest(%(topic)s::text[], %(partition)s::int[], %(committed_offset)s::bigint[], %(leader_epoch)s::int[],
                %(metadata)s::text[], %(expire_timestamp)s::bigint[])
         as c (topic, partition, committed_offset, leader_epoch, metadata, expire_timestamp)
    returning id, topic, partition, committed_offset, leader_epoch, metadata, expire_timestamp
)
insert into offsets_committedoffset (group_id, topic, partition, committed_offset, leader_epoch, metadata,
                                     commit_timestamp, expire_timestamp, member_id, generation_id, record_offset)
select %(group)s, j.topic, j.partition, j.committed_offset, j.leader_epoch, j.metadata, t.commit_timestamp,
       j.expire_timestamp, %(member_id)s, %(generation_id)s, j.id
from journal j
join unnest(%(topic)s::text[], %(partition)s::int[], %(commit_timestamp)s::bigint[])
     as t (topic, partition, commit_timestamp) on t.topic = j.topic and t.partition = j.partition
on conflict (group_id, topic, partition) do update
set committed_offset = excluded.committed_offset, leader_epoch = excluded.leader_epoch,
    metadata = excluded.metadata, commit_timestamp = excluded.commit_timestamp,
    expire_timestamp = excluded.expire_timestamp, member_id = excluded.member_id,
    generation_id = excluded.generation_id, record_offset = excluded.record_offset

-- name: overtaken_by
-- When one of these partitions was committed since; null: none was. A clock that was set back shows times in the future:
-- nothing can be told from them.
select max(o.commit_timestamp)
from unnest(%(topic)s::text[], %(partition)s::int[]) as n (topic, partition)
join offsets_committedoffset o on o.group_id = %(group)s and o.topic = n.topic and o.partition = n.partition
where o.commit_timestamp > %(since)s and o.commit_timestamp < %(now)s

-- name: remove_offsets
-- A tombstone: removes the committed offset and pending offsets of open transactions (offsets.md 4.4).
-- If a committed offset stays because it is newer than up_to, the journal records no removal.
with named as (
    select topic, partition from unnest(%(topic)s::text[], %(partition)s::int[]) as n (topic, partition)
), committed as (
    delete from offsets_committedoffset o using named n
    where o.group_id = %(group)s and o.topic = n.topic and o.partition = n.partition
      and (%(up_to)s::bigint is null or o.record_offset <= %(up_to)s)
    returning o.topic, o.partition
), pending as (
    delete from offsets_pendingoffset p using named n
    where p.group_id = %(group)s and p.topic = n.topic and p.partition = n.partition
      and (%(up_to)s::bigint is null or p.record_offset <= %(up_to)s)
    returning p.topic, p.partition
)
insert into offset_commit_log (at, kind, group_name, topic, partition, member_id, generation_id, client_id, principal,
                               plan_id)
select %(now)s, %(kind)s, %(group_id)s, gone.topic, gone.partition, %(member_id)s, %(generation_id)s, %(client_id)s,
       %(principal)s, %(plan_id)s
from (select topic, partition from committed union select topic, partition from pending) gone
where not exists (
    select from offsets_committedoffset o
    where o.group_id = %(group)s and o.topic = gone.topic and o.partition = gone.partition
      and o.record_offset > %(up_to)s
)
order by gone.topic, gone.partition
returning topic, partition

-- name: remove_offsets_of_group
with committed as (
    delete from offsets_committedoffset where group_id = %(group)s returning topic, partition
), pending as (
    delete from offsets_pendingoffset where group_id = %(group)s returning topic, partition
)
insert into offset_commit_log (at, kind, group_name, topic, partition, principal)
select %(now)s, %(kind)s, %(group_id)s, gone.topic, gone.partition, %(principal)s
from (select topic, partition from committed union select topic, partition from pending) gone
order by gone.topic, gone.partition
