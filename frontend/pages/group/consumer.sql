-- name: consumer_counts
-- Members that are not settled: each counts once, under the first condition that is true.
select count(*) filter (where not settled) as unsettled,
       count(*) filter (where not settled and not away and state = 1) as giving_up,
       count(*) filter (where not settled and not away and state = 2) as waiting,
       count(*) filter (where not settled and not away and state not in (1, 2)) as behind,
       count(*) filter (where away) as away
from (select m.state, m.member_epoch = -2 as away, m.state = 0 and m.member_epoch = %(epoch)s as settled
      from groups_consumermember m
      where m.group_id = %(pk)s) m

-- name: consumer_computation
-- A job without an epoch is the pause after a failure.
select nullif(assignment_timestamp, 0) as computed_at, (jobs->'target'->>0)::bigint as started_at,
       (jobs->'target'->>1)::bigint as deadline, coalesce((jobs->'target'->>2)::int = 0, false) as failed
from groups_group
where id = %(pk)s

-- name: assignor_votes
select server_assignor, count(*)
from groups_consumermember
where group_id = %(pk)s and server_assignor is not null
group by server_assignor

-- name: differences
-- Differences between target and owned partitions. A settled member has exactly its target.
-- `only`: partitions of these topics; null: of all. The first topics of each member, by name.
with member as materialized (
    select member_id, target
    from groups_consumermember
    where group_id = %(pk)s and member_id = any(%(member_ids)s) and not (state = 0 and member_epoch = %(epoch)s)),
chosen as materialized (
    select topic_id::text as topic_id from groups_topic where name = any(%(only)s::text[])),
wanted as (
    select m.member_id, t.key as topic_id, p.value::int as partition
    from member m
    cross join lateral jsonb_each(m.target) t
    cross join lateral jsonb_array_elements(t.value) p
    where %(only)s::text[] is null or t.key in (select topic_id from chosen)),
held as (
    select a.member_id, a.topic_id, a.topic, a.partition
    from member m
    join groups_assignment a on a.group_id = %(pk)s and a.member_id = m.member_id
    where not a.pending and (%(only)s::text[] is null or a.topic = any(%(only)s::text[])))
select member_id, topic, gains, partitions
from (select member_id, coalesce(h.topic, n.name, w.topic_id) as topic, h.topic is null as gains,
             array_agg(partition order by partition) as partitions,
             row_number() over (partition by member_id, h.topic is null
                                order by coalesce(h.topic, n.name, w.topic_id)) as place
      from wanted w
      full join held h using (member_id, topic_id, partition)
      left join groups_topic n on h.topic is null and n.topic_id::text = w.topic_id
      where h.topic is null or w.topic_id is null
      group by 1, 2, 3) d
where place <= %(topics)s
order by 1, 2, 3

-- name: handovers
-- Partitions whose owner differs from the target. Only members that are not settled can have one too many or too
-- few, so the others (most of a large group, most of the time) are not unpacked. Pending revocations come first.
-- `only`: as above.
with member as materialized (
    select id, member_id, member_epoch, target, rebalance_deadline, session_deadline, session_armed_at
    from groups_consumermember
    where group_id = %(pk)s and not (state = 0 and member_epoch = %(epoch)s)),
chosen as materialized (
    select topic_id::text as topic_id from groups_topic where name = any(%(only)s::text[])),
wanted as (
    select m.member_id as heir, t.key as topic_id, p.value::int as partition
    from member m
    cross join lateral jsonb_each(m.target) t
    cross join lateral jsonb_array_elements(t.value) p
    where %(only)s::text[] is null or t.key in (select topic_id from chosen)),
held as (
    select a.member_id as holder, a.topic_id, a.topic, a.partition, a.pending
    from member m
    join groups_assignment a on a.group_id = %(pk)s and a.member_id = m.member_id
    where %(only)s::text[] is null or a.topic = any(%(only)s::text[])),
line as (
    select h.holder, coalesce(h.pending, false) as told, w.heir, topic_id, min(h.topic) as topic,
           array_agg(partition order by partition) as partitions
    from wanted w
    full join held h using (topic_id, partition)
    where w.heir is distinct from h.holder
    group by h.holder, told, w.heir, topic_id)
select holder.id as holder_pk, l.holder, l.told, heir.id as heir_pk, l.heir,
       coalesce(l.topic, n.name, l.topic_id) as topic, l.partitions, holder.rebalance_deadline as deadline,
       holder.member_epoch as holder_epoch, holder.session_armed_at as holder_heartbeat_at,
       holder.session_deadline as holder_session, heir.member_epoch as heir_epoch,
       heir.session_armed_at as heir_heartbeat_at, count(*) over () as lines,
       (sum(cardinality(l.partitions)) over ())::bigint as moving
from line l
left join member holder on holder.member_id = l.holder
left join member heir on heir.member_id = l.heir
left join groups_topic n on l.topic is null and n.topic_id::text = l.topic_id
order by l.holder is null, not l.told, holder.rebalance_deadline, l.holder, 6, l.heir
limit %(limit)s

-- name: heirs
-- For the partitions that are drawn: the members that shall have them and do not yet. Each target is unpacked once.
with drawn as materialized (
    select n.topic_id::text as topic_id, n.name, d.width
    from unnest(%(topics)s::text[], %(widths)s::int[]) as d (topic, width)
    join groups_topic n on n.name = d.topic)
select d.name as topic, p.value::int as partition, m.member_id, m.id as member_pk
from groups_consumermember m
cross join lateral jsonb_each(m.target) t
join drawn d on d.topic_id = t.key
cross join lateral jsonb_array_elements(t.value) p
left join groups_assignment a
    on a.group_id = %(pk)s and a.topic_id = d.topic_id and a.partition = p.value::int
where m.group_id = %(pk)s and not (m.state = 0 and m.member_epoch = %(epoch)s)
      and p.value::int < d.width and a.member_id is distinct from m.member_id
order by 1, 2
