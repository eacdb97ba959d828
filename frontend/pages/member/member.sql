-- name: one_member
-- A member of a group of any type. `metadata`: of a classic member, for the protocol that its group agreed on.
-- include: member_columns
       , m.rebalance_timeout_ms, m.previous_epoch, m.protocol_names, m.metadata
from (select id, member_id, instance_id, client_id, client_host, join_parked_until is not null as awaiting_join,
             sync_parked_until is not null as awaiting_sync, pending_sync, session_timeout_ms, session_deadline,
             last_heartbeat_at, null::int as member_epoch, null::smallint as consumer_state, rebalance_timeout_ms,
             null::int as previous_epoch, protocol_names,
             protocol_metadata[coalesce(array_position(protocol_names, %(protocol)s::text), 1)] as metadata
      from groups_member
      where group_id = %(pk)s and member_id = %(member_id)s
      union all
      select id, member_id, instance_id, client_id, client_host, false, false, false,
             session_deadline - session_armed_at, session_deadline, session_armed_at, member_epoch, state,
             rebalance_timeout_ms, previous_member_epoch, coalesce(classic_protocol_names, '{}'), null
      from groups_consumermember
      where group_id = %(pk)s and member_id = %(member_id)s) m

-- name: member_id_given_out
-- Until when a member id that was given out may be used.
select deadline
from groups_pendingmember
where group_id = %(pk)s and member_id = %(member_id)s

-- name: member_totals
-- Over the first partitions that it owns. `target`: how many it is meant to have; null: those that it owns.
select count(*) as partitions, count(o.partition) as committed, count(o.partition) filter (where w.id is not null) as measured,
       kcoord_bigint(sum(greatest(w.log_end_offset - greatest(o.committed_offset, w.log_start_offset), 0))
           filter (where o.partition is not null and w.id is not null)) as lag,
       min(w.sampled_at) as sampled_at,
       (select coalesce(sum(jsonb_array_length(t.value)), 0)::bigint
        from groups_consumermember m
        left join lateral jsonb_each(m.target) t on true
        where m.group_id = %(pk)s and m.member_id = %(member_id)s and not (m.state = 0 and m.member_epoch = %(epoch)s)
        group by m.id) as target
from (select topic, partition
      from groups_assignment
      where group_id = %(pk)s and member_id = %(member_id)s
        and kcoord_sees(topic, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
      order by topic, partition
      limit %(most)s) a
left join offsets_committedoffset o on o.group_id = %(pk)s and o.topic = a.topic and o.partition = a.partition
left join groups_topic t on t.name = a.topic
left join lateral (select * from groups_watermark where topic_id = t.id and partition = a.partition limit 1) w on true

-- name: member_partitions
-- What it owns or is meant to have, by topic and partition. Of a settled member the target is what it owns, and is not
-- unpacked; `wanted` is null then. What is among the first of both is among the first of each.
with member as materialized (
    select target
    from groups_consumermember
    where group_id = %(pk)s and member_id = %(member_id)s and not (state = 0 and member_epoch = %(epoch)s)),
held as (
    select topic, partition, pending
    from groups_assignment
    where group_id = %(pk)s and member_id = %(member_id)s
      and kcoord_sees(topic, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
      and (topic, partition) > (%(after_topic)s, %(after_partition)s::int)
    order by topic, partition
    limit %(limit)s),
wanted as (
    select coalesce(n.name, t.key) as topic, p.value::int as partition
    from member m
    cross join lateral jsonb_each(m.target) t
    left join groups_topic n on n.topic_id = t.key::uuid
    cross join lateral jsonb_array_elements(t.value) p
    where (coalesce(n.name, t.key), p.value::int) > (%(after_topic)s, %(after_partition)s::int)
      and kcoord_sees(n.name, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
    order by 1, 2
    limit %(limit)s),
part as (
    select topic, partition, coalesce(h.pending, false) as pending, h.topic is not null as held,
           case when exists (select from member) then w.topic is not null end as wanted
    from held h
    full join wanted w using (topic, partition)
    order by topic, partition
    limit %(limit)s)
select k.topic, k.partition, k.pending, k.held, k.wanted, o.committed_offset, o.commit_timestamp, w.log_start_offset,
       w.log_end_offset, w.sampled_at
from part k
left join offsets_committedoffset o on o.group_id = %(pk)s and o.topic = k.topic and o.partition = k.partition
left join lateral (
    select w.log_start_offset, w.log_end_offset, w.sampled_at
    from groups_topic t
    join groups_watermark w on w.topic_id = t.id and w.partition = k.partition
    where t.name = k.topic
    limit 1) w on true
order by k.topic, k.partition

-- name: topics_owned_of
-- Topics of which a member owns one of these partitions; of partition -1, any.
select distinct p.topic
from unnest(%(topics)s::text[], %(partitions)s::int[]) as p (topic, partition)
join groups_assignment a
    on a.group_id = %(pk)s and a.member_id = %(member_id)s and a.topic = p.topic
       and (p.partition = -1 or a.partition = p.partition)
