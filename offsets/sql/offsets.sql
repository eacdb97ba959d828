-- name: fetch_named
-- One look into the index for each partition: a join that the planner may turn round reads everything of the group, or
-- of all groups before the table was first analyzed.
select o.topic, o.partition, o.committed_offset, o.leader_epoch, o.metadata, o.commit_timestamp
from groups_group g
cross join unnest(%(topic)s::text[], %(partition)s::int[]) as w (topic, partition)
cross join lateral (
    select * from offsets_committedoffset c
    where c.group_id = g.id and c.topic = w.topic and c.partition = w.partition
    offset 0
) o
where g.group_id = %(group_id)s and g.state <> 'Dead'

-- name: fetch_all
select o.topic, o.partition, o.committed_offset, o.leader_epoch, o.metadata, o.commit_timestamp
from groups_group g
join offsets_committedoffset o on o.group_id = g.id
where g.group_id = %(group_id)s and g.state <> 'Dead'
order by o.topic, o.partition
