-- name: journal_page
-- The instants are passed in addition to the cursor's pair because days are skipped by them, not by the pair. They are
-- always passed, so that a prepared plan skips days as well.
select id, at, kind, topic, partition, committed_offset, leader_epoch, metadata, member_id, generation_id, client_id,
       principal, transactional_id, plan_id::text, expire_timestamp
from offset_commit_log
where group_name = %(group_id)s
  and at >= %(since)s and at <= %(before_at)s and (at, id) < (%(before_at)s, %(before_id)s)
  and (%(topic)s::text is null or topic = %(topic)s)
  and (%(kinds)s::text[] is null or kind = any(%(kinds)s))
  and (topic = any(%(visible_names)s::text[])
       or exists (select from unnest(%(visible_prefixes)s::text[]) prefix where starts_with(topic, prefix)))
order by at desc, id desc
limit %(limit)s

-- name: journal_page_of_partition
select id, at, kind, topic, partition, committed_offset, leader_epoch, metadata, member_id, generation_id, client_id,
       principal, transactional_id, plan_id::text, expire_timestamp
from offset_commit_log
where group_name = %(group_id)s and topic = %(topic)s and partition = %(partition)s
  and at >= %(since)s and at <= %(before_at)s and (at, id) < (%(before_at)s, %(before_id)s)
  and (%(kinds)s::text[] is null or kind = any(%(kinds)s))
  and (topic = any(%(visible_names)s::text[])
       or exists (select from unnest(%(visible_prefixes)s::text[]) prefix where starts_with(topic, prefix)))
order by at desc, id desc
limit %(limit)s

-- name: journal_page_of_changes
-- Changes other than commits are rare and have their own index: they are found without reading the commits in between.
select id, at, kind, topic, partition, committed_offset, leader_epoch, metadata, member_id, generation_id, client_id,
       principal, transactional_id, plan_id::text, expire_timestamp
from offset_commit_log
where group_name = %(group_id)s and kind not in ('commit', 'txn_commit')
  and at >= %(since)s and at <= %(before_at)s and (at, id) < (%(before_at)s, %(before_id)s)
  and (%(topic)s::text is null or topic = %(topic)s)
  and kind = any(%(kinds)s::text[])
  and (topic = any(%(visible_names)s::text[])
       or exists (select from unnest(%(visible_prefixes)s::text[]) prefix where starts_with(topic, prefix)))
order by at desc, id desc
limit %(limit)s

-- name: journal_knows_group
-- A deleted group is known as long as its journal is kept.
select exists (select from groups_group where group_id = %(group_id)s)
       or exists (select from offset_commit_log where group_name = %(group_id)s)
