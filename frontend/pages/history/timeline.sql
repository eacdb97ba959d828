-- What happened to all groups and to the service in a span of time, newest first. What is about groups is of those that
-- can be seen, whose ids begin with `prefix` and that have the label, as far as these are given.

-- fragment: of_groups
and (%(prefix)s::text is null or starts_with(h.group_name, %(prefix)s))
and kcoord_sees(h.group_name, %(group_names)s, %(group_prefixes)s, %(group_denied)s, %(group_denied_prefixes)s)
and (%(label)s::text is null
     or exists (select from groups_grouplabels b
                where b.group_name = h.group_name and b.labels ? %(label)s
                  and (%(label_value)s::text is null or b.labels ->> %(label)s = %(label_value)s)))

-- name: first_event_from
-- From which id on events are of an instant or later. Ids are given in the order of time, so it is found by halves: no
-- index is of instants. One is stored a moment after a later one at most.
with recursive halves (low, high) as (
    select coalesce(min(id), 1), coalesce(max(id), 0) + 1 from groups_event
    union all
    select case when e.at < %(at)s::bigint then e.id + 1 else h.low end,
           case when e.at < %(at)s::bigint then h.high else h.middle end
    from (select low, high, (low + high) / 2 as middle from halves where low < high) h
    cross join lateral (select id, at from groups_event where id >= h.middle order by id limit 1) e)
select low from halves where low >= high

-- name: rebalances_of_groups
-- Among the newest %(most)s events of the span, whatever they are about. The first column is the oldest of these,
-- null if there are no more; a row without an id if none matches.
with read as materialized (
    select id, at, kind, generation_id, group_name, detail
    from groups_event
    where id >= %(first_id)s::bigint and id < %(last_id)s::bigint and at >= %(first)s and at < %(last)s
    order by id desc
    limit %(most)s)
select case when c.count >= %(most)s then c.oldest end as oldest, h.id, h.at, h.kind, h.generation_id, h.group_name,
       h.detail ->> 'cause' as cause
from (select count(*) as count, min(at) as oldest from read) c
left join read h on h.kind = any(%(kinds)s::text[])
  -- include: of_groups
order by h.at desc, h.id desc

-- name: verdicts_in_span
-- Those that hold: others are not kept. Of each group and kind one, with the number of its topics. The newest of each kind
-- are found by the index.
select min(h.since) as at, h.kind as what, h.group_name, h.group_name as ref, '' as name,
       count(*) filter (where h.topic <> '') as number, null::bigint as ms
from unnest(%(kinds)s::text[]) k (kind)
cross join lateral (
    select h.since, h.kind, h.group_name, h.topic
    from (select v.since, v.kind, v.topic, g.group_id as group_name
          from offsets_groupverdict v
          join groups_group g on g.id = v.group_id
          where v.kind = k.kind and v.since >= %(first)s and v.since < %(last)s
            and (v.topic = '' or kcoord_sees(v.topic, %(topic_names)s, %(topic_prefixes)s,
                                             %(topic_denied)s, %(topic_denied_prefixes)s))) h
    where true
      -- include: of_groups
    order by h.since desc
    limit %(limit)s) h
group by h.kind, h.group_name
order by at desc, h.group_name
limit %(limit)s

-- name: plans_in_span
-- Plans are kept for as long as the journal, and people make them: those made before are looked at one by one.
select t.at, t.what, h.group_name, h.id::text as ref, t.name, null::bigint as number, null::bigint as ms
from offsets_offsetplan h
cross join lateral (values (h.created_at, 'made', h.created_by), (h.approved_at, 'approved', h.approved_by),
                           (h.applied_at, 'applied', h.applied_by), (h.undone_at, 'undone', h.undone_by))
    t (at, what, name)
where h.created_at < %(last)s and t.at >= %(first)s and t.at < %(last)s
  -- include: of_groups
order by t.at desc, h.id
limit %(limit)s

-- name: alerts_in_span
select t.at, t.what, h.group_name, h.rule_id::text as ref, r.name, null::bigint as number, null::bigint as ms
from offsets_alert h
join offsets_alertrule r on r.id = h.rule_id
cross join lateral (values (h.opened_at, 'opened'), (h.resolved_at, 'resolved')) t (at, what)
where h.opened_at is not null and (h.resolved_at is null or h.resolved_at >= %(first)s)
  and t.at >= %(first)s and t.at < %(last)s
  -- include: of_groups
order by t.at desc, h.id
limit %(limit)s

-- name: hand_overs_in_span
-- Partitions that changed their owner together are one. `ms`: the longest time without an owner.
select at, reason as what, '' as group_name, from_node as ref, to_node as name, count(*) as number, max(gap_ms) as ms
from groups_partitionchange
where at >= %(first)s and at < %(last)s
group by at, reason, from_node, to_node
order by at desc, from_node, to_node
limit %(limit)s

-- name: runs_in_span
select t.at, t.what, '' as group_name, h.id::text as ref, h.kind as name, h.findings as number,
       h.ended_at - coalesce(h.started_at, h.requested_at) as ms
from offsets_sparkrun h
cross join lateral (values (coalesce(h.started_at, h.requested_at), 'began'), (h.ended_at, h.state)) t (at, what)
where h.requested_at < %(last)s and (h.ended_at is null or h.ended_at >= %(first)s)
  and t.at >= %(first)s and t.at < %(last)s
order by t.at desc, h.id
limit %(limit)s
