-- name: fetch_named
select o.topic, o.partition, o.committed_offset, o.leader_epoch, o.metadata, o.commit_timestamp
from groups_group g
join offsets_committedoffset o on o.group_id = g.id
join unnest(%(topic)s::text[], %(partition)s::int[]) as w (topic, partition)
     on w.topic = o.topic and w.partition = o.partition
where g.group_id = %(group_id)s and g.state <> 'Dead'

-- name: fetch_all
select o.topic, o.partition, o.committed_offset, o.leader_epoch, o.metadata, o.commit_timestamp
from groups_group g
join offsets_committedoffset o on o.group_id = g.id
where g.group_id = %(group_id)s and g.state <> 'Dead'
order by o.topic, o.partition
