-- name: insert_topic
-- Returns no row if the name is taken.
insert into groups_topic (name, topic_id, partitions, labels, created_at)
values (%(name)s, %(topic_id)s, %(partitions)s, %(labels)s, %(now)s)
on conflict (name) do nothing
returning name, topic_id, partitions, labels, created_at

-- name: read_topic
select name, topic_id, partitions, labels, created_at
from groups_topic
where name = %(name)s

-- name: all_topics
select topic_id::text, name, partitions
from groups_topic
order by name collate "C"

-- name: list_topics
-- The empty prefix matches every name, and the empty text is part of every name.
select name, topic_id, partitions, labels, created_at
from groups_topic
where name > %(after)s
  and strpos(lower(name), lower(%(q)s)) > 0
  and kcoord_sees(name, %(visible_names)s, %(visible_prefixes)s, %(visible_denied)s, %(visible_denied_prefixes)s)
order by name
limit %(limit)s

-- name: lock_topic
-- For a change of the topic itself: waits for watermark writers, and they for us.
select id as pk, name, topic_id, partitions, labels, created_at
from groups_topic
where name = %(name)s
for update

-- name: lock_topic_shared
-- For its watermarks: writers of different partitions do not wait for each other, a deletion waits for all.
select id, partitions
from groups_topic
where name = %(name)s
for key share

-- name: update_topic
update groups_topic
set partitions = %(partitions)s, labels = %(labels)s
where id = %(id)s
returning name, topic_id, partitions, labels, created_at

-- name: delete_topic_watermarks
delete from groups_watermark where topic_id = %(id)s

-- name: delete_topic
delete from groups_topic where id = %(id)s

-- name: upsert_watermarks
-- In the order of the partitions: two writers of the same partitions never deadlock. A sample that was taken earlier
-- but arrives later does not replace a newer one. An earlier end is kept beside the watermark unless the log was truncated:
-- one that reports another log of the same name must not change the lag of all.
insert into groups_watermark as w (topic_id, partition, log_start_offset, log_end_offset, sampled_at)
select %(id)s, sample.partition, sample.log_start_offset, sample.log_end_offset, %(now)s
from unnest(%(partition)s::int[], %(log_start_offset)s::bigint[], %(log_end_offset)s::bigint[])
     as sample (partition, log_start_offset, log_end_offset)
order by sample.partition
on conflict (topic_id, partition) do update
set (log_start_offset, log_end_offset, sampled_at, lower_end_offset, lower_at, lower_by) = (
    select k.* from (
        select w.log_start_offset, w.log_end_offset, w.sampled_at, excluded.log_end_offset, excluded.sampled_at,
               %(principal)s::text
        where excluded.log_end_offset < w.log_end_offset and not %(truncated)s
        union all
        select excluded.log_start_offset, excluded.log_end_offset, excluded.sampled_at,
               case when not %(truncated)s then w.lower_end_offset end,
               case when not %(truncated)s then w.lower_at end,
               case when %(truncated)s then '' else w.lower_by end
        where excluded.log_end_offset >= w.log_end_offset or %(truncated)s) k)
where w.sampled_at <= excluded.sampled_at

-- name: list_watermarks
select w.partition, w.log_start_offset, w.log_end_offset, w.sampled_at, w.lower_end_offset, w.lower_at, w.lower_by
from groups_topic t
join groups_watermark w on w.topic_id = t.id
where t.name = %(name)s and w.partition > %(after)s
order by w.partition
limit %(limit)s

-- name: reported_watermarks
select partition, log_start_offset, log_end_offset, sampled_at, lower_end_offset, lower_at, lower_by
from groups_watermark
where topic_id = %(id)s and partition = any(%(partition)s)
order by partition
