-- name: fetch_named
-- One look into the primary key for each partition, whatever the planner knows of the table: only that index serves a
-- comparison of rows that begin with the group. By topic and partition alone it would read the offsets of all groups.
select o.topic, o.partition, o.committed_offset, o.leader_epoch, o.metadata, o.commit_timestamp
from groups_group g
cross join unnest(%(topic)s::text[], %(partition)s::int[]) as w (topic, partition)
cross join lateral (
    select c.topic, c.partition, c.committed_offset, c.leader_epoch, c.metadata, c.commit_timestamp
    from offsets_committedoffset c
    where (c.group_id, c.topic, c.partition) >= (g.id, w.topic, w.partition)
      and (c.group_id, c.topic, c.partition) <= (g.id, w.topic, w.partition)
    order by c.group_id, c.topic, c.partition
    limit 1
) o
where g.group_id = %(group_id)s and g.state <> 'Dead'

-- name: fetch_all
select o.topic, o.partition, o.committed_offset, o.leader_epoch, o.metadata, o.commit_timestamp
from groups_group g
join offsets_committedoffset o on o.group_id = g.id
where g.group_id = %(group_id)s and g.state <> 'Dead'
order by o.topic, o.partition
