-- name: topic_partitions
select name, partitions
from groups_topic
where name = any(%(names)s)

-- name: upsert_offsets
insert into offsets_committedoffset (group_id, topic, partition, committed_offset, leader_epoch, metadata,
                                     commit_timestamp, expire_timestamp, member_id, generation_id)
select %(group)s, topic, partition, committed_offset, leader_epoch, metadata, %(now)s, expire_timestamp,
       %(member_id)s, %(generation_id)s
from unnest(%(topic)s::text[], %(partition)s::int[], %(committed_offset)s::bigint[], %(leader_epoch)s::int[],
            %(metadata)s::text[], %(expire_timestamp)s::bigint[])
     as c (topic, partition, committed_offset, leader_epoch, metadata, expire_timestamp)
on conflict (group_id, topic, partition) do update
set committed_offset = excluded.committed_offset, leader_epoch = excluded.leader_epoch,
    metadata = excluded.metadata, commit_timestamp = excluded.commit_timestamp,
    expire_timestamp = excluded.expire_timestamp, member_id = excluded.member_id,
    generation_id = excluded.generation_id

-- name: fetch_named
select o.topic, o.partition, o.committed_offset, o.leader_epoch, o.metadata, o.commit_timestamp
from groups_group g
join offsets_committedoffset o on o.group_id = g.id
join unnest(%(topic)s::text[], %(partition)s::int[]) as w (topic, partition)
     on w.topic = o.topic and w.partition = o.partition
where g.group_id = %(group_id)s

-- name: fetch_all
select o.topic, o.partition, o.committed_offset, o.leader_epoch, o.metadata, o.commit_timestamp
from groups_group g
join offsets_committedoffset o on o.group_id = g.id
where g.group_id = %(group_id)s
order by o.topic, o.partition
