-- name: lock_batch
-- Commits of many groups. A group that another transaction holds is left out: its commits take the normal way.
select
from groups_group
where id = any(%(group)s::bigint[])
order by id
for no key update skip locked

-- name: write_batch
-- In the statement after the locks, so that it sees what was committed before them. A commit is accepted if this
-- transaction holds its group (as the only locker), the copy by which it was decided is current, nothing of the group
-- is due, ids of topics mean what they meant when they were looked up, and it was not overtaken
-- (`offsets.core.commit`). Journal and view come from one list of
-- lines, numbered once: joining one back to the other by name would be a nested loop. `latest`: no later line of the
-- batch is about the same partition; null: that holds for all. Members are locked in one order everywhere.
with clock as materialized (
    select coalesce(%(override)s::bigint, t.ms) as now, t.ms as database_ms,
           coalesce((select r.version from groups_revision r where r.subject = 'topics'), 0) as catalogue
    from (select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms) t
), accepted as materialized (
    select c.*, g.group_id as group_name, clock.now
    from clock
    cross join unnest(%(group)s::bigint[], %(version)s::bigint[], %(version_tag)s::uuid[], %(coordinator)s::int[],
                      %(catalogue)s::bigint[], %(member_id)s::text[], %(generation_id)s::int[], %(client_id)s::text[],
                      %(principal)s::text[], %(session_ms)s::bigint[], %(received_at)s::bigint[], %(own_at)s::bigint[],
                      %(first)s::int[], %(last)s::int[])
         with ordinality
         as c (group_key, version, version_tag, coordinator, catalogue, member_id, generation_id, client_id, principal,
               session_ms, received_at, own_at, first, last, number)
    join groups_group g on g.id = c.group_key
    where g.version = c.version and g.version_tag = c.version_tag and g.xmax = pg_current_xact_id()::xid
      and (g.wake_at is null or g.wake_at > clock.now)
      and coalesce((select p.gap from groups_coordinatorpartition p where p.partition = c.coordinator), 0)
          <= g.armed_gap
      and (c.catalogue is null or c.catalogue = clock.catalogue)
      and (c.received_at is null or clock.database_ms - c.received_at <= %(overtaken_ms)s or not exists (
          select
          from generate_series(c.first, c.last) as k
          join offsets_committedoffset o
            on o.group_id = c.group_key and o.topic = (%(topics)s::text[])[(%(topic)s::int[])[k]]
               and o.partition = (%(partition)s::int[])[k]
          where o.commit_timestamp > greatest(
                    clock.now - (clock.database_ms - c.received_at) + %(overtaken_ms)s, c.own_at)
            and o.commit_timestamp < clock.now))
    order by c.number
), lines as materialized (
    select nextval('offset_commit_log_id_seq') as id, a.*, (%(topics)s::text[])[(%(topic)s::int[])[k]] as topic,
           (%(partition)s::int[])[k] as partition, (%(committed_offset)s::bigint[])[k] as committed_offset,
           (%(leader_epoch)s::int[])[k] as leader_epoch, (%(metadatas)s::text[])[(%(metadata)s::int[])[k]] as metadata,
           coalesce((%(latest)s::bool[])[k], true) as latest
    from accepted a
    cross join lateral generate_series(a.first, a.last) as k
), journal as (
    insert into offset_commit_log (id, at, kind, group_name, topic, partition, committed_offset, leader_epoch, metadata,
                                   member_id, generation_id, client_id, principal)
    select id, now, 'commit', group_name, topic, partition, committed_offset, leader_epoch, metadata, member_id,
           generation_id, client_id, principal
    from lines
), view as (
    insert into offsets_committedoffset (group_id, topic, partition, committed_offset, leader_epoch, metadata,
                                         commit_timestamp, member_id, generation_id, record_offset)
    select group_key, topic, partition, committed_offset, leader_epoch, metadata, now, member_id, generation_id, id
    from lines
    where latest
    on conflict (group_id, topic, partition) do update
    set committed_offset = excluded.committed_offset, leader_epoch = excluded.leader_epoch,
        metadata = excluded.metadata, commit_timestamp = excluded.commit_timestamp, expire_timestamp = null,
        member_id = excluded.member_id, generation_id = excluded.generation_id, record_offset = excluded.record_offset
), members as materialized (
    select m.id, a.now, a.session_ms
    from accepted a
    join groups_member m on m.group_id = a.group_key and m.member_id = a.member_id
    where a.session_ms is not null
    order by m.group_id, m.member_id
    for no key update of m
), sessions as (
    update groups_member m
    set session_deadline = s.now + s.session_ms, last_heartbeat_at = s.now
    from members s
    where m.id = s.id
)
select clock.now, clock.database_ms, array(select number from accepted) as accepted
from clock

-- name: fetch_batch
-- As `fetch_named`, for requests of many groups, which are numbered.
select r.number, o.topic, o.partition, o.committed_offset, o.leader_epoch, o.metadata, o.commit_timestamp
from unnest(%(group_id)s::text[], %(first)s::int[], %(last)s::int[]) with ordinality
     as r (group_id, first, last, number)
cross join lateral (
    select id from groups_group g where g.group_id = r.group_id and g.state <> 'Dead' offset 0
) g
cross join lateral (
    select (%(topics)s::text[])[(%(topic)s::int[])[k]] as topic, (%(partition)s::int[])[k] as partition
    from generate_series(r.first, r.last) as k
    offset 0
) w
cross join lateral (
    select c.topic, c.partition, c.committed_offset, c.leader_epoch, c.metadata, c.commit_timestamp
    from offsets_committedoffset c
    where (c.group_id, c.topic, c.partition) >= (g.id, w.topic, w.partition)
      and (c.group_id, c.topic, c.partition) <= (g.id, w.topic, w.partition)
    order by c.group_id, c.topic, c.partition
    limit 1
) o

-- name: versions_of
-- Whether copies of groups are current.
select group_id, id, version, version_tag
from groups_group
where group_id = any(%(group_id)s::text[])
