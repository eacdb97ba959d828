-- name: read_ownership
-- Read in the statement after the lock on the group: the clocks, and who runs the timers of its coordinator partition. A
-- partition without a row has never had an owner, and everything may expire as before there were nodes. Sessions are
-- known as far as every node has written those that it renewed in memory, whether its lease still runs or not.
select c.now, c.database_ms, p.owner_id as owner, coalesce(p.epoch, 0) as epoch, coalesce(p.gap, 0) as gap,
       p.partition is null
       or coalesce(p.state = 'ACTIVE' and n.ended_at is null and n.expires_at > c.now + %(margin_ms)s, false) as active,
       least(c.now, (select min(x.flushed_until) from groups_coordinatornode x where x.ended_at is null))
           as sessions_known_until
from (select coalesce(%(override)s::bigint, t.ms) as now, t.ms as database_ms
      from (select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms) t) c
left join groups_coordinatorpartition p on p.partition = %(partition)s
left join groups_coordinatornode n on n.id = p.owner_id

-- name: hold_partition
-- For a transaction in which something expires: owner and gap stay as they are until it ends.
select partition from groups_coordinatorpartition where partition = %(partition)s for share
