-- fragment: clock
select coalesce(%(override)s::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint) as now

-- name: node_clock
-- include: clock

-- name: lock_nodes
-- For every transaction that registers or ends nodes, or changes owners. Renewals of leases do not wait for it.
select pg_advisory_xact_lock(%(key)s)

-- name: renewals_need_no_flush
-- A renewal that is lost in a crash of Postgres is only a lease that ends earlier.
select set_config('synchronous_commit', 'off', true)

-- name: lock_node
-- Apart from the renewal: a clock that is read before the lock is held may be older than the end of the lease.
select id from groups_coordinatornode where id = %(id)s for update

-- name: renew_node
-- No row: the lease has run out or the node was declared dead, and neither can be mended.
with c as (
    -- include: clock
)
update groups_coordinatornode n
set renewed_at = c.now, expires_at = c.now + %(lease_ms)s
from c
where n.id = %(id)s and n.ended_at is null and n.expires_at > c.now
returning c.now

-- fragment: nodes
select id, node_id, url, version, started_at, renewed_at, expires_at, ended_at, end_reason,
       broker_id, kafka_host, kafka_port
from groups_coordinatornode

-- name: load_nodes
-- include: nodes
where ended_at is null
order by id

-- fragment: partitions
select partition, owner_id as owner, epoch, gap, state, state_since, active_since, load_ms
from groups_coordinatorpartition
order by partition

-- name: load_partitions
-- include: partitions

-- name: lock_partitions
-- include: partitions
for update

-- name: create_partitions
insert into groups_coordinatorpartition (partition, epoch, gap, state, state_since)
select number, 0, 0, 'CLOSED', %(now)s from generate_series(0, %(partitions)s - 1) as s (number)
on conflict (partition) do nothing

-- name: insert_node
-- Its number as a broker is that of its last run; the caller holds the lock of nodes.
insert into groups_coordinatornode
    (node_id, url, version, kafka_host, kafka_port, started_at, renewed_at, expires_at, broker_id)
values (%(node_id)s::text, %(url)s, %(version)s, %(kafka_host)s, %(kafka_port)s, %(now)s::bigint, %(now)s::bigint,
        %(now)s::bigint + %(lease_ms)s::bigint,
        coalesce((select n.broker_id from groups_coordinatornode n
                  where n.node_id = %(node_id)s::text and n.broker_id > 0 order by n.id desc limit 1),
                 (select coalesce(max(n.broker_id), 0) + 1 from groups_coordinatornode n)))
returning id

-- name: end_lapsed_nodes
update groups_coordinatornode
set ended_at = %(now)s, end_reason = 'lapsed'
where ended_at is null and expires_at <= %(now)s
returning node_id

-- name: end_node
update groups_coordinatornode
set ended_at = %(now)s, end_reason = %(reason)s
where id = %(id)s and ended_at is null

-- name: name_nodes
select id, node_id, expires_at, end_reason from groups_coordinatornode where id = any(%(ids)s)

-- name: raise_gaps
update groups_coordinatorpartition set gap = gap + 1

-- name: give_partitions
update groups_coordinatorpartition p
set owner_id = g.owner, epoch = p.epoch + 1, gap = p.gap + g.gaps, state = g.state, state_since = %(now)s,
    active_since = null
from unnest(%(partition)s::int[], %(owner)s::bigint[], %(gaps)s::int[], %(state)s::text[])
     as g (partition, owner, gaps, state)
where p.partition = g.partition

-- name: insert_partition_changes
-- Also counts them, for /metrics: rows are trimmed, counters are not. The caller holds the lock of nodes, so that no
-- two transactions lock counters in different orders.
with changes as (
    insert into groups_partitionchange (at, partition, epoch, gap, from_node, to_node, reason, gap_ms)
    select %(now)s, p.partition, p.epoch, p.gap, c.from_node, c.to_node, c.reason, c.gap_ms
    from unnest(%(partition)s::int[], %(from_node)s::text[], %(to_node)s::text[], %(reason)s::text[],
                %(gap_ms)s::bigint[]) as c (partition, from_node, to_node, reason, gap_ms)
    join groups_coordinatorpartition p on p.partition = c.partition
    returning reason
)
insert into kcoord_counter as k (name, value)
select 'partition_changes:' || reason, count(*) from changes group by reason order by reason
on conflict (name) do update set value = k.value + excluded.value

-- name: activate_partitions
-- Under the epoch: a partition that was given to another node meanwhile stays as it is.
with c as (
    -- include: clock
)
update groups_coordinatorpartition p
set state = 'ACTIVE', state_since = c.now, active_since = c.now, load_ms = greatest(c.now - p.state_since, 0)
from c, unnest(%(partition)s::int[], %(epoch)s::bigint[]) as a (partition, epoch)
where p.partition = a.partition and p.epoch = a.epoch and p.owner_id = %(owner)s and p.state = 'LOADING'
returning p.partition, p.epoch, p.load_ms

-- name: retry_partitions
-- A partition whose loading failed is loaded again under a newer epoch.
update groups_coordinatorpartition
set epoch = epoch + 1, state = 'LOADING', state_since = %(now)s, active_since = null
where partition = any(%(partition)s) and owner_id = %(owner)s
returning partition, epoch

-- name: wake_oversized_groups
-- Groups that are larger than allowed rebalance when they are loaded, so their timers are due at once.
with c as (
    -- include: clock
)
update groups_group g
set wake_at = c.now
from c
where g.partition = any(%(partition)s) and g.type = 'classic' and g.state in ('Stable', 'CompletingRebalance')
  and (select count(*) from groups_member m where m.group_id = g.id) > %(max_size)s

-- name: trim_partition_changes
delete from groups_partitionchange where at < %(before)s

-- name: trim_nodes
delete from groups_coordinatornode n
where n.ended_at < %(before)s
  and not exists (select from groups_coordinatorpartition p where p.owner_id = n.id)

-- name: recent_nodes
-- Live ones first, then those that ended last.
-- include: nodes
order by ended_at desc nulls first, id desc
limit %(limit)s

-- name: recent_partition_changes
select at, partition, epoch, gap, nullif(from_node, '') as from_node_id, nullif(to_node, '') as to_node_id, reason,
       gap_ms
from groups_partitionchange
order by at desc, id desc
limit %(limit)s
