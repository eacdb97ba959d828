-- name: lock_due_groups
-- Not those whose deadlines start over: they are looked at one by one.
select g.id
from groups_group g
left join groups_coordinatorpartition p on p.partition = g.partition
where g.wake_at <= %(now)s and g.held_until is null and (p.partition is null or p.gap <= g.armed_gap)
order by g.wake_at
limit %(limit)s
for update of g skip locked

-- name: move_wake_ups
-- Least and min ignore nulls: those are timers that are not armed.
update groups_group g
set wake_at = due.at
from (select d.id,
             least(d.join_deadline, d.sync_deadline,
                   (select min(m.session_deadline) from groups_member m where m.group_id = d.id),
                   (select min(p.deadline) from groups_pendingmember p where p.group_id = d.id),
                   (select min(least(c.session_deadline, c.rebalance_deadline, c.join_deadline, c.sync_deadline))
                    from groups_consumermember c where c.group_id = d.id)) as at
      from groups_group d
      where d.id = any(%(id)s)) due
where g.id = due.id and due.at > %(now)s
