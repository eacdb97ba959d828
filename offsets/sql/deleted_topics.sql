-- name: note_deleted_topic
-- The sequence is not transactional: it also counts rows being written by others.
insert into offsets_deletedtopic (topic, deleted_at, principal, record_offset, swept)
select %(topic)s, %(now)s, %(principal)s, case when is_called then last_value else last_value - 1 end, false
from offset_commit_log_id_seq

-- name: deleted_topics
-- Topics not yet handled, and those whose last check is due.
select id, topic, deleted_at, principal, record_offset
from offsets_deletedtopic
where (%(topic)s::text is null or topic = %(topic)s)
  and (not swept or deleted_at <= %(settled_before)s)
order by id
limit %(limit)s

-- name: deleted_topic_swept
update offsets_deletedtopic
set swept = true
where id = %(id)s

-- name: forget_deleted_topic
delete from offsets_deletedtopic
where id = %(id)s

-- name: groups_with_topic
select g.id, g.group_id
from groups_group g
join (select group_id from offsets_committedoffset where topic = %(topic)s and record_offset <= %(up_to)s
      union
      select group_id from offsets_pendingoffset where topic = %(topic)s and record_offset <= %(up_to)s) o
     on o.group_id = g.id
where g.id > %(after)s
order by g.id
limit %(limit)s

-- name: topic_exists
select exists (select from groups_topic where name = %(topic)s)

-- name: partitions_with_offsets
select partition
from offsets_committedoffset
where group_id = %(group)s and topic = %(topic)s and record_offset <= %(up_to)s
union
select partition
from offsets_pendingoffset
where group_id = %(group)s and topic = %(topic)s and record_offset <= %(up_to)s
order by partition
limit %(limit)s
