-- name: offsets_of_group
-- Under the group's lock: what a group that is to be created already has. `pending`: in an open transaction.
select topic, partition, committed_offset, metadata, false as pending
from offsets_committedoffset
where group_id = %(group)s
union all
select topic, partition, committed_offset, metadata, true
from offsets_pendingoffset
where group_id = %(group)s
limit %(limit)s
