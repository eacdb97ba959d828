-- name: repair_stands
-- Under the group's lock: what is committed where a repair is due, and what happened there since. Only lines
-- since the instant of the repair are searched, so that earlier days are skipped.
select n.topic, n.partition, o.record_offset, o.committed_offset,
       coalesce(n.partition < t.partitions, false) as "exists",
       exists (select from offsets_pendingoffset p
               where p.group_id = %(group)s and p.topic = n.topic and p.partition = n.partition) as pending,
       exists (select from offset_commit_log l
               where l.group_name = %(group_id)s and l.topic = n.topic and l.partition = n.partition
                 and l.at >= n.line_at and l.id > n.line_id) as newer
from unnest(%(topic)s::text[], %(partition)s::int[], %(line_id)s::bigint[], %(line_at)s::bigint[])
     as n (topic, partition, line_id, line_at)
left join groups_topic t on t.name = n.topic
left join offsets_committedoffset o on o.group_id = %(group)s and o.topic = n.topic and o.partition = n.partition
