-- fragment: lines
-- A `offsets.journal.reading.JournalLine`.
select id, at, kind, topic, partition, committed_offset, leader_epoch as committed_leader_epoch, metadata, member_id,
       generation_id, client_id, principal, transactional_id, plan_id::text as plan_id, expire_timestamp as expires_at
from offset_commit_log

-- fragment: page
-- The instants are passed in addition to the cursor's pair because days are skipped by them, not by the pair. They are
-- always passed, so that a prepared plan skips days as well.
and at >= %(since)s and at <= %(before_at)s and (at, id) < (%(before_at)s, %(before_id)s)
and kcoord_sees(topic, %(visible_names)s, %(visible_prefixes)s, %(visible_denied)s, %(visible_denied_prefixes)s)

-- name: journal_page
-- include: lines
where group_name = %(group_id)s
  -- include: page
  and (%(topic)s::text is null or topic = %(topic)s)
  and (%(kinds)s::text[] is null or kind = any(%(kinds)s))
order by at desc, id desc
limit %(limit)s

-- name: journal_page_of_partition
-- include: lines
where group_name = %(group_id)s and topic = %(topic)s and partition = %(partition)s
  -- include: page
  and (%(kinds)s::text[] is null or kind = any(%(kinds)s))
order by at desc, id desc
limit %(limit)s

-- name: journal_page_of_changes
-- Changes other than commits and settled items are rare and have their own index: they are found without reading those
-- in between.
-- include: lines
where group_name = %(group_id)s and kind not in ('commit', 'txn_commit', 'items_done')
  -- include: page
  and (%(topic)s::text is null or topic = %(topic)s)
  and kind = any(%(kinds)s::text[])
order by at desc, id desc
limit %(limit)s

-- name: journal_knows_group
-- A deleted group is known as long as its journal is kept.
select exists (select from groups_group where group_id = %(group_id)s)
       or exists (select from offset_commit_log where group_name = %(group_id)s)
