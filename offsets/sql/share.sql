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

-- name: waiting_share_members
select m.member_id, m.member_epoch
from groups_group g
join groups_consumermember m on m.group_id = g.id
where g.group_id = %(group_id)s and m.member_id = any(%(members)s::text[])

-- name: available_items
-- How many items each partition of a group could give now, and in how many ms time alone may give it more.
select p.topic_id, p.partition,
       least(greatest(ends.last - coalesce(p.next_offset, greatest(ends.last - 1, 0)), 0) + r.due + l.overdue,
             greatest(%(most_locks)s - l.locked, 0))::bigint as available,
       least(r.next, l.next) - %(now)s as due_in_ms
from groups_group g
join offsets_sharepartition p on p.group_id = g.id
left join groups_topic t on t.topic_id = p.topic_id
left join groups_watermark w on w.topic_id = t.id and w.partition = p.partition
cross join lateral (select greatest(p.end_offset, w.log_end_offset) as last) ends
cross join lateral (
    select coalesce(sum(kcoord.size_of(x.held)) filter (where x.not_before <= %(now)s), 0) as due,
           min(x.not_before) filter (where x.not_before > %(now)s) as next
    from offsets_shareretry x where x.share_partition_id = p.id) r
cross join lateral (
    select coalesce(sum(kcoord.size_of(x.held)) filter (where x.until <= %(now)s), 0) as overdue,
           coalesce(sum(kcoord.size_of(x.held)) filter (where x.until > %(now)s), 0) as locked,
           min(x.until) filter (where x.until > %(now)s) as next
    from offsets_sharelock x where x.share_partition_id = p.id) l
where g.group_id = %(group_id)s

-- name: wake_share_groups
-- Those that work on a topic, of which an end was reported.
select pg_notify('kcoord_wake', g.group_id)
from groups_topic t
join offsets_sharepartition p on p.topic_id = t.topic_id
join groups_group g on g.id = p.group_id
where t.name = %(topic)s
group by g.group_id

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
select kcoord.share_forget(%(group)s, %(topics)s::uuid[])
