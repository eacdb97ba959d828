-- fragment: lines
-- A `offsets.journal.reading.JournalLine`.
select id, at, kind, topic, partition, committed_offset, leader_epoch as committed_leader_epoch, metadata, member_id,
       generation_id, client_id, principal, transactional_id, plan_id::text as plan_id, expire_timestamp as expires_at
from offset_commit_log

-- fragment: page
-- The instants are passed in addition to the cursor's pair because days are skipped by them, not by the pair. They are
-- always passed, so that a prepared plan skips days as well.
and at >= %(since)s and at <= %(before_at)s and (at, id) < (%(before_at)s, %(before_id)s)
and (%(kinds)s::text[] is null or kind = any(%(kinds)s))

-- fragment: seen_topic
and kcoord_sees(topic, %(visible_names)s, %(visible_prefixes)s, %(visible_denied)s, %(visible_denied_prefixes)s)

-- fragment: partitions_of_days
-- Steps through the index from partition to partition of a group, or of one of its topics, in whole days. What comes
-- before the first is there, too: it has no line.
select coalesce(%(topic)s::text, '') as topic, -1 as partition
union all
select next.topic, next.partition
from own
cross join lateral (
    select log.topic::text, log.partition
    from offset_commit_log log
    where log.group_name = %(group_id)s and (log.topic, log.partition) > (own.topic, own.partition)
      and log.at >= %(first_day)s::bigint and log.at < %(after_day)s::bigint
    order by log.group_name, log.topic, log.partition, log.at, log.id
    limit 1
) next
where %(topic)s::text is null or next.topic = %(topic)s

-- name: journal_page
-- No index has the lines of a group in their order: it would cost every commit, and only this reads them so. As many
-- lines of each partition as a page has on average tell how far back it may reach.
with recursive own as (
    -- include: partitions_of_days
), visible as (
    select topic, partition
    from own
    where partition >= 0
      -- include: seen_topic
), oldest as (
    select l.at
    from visible
    cross join lateral (
        select at, id
        from offset_commit_log
        where group_name = %(group_id)s and topic = visible.topic and partition = visible.partition
          -- include: page
        order by at desc, id desc
        limit (select %(limit)s::bigint / count(*) + 1 from visible)
    ) l
    order by l.at desc, l.id desc
    offset %(limit)s::bigint - 1
    limit 1
)
select l.*
from visible
cross join lateral (
    -- include: lines
    where group_name = %(group_id)s and topic = visible.topic and partition = visible.partition
      -- include: page
      and at >= coalesce((select oldest.at from oldest), %(since)s)
    order by at desc, id desc
    limit %(limit)s
) l
order by l.at desc, l.id desc
limit %(limit)s

-- name: journal_page_of_partition
-- include: lines
where group_name = %(group_id)s and topic = %(topic)s and partition = %(partition)s
  -- include: page
  -- include: seen_topic
order by at desc, id desc
limit %(limit)s

-- name: journal_page_of_changes
-- Changes other than commits and settled items are rare and have their own index: they are found without reading those
-- in between.
-- include: lines
where group_name = %(group_id)s and kind not in ('commit', 'txn_commit', 'items_done')
  -- include: page
  -- include: seen_topic
  and (%(topic)s::text is null or topic = %(topic)s)
order by at desc, id desc
limit %(limit)s

-- name: changes_by_step
-- Lines of a group, at most %(most)s of each step: a group may commit a hundred times per second.
with recursive own as (
    -- include: partitions_of_days
)
select n.step, count(*) as lines
from generate_series(0, %(steps)s::int - 1) as n (step)
cross join lateral (
    select
    from own
    cross join lateral (
        select from offset_commit_log l
        where l.group_name = %(group_id)s and l.topic = own.topic and l.partition = own.partition
          and l.at >= %(first)s::bigint and l.at < %(last)s::bigint
          and l.at >= %(first)s::bigint + n.step * %(step_ms)s::bigint
          and l.at < %(first)s::bigint + (n.step + 1) * %(step_ms)s::bigint
        limit %(most)s
    ) line
    where own.partition >= 0
      -- include: seen_topic
    limit %(most)s
) l
group by n.step
order by n.step

-- name: journal_knows_group
-- A deleted group is known as long as its journal is kept. In the order of the index, so that a group without lines is not
-- searched for in the whole journal.
select exists (select from groups_group where group_id = %(group_id)s)
       or (select true from offset_commit_log where group_name = %(group_id)s
           order by topic, partition, at, id limit 1) is not null
