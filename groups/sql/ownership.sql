-- name: read_ownership
-- Read in the statement after the lock on the groups: the clocks, who runs the timers of each one's coordinator partition,
-- and whether it exists: one that exists without having been locked is locked by others. A partition without a row has never had an owner, and everything may expire as before there were nodes. Sessions are
-- known as far as every node has written those that it renewed in memory, whether its lease still runs or not.
select w.group_id, exists (select from groups_group g where g.group_id = w.group_id) as exists,
       c.now, c.database_ms, p.owner_id as owner, coalesce(p.epoch, 0) as epoch, coalesce(p.gap, 0) as gap,
       p.partition is null
       or coalesce(p.state = 'ACTIVE' and n.ended_at is null and n.expires_at > c.now + %(margin_ms)s, false) as active,
       least(c.now, (select min(x.flushed_until) from groups_coordinatornode x where x.ended_at is null))
           as sessions_known_until
from (select coalesce(%(override)s::bigint, t.ms) as now, t.ms as database_ms
      from (select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms) t) c
cross join unnest(%(group_id)s::text[], %(partition)s::int[]) as w (group_id, partition)
left join groups_coordinatorpartition p on p.partition = w.partition
left join groups_coordinatornode n on n.id = p.owner_id

-- name: hold_partitions
-- For a transaction in which something expires: owner and gap stay as they are until it ends.
select partition from groups_coordinatorpartition where partition = any(%(partition)s::int[]) order by partition for share
