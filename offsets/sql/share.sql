-- Items of share groups. What may be done with them is in the functions (migrations/sql/0006_share_items.sql).

-- name: share_member
-- A group with one of its members, whose columns are null if it has no such member.
select g.id as pk, g.type, m.member_epoch, m.previous_member_epoch, m.assigned, m.session_deadline
from groups_group g
left join groups_consumermember m on m.group_id = g.id and m.member_id = %(member_id)s
where g.group_id = %(group_id)s

-- name: acquire_items
select lock_id, topic_id, partition, held, delivery_count, until, last_error
from kcoord.share_acquire(%(group)s, %(member_id)s, %(topics)s::uuid[], %(partitions)s::int[], %(ends)s::bigint[],
                          %(most)s, %(lock_ms)s, %(rules)s::text::kcoord.share_rules, %(now)s)

-- name: settle_items
select place, why, held_by, until
from kcoord.share_settle(%(group)s, %(member_id)s, %(items)s::text::jsonb, false, true,
                         %(rules)s::text::kcoord.share_rules, %(now)s)

-- name: next_item_due
-- When there may be something to acquire again on these partitions: a retry is due, or a lock is over.
select min(due.at)
from unnest(%(topics)s::uuid[], %(partitions)s::int[]) a (topic_id, partition)
join offsets_sharepartition p on p.group_id = %(group)s and p.topic_id = a.topic_id and p.partition = a.partition
cross join lateral (
    (select l.until as at from offsets_sharelock l where l.share_partition_id = p.id order by l.until limit 1)
    union all
    (select r.not_before from offsets_shareretry r where r.share_partition_id = p.id order by r.not_before limit 1)
) due

-- name: groups_with_overdue_locks
select g.group_id, g.id as pk
from groups_group g
where g.id in (select p.group_id from offsets_sharelock l
               join offsets_sharepartition p on p.id = l.share_partition_id
               where l.until <= %(now)s)
order by g.id

-- name: expire_share_locks
select kcoord.share_expire(%(group)s, %(most)s, %(rules)s::text::kcoord.share_rules, %(now)s)

-- name: forget_ended_locks
-- Ids grow, so that the oldest are first.
delete from offsets_shareended e
using (select lock_id from offsets_shareended order by lock_id limit %(most)s) o
where o.lock_id = e.lock_id and e.at < %(before)s

-- name: begin_share_partitions
select kcoord.share_begin(%(group)s, %(topics)s::uuid[], kcoord.share_rules_of(%(group_id)s))

-- name: release_share_members
select kcoord.share_leave(%(group)s, %(members)s::text[], kcoord.share_rules_of(%(group_id)s), %(now)s)

-- name: forget_share_partitions
select kcoord.share_forget(%(group)s, null)
