-- name: group_coordinator
-- No row: no node has ever owned the partition.
select p.state, p.epoch, n.node_id, n.url, n.expires_at
from groups_coordinatorpartition p
left join groups_coordinatornode n on n.id = p.owner_id
where p.partition = %(partition)s

-- name: group_counts
-- A group has members of one kind.
select (select count(*) from groups_member where group_id = %(pk)s)
       + (select count(*) from groups_consumermember where group_id = %(pk)s) as members,
       (select count(*) from groups_member where group_id = %(pk)s and join_parked_until is not null) as joined,
       (select count(*) from groups_pendingmember where group_id = %(pk)s) as pending_ids,
       (select min(deadline) from groups_pendingmember where group_id = %(pk)s) as pending_deadline

-- name: earliest_timer
-- Timers of members; those of the group itself are in its header.
select member_id, kind, deadline
from (select member_id, 'session' as kind, session_deadline as deadline
      from groups_member where group_id = %(pk)s
      union all
      select member_id, kind, deadline
      from groups_consumermember
      cross join lateral (values ('session', session_deadline), ('rebalance', rebalance_deadline),
                                 ('join', join_deadline), ('sync', sync_deadline)) t (kind, deadline)
      where group_id = %(pk)s) timers
where deadline is not null
order by deadline, member_id
limit 1

-- name: group_members
-- The members that match `q` (in an id, a client id or a host), sorted, from `skip` on. Without `sort` in the order of
-- arrival; if not all are shown, members that a consumer group waits for come first. What each owns and how far it is
-- behind is counted for all members only if they are sorted by it. The session length of a consumer member is the one
-- last armed. `matching`: how many match. What members of a share group have is stored with them, and is shown only to who
-- sees all their topics.
with m as (
    select id, member_id, instance_id, client_id, client_host, join_parked_until is not null as awaiting_join,
           sync_parked_until is not null as awaiting_sync, pending_sync, session_timeout_ms, session_deadline,
           last_heartbeat_at, null::int as member_epoch, null::smallint as consumer_state, 0 as place
    from groups_member
    where group_id = %(pk)s
    union all
    select id, member_id, instance_id, client_id, client_host, false, false, false,
           session_deadline - session_armed_at, session_deadline, session_armed_at, member_epoch, state,
           case when not %(unsettled_first)s then 0
                when state = 1 then 1
                when state <> 0 or member_epoch <> %(epoch)s then 2
                else 3 end
    from groups_consumermember
    where group_id = %(pk)s),
matched as (
    select *, count(*) over () as matching
    from m
    where %(q)s = ''
       or strpos(lower(concat_ws(' ', member_id, instance_id, client_id, client_host)), lower(%(q)s)) > 0),
load as (
    select a.member_id, count(*) as owned,
           sum(greatest(w.log_end_offset - greatest(o.committed_offset, w.log_start_offset), 0))
               filter (where o.committed_offset is not null and w.sampled_at is not null) as lag
    from groups_assignment a
    left join offsets_committedoffset o
        on o.group_id = a.group_id and o.topic = a.topic and o.partition = a.partition and %(sort)s = 'lag'
    left join groups_topic t on t.name = o.topic
    left join lateral (select * from groups_watermark where topic_id = t.id and partition = o.partition limit 1) w on true
    where a.group_id = %(pk)s and %(sort)s in ('lag', 'partitions')
      and kcoord_sees(a.topic, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
    group by a.member_id),
chosen as (
    select matched.*, row_number() over (
               order by case %(sort)s when 'lag' then coalesce(load.lag, -1)
                                     when 'partitions' then coalesce(load.owned, 0) end desc,
                        case %(sort)s when 'client' then client_id end,
                        case %(sort)s when 'client' then client_host end,
                        case %(sort)s when 'heartbeat' then last_heartbeat_at when 'session' then session_deadline end,
                        place, id) as rank
    from matched
    left join load on load.member_id = matched.member_id
    order by rank
    limit %(limit)s offset %(skip)s)
-- include: member_columns
       , m.matching
from chosen m
order by m.rank

-- name: member_loads
-- How far members are behind, and the partitions where each is furthest behind.
with part as materialized (
    select a.member_id, a.topic, a.partition, o.committed_offset, w.log_start_offset, w.log_end_offset, w.sampled_at,
           greatest(w.log_end_offset - greatest(o.committed_offset, w.log_start_offset), 0) as lag
    from groups_assignment a
    left join offsets_committedoffset o on o.group_id = a.group_id and o.topic = a.topic and o.partition = a.partition
    left join groups_topic t on t.name = a.topic
    left join lateral (select * from groups_watermark where topic_id = t.id and partition = a.partition limit 1) w on true
    where a.group_id = %(pk)s and a.member_id = any(%(member_ids)s)
      and kcoord_sees(a.topic, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)),
total as (
    select member_id, count(*) filter (where committed_offset is not null and sampled_at is not null) as measured,
           kcoord_bigint(sum(lag) filter (where committed_offset is not null and sampled_at is not null)) as lag
    from part
    group by member_id),
furthest as (
    select *
    from (select part.*, row_number() over (partition by member_id order by lag desc) as place
          from part
          where committed_offset is not null and lag > 0) p
    where place <= 4)
select total.member_id, total.measured, total.lag, f.topic, f.partition, f.committed_offset, f.log_start_offset,
       f.log_end_offset, f.sampled_at
from total
left join furthest f on f.member_id = total.member_id
order by total.member_id

-- name: owned_partitions
-- The first topics of each member by name: one member may own a hundred thousand.
select m.member_id, o.topic, o.pending, o.partitions
from unnest(%(member_ids)s::text[]) as m (member_id)
cross join lateral (select topic, pending, array_agg(partition order by partition) as partitions
                    from (select topic, pending, partition
                          from groups_assignment
                          where group_id = %(pk)s and member_id = m.member_id
                            and kcoord_sees(topic, %(topic_names)s, %(topic_prefixes)s,
                                            %(topic_denied)s, %(topic_denied_prefixes)s)
                          union all
                          select t.name, false, p.partition::int
                          from groups_consumermember s
                          cross join lateral jsonb_each(s.assigned) h
                          cross join lateral jsonb_object_keys(h.value) p (partition)
                          join groups_topic t on t.topic_id::text = h.key
                          where s.group_id = %(pk)s and s.member_id = m.member_id) has
                    group by topic, pending
                    order by topic, pending
                    limit %(topics)s) o
order by m.member_id, o.topic, o.pending

-- name: group_topics
-- What the group owns or has committed, the first by name, and how much of it; also what members of a consumer group
-- are meant to have: of who is settled that is what it owns. Each part stops at the limit: a group may read a hundred
-- thousand topics, and the empty text is part of every name.
with owned as (
    select distinct topic
    from groups_assignment
    where group_id = %(pk)s and strpos(lower(topic), lower(%(q)s)) > 0
      and kcoord_sees(topic, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
    order by topic
    limit %(limit)s),
committed as (
    select distinct topic
    from offsets_committedoffset
    where group_id = %(pk)s and strpos(lower(topic), lower(%(q)s)) > 0
      and kcoord_sees(topic, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
    order by topic
    limit %(limit)s),
awaited as (
    select n.name as topic
    from groups_topic n
    where strpos(lower(n.name), lower(%(q)s)) > 0
      and kcoord_sees(n.name, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
      and (n.topic_id::text in (select jsonb_object_keys(target)
                                from groups_consumermember
                                where group_id = %(pk)s and not (state = 0 and member_epoch = %(epoch)s))) is true
    order by n.name
    limit %(limit)s)
select t.topic, c.partitions,
       (select count(*) from groups_assignment a where a.group_id = %(pk)s and a.topic = t.topic) as owned,
       greatest((select max(a.partition) from groups_assignment a where a.group_id = %(pk)s and a.topic = t.topic),
                (select max(o.partition) from offsets_committedoffset o
                 where o.group_id = %(pk)s and o.topic = t.topic), -1) + 1 as seen
from (select topic from owned union select topic from committed union select topic from awaited
      order by topic
      limit %(limit)s) t
left join groups_topic c on c.name = t.topic
order by t.topic

-- name: partition_owners
select a.topic, a.partition, a.member_id, m.id as member_pk, a.pending, m.client_id, m.client_host
from unnest(%(topics)s::text[], %(widths)s::int[]) as drawn (topic, width)
join groups_assignment a on a.group_id = %(pk)s and a.topic = drawn.topic and a.partition < drawn.width
left join lateral (select id, client_id, client_host from groups_member
                   where group_id = a.group_id and member_id = a.member_id
                   union all
                   select id, client_id, client_host from groups_consumermember
                   where group_id = a.group_id and member_id = a.member_id) m
    on true
order by a.topic, a.partition

-- name: drawn_offsets
-- What is committed on the partitions that the map shows, and how far that is behind.
select o.topic, o.partition, o.committed_offset,
       case when w.sampled_at is not null
            then greatest(w.log_end_offset - greatest(o.committed_offset, w.log_start_offset), 0) end as lag
from unnest(%(topics)s::text[], %(widths)s::int[]) as drawn (topic, width)
join offsets_committedoffset o on o.group_id = %(pk)s and o.topic = drawn.topic and o.partition < drawn.width
left join groups_topic t on t.name = o.topic
left join lateral (select * from groups_watermark where topic_id = t.id and partition = o.partition limit 1) w on true

-- name: mark_totals
-- Partitions of the group with a mark of the map, also of those that are not drawn.
with owned as (
    select topic, count(*) as owned, max(partition) + 1 as seen
    from groups_assignment
    where group_id = %(pk)s and strpos(lower(topic), lower(%(q)s)) > 0
      and kcoord_sees(topic, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
    group by topic),
committed as (
    select o.topic, max(o.partition) + 1 as seen,
           count(*) filter (where w.log_end_offset > greatest(o.committed_offset, w.log_start_offset)) as behind
    from offsets_committedoffset o
    left join groups_topic t on t.name = o.topic
    left join lateral (select * from groups_watermark where topic_id = t.id and partition = o.partition limit 1) w on true
    where o.group_id = %(pk)s and strpos(lower(o.topic), lower(%(q)s)) > 0
      and kcoord_sees(o.topic, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
    group by o.topic)
select coalesce(sum(greatest(coalesce(t.partitions, 0), coalesce(a.seen, 0), coalesce(c.seen, 0))
                    - coalesce(a.owned, 0)), 0)::bigint as unowned,
       coalesce(sum(c.behind), 0)::bigint as behind
from owned a
full join committed c using (topic)
left join groups_topic t on t.name = topic

-- fragment: owner_names
left join lateral (select client_id, client_host from groups_member
                   where group_id = %(pk)s and member_id = p.owner
                   union all
                   select client_id, client_host from groups_consumermember
                   where group_id = %(pk)s and member_id = p.owner) c on true

-- name: partition_offsets
-- What is owned or committed: a partition that nobody owns keeps its offset, one that was never committed has none.
-- What is among the first of both is among the first of each.
select p.topic, p.partition, p.owner, p.committed_offset, p.metadata, p.commit_timestamp,
       w.log_start_offset, w.log_end_offset, w.sampled_at, p.expire_timestamp,
       exists (select from offsets_pendingoffset t
               where t.group_id = %(pk)s and t.topic = p.topic and t.partition = p.partition) as pending,
       c.client_id, c.client_host
from (select topic, partition, a.member_id as owner, o.committed_offset, o.metadata, o.commit_timestamp,
             o.expire_timestamp
      from (select topic, partition, member_id from groups_assignment
            where group_id = %(pk)s and strpos(lower(topic), lower(%(q)s)) > 0
              and kcoord_sees(topic, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
            order by topic, partition
            limit %(limit)s) a
      full join (select topic, partition, committed_offset, metadata, commit_timestamp, expire_timestamp
                 from offsets_committedoffset
                 where group_id = %(pk)s and strpos(lower(topic), lower(%(q)s)) > 0
                   and kcoord_sees(topic, %(topic_names)s, %(topic_prefixes)s,
                                   %(topic_denied)s, %(topic_denied_prefixes)s)
                 order by topic, partition
                 limit %(limit)s) o using (topic, partition)
      order by topic, partition
      limit %(limit)s) p
left join groups_topic t on t.name = p.topic
left join lateral (select * from groups_watermark where topic_id = t.id and partition = p.partition limit 1) w on true
-- include: owner_names
order by p.topic, p.partition

-- name: partition_table
-- As `partition_offsets`, with all partitions looked at: for a table that is filtered or sorted, or goes on. `only`: ""
-- for all, or those without an owner (`unowned`), with records to read (`lagging`), or without a commit (`never`).
-- `member_id`: "" for any owner. `matching`: how many there are.
select p.topic, p.partition, p.owner, p.committed_offset, p.metadata, p.commit_timestamp, p.log_start_offset,
       p.log_end_offset, p.sampled_at, p.expire_timestamp,
       exists (select from offsets_pendingoffset t
               where t.group_id = %(pk)s and t.topic = p.topic and t.partition = p.partition) as pending,
       c.client_id, c.client_host, p.matching
from (select k.topic, k.partition, a.member_id as owner, o.committed_offset, o.metadata, o.commit_timestamp,
             o.expire_timestamp, w.log_start_offset, w.log_end_offset, w.sampled_at, l.lag,
             count(*) over () as matching,
             row_number() over (
                 order by case when %(sort)s = 'lag' then coalesce(l.lag, -1) end desc,
                          case when %(sort)s = 'committed' then o.commit_timestamp end nulls last, k.topic, k.partition
             ) as rank
      from (select topic, partition, member_id from groups_assignment
            where group_id = %(pk)s and strpos(lower(topic), lower(%(q)s)) > 0
              and kcoord_sees(topic, %(topic_names)s, %(topic_prefixes)s,
                              %(topic_denied)s, %(topic_denied_prefixes)s)) a
      full join (select topic, partition, committed_offset, metadata, commit_timestamp, expire_timestamp
                 from offsets_committedoffset
                 where group_id = %(pk)s and strpos(lower(topic), lower(%(q)s)) > 0
                   and kcoord_sees(topic, %(topic_names)s, %(topic_prefixes)s,
                                   %(topic_denied)s, %(topic_denied_prefixes)s)) o
          on o.topic = a.topic and o.partition = a.partition
      cross join lateral (select coalesce(a.topic, o.topic) as topic, coalesce(a.partition, o.partition) as partition) k
      left join groups_topic t on t.name = k.topic
      left join lateral (select * from groups_watermark where topic_id = t.id and partition = k.partition limit 1) w on true
      cross join lateral (select case when o.committed_offset is not null and w.sampled_at is not null
                                 then greatest(w.log_end_offset - greatest(o.committed_offset, w.log_start_offset), 0)
                                 end as lag) l
      where (%(member_id)s = '' or a.member_id = %(member_id)s)
        and case %(only)s when 'unowned' then a.member_id is null when 'lagging' then l.lag > 0
                          when 'never' then o.committed_offset is null else true end
      order by rank
      limit %(limit)s offset %(skip)s) p
-- include: owner_names
order by p.rank
