-- name: committed_page
-- Committed offsets with owner and watermark, where known.
select o.topic, o.partition, o.committed_offset, o.leader_epoch as committed_leader_epoch, o.metadata,
       o.commit_timestamp as committed_at, a.member_id as owner, w.log_start_offset, w.log_end_offset, w.sampled_at,
       o.expire_timestamp,
       exists (select from offsets_pendingoffset p
               where p.group_id = o.group_id and p.topic = o.topic and p.partition = o.partition) as pending
from groups_group g
join offsets_committedoffset o on o.group_id = g.id
left join groups_assignment a on a.group_id = o.group_id and a.topic = o.topic and a.partition = o.partition
left join groups_topic t on t.name = o.topic
left join lateral (select * from groups_watermark where topic_id = t.id and partition = o.partition limit 1) w on true
where g.group_id = %(group_id)s
  and (%(topic)s::text is null or o.topic = %(topic)s)
  and kcoord_sees(o.topic, %(visible_names)s, %(visible_prefixes)s, %(visible_denied)s, %(visible_denied_prefixes)s)
  and (o.topic, o.partition) > (%(after_topic)s, %(after_partition)s)
order by o.topic, o.partition
limit %(limit)s
