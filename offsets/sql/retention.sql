-- name: retention_page
-- Some groups by key, and what retention may have to do there: a check without locks that errs on the safe side,
-- because the rule itself (offsets.core.retention) also knows the subscriptions. There is no index on the times of
-- offsets: it would cost every commit, and this reads each offset of a group that has none due once per run.
-- A partition that became active only a while ago is left alone: its groups may not have been able to commit before.
with page as materialized (
    select id, group_id, type, state, state_since, held_until, partition,
           type = 'classic' and protocol_type is not null and state = 'Empty' as grace
    from groups_group
    where id > %(after)s
    order by id
    limit %(limit)s
), settled as materialized (
    select c.partition
    from groups_coordinatorpartition c
    join groups_coordinatornode n on n.id = c.owner_id
    where c.state = 'ACTIVE' and n.ended_at is null and n.expires_at > %(now)s and c.active_since <= %(now)s - %(wait_ms)s
), named as (
    select p.*, p.partition is null or s.partition is not null
                or not exists (select from groups_coordinatorpartition c where c.partition = p.partition) as settled
    from page p left join settled s on s.partition = p.partition
)
select p.id as pk, p.group_id,
       p.settled and exists (select from offsets_committedoffset o
               where o.group_id = p.id
                 and coalesce(o.expire_timestamp,
                              case when p.grace then p.state_since else o.commit_timestamp end::numeric + %(retention_ms)s)
                     <= %(now)s) as due,
       p.settled and p.type <> 'share' and p.state = 'Empty' and coalesce(p.held_until, 0) <= %(now)s
           and not exists (select from offsets_committedoffset o where o.group_id = p.id)
           and not exists (select from offsets_pendingoffset o where o.group_id = p.id)
           and not exists (select from offsets_retentionpin r where r.group_name = p.group_id) as bare
from named p
order by p.id

-- name: due_offsets
-- Offsets that have expired by now under a rule that does not keep all; read without a lock and decided again under it.
select o.topic, o.partition
from offsets_committedoffset o
where o.group_id = %(group)s
  and (o.topic, o.partition) > (%(after_topic)s, %(after_partition)s)
  and o.topic <> all(%(kept_topics)s::text[])
  and coalesce(o.expire_timestamp, coalesce(%(since)s::bigint, o.commit_timestamp)::numeric + %(retention_ms)s) <= %(now)s
  and not exists (select from offsets_pendingoffset p
                  where p.group_id = o.group_id and p.topic = o.topic and p.partition = o.partition)
order by o.topic, o.partition
limit %(limit)s

-- name: stored_offsets
select o.topic, o.partition, o.commit_timestamp, o.expire_timestamp,
       exists (select from offsets_pendingoffset p
               where p.group_id = o.group_id and p.topic = o.topic and p.partition = o.partition) as pending
from unnest(%(topic)s::text[], %(partition)s::int[]) as n (topic, partition)
join offsets_committedoffset o on o.group_id = %(group)s and o.topic = n.topic and o.partition = n.partition

-- name: group_is_held
select exists (select from groups_group where id = %(group)s and held_until > %(now)s)

-- name: offsets_left
-- Committed or pending ones.
select exists (select from offsets_committedoffset where group_id = %(group)s)
       or exists (select from offsets_pendingoffset where group_id = %(group)s)
