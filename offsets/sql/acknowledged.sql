-- name: missing_lines
-- Which of these lines, by number and in order, the journal does not have; null on a standby, which may only be behind.
-- The journal's index by partition leads to each.
select case when not pg_is_in_recovery() then array(
    select l.number
    from unnest(%(group_name)s::text[], %(topic)s::text[], %(partition)s::int[], %(committed_offset)s::bigint[],
                %(at)s::bigint[]) with ordinality
         as l (group_name, topic, partition, committed_offset, at, number)
    where not exists (
        select from offset_commit_log j
        where j.group_name = l.group_name and j.topic = l.topic and j.partition = l.partition and j.at = l.at
          and j.committed_offset = l.committed_offset
    )
    order by l.number
) end

-- name: lines_to_store_again
-- Under the lock of their group: those of which nothing is known that is later or ahead. What another process has stored
-- again (a restoration without a plan) says when it was committed only in the view.
select l.number
from unnest(%(topic)s::text[], %(partition)s::int[], %(committed_offset)s::bigint[], %(at)s::bigint[]) with ordinality
     as l (topic, partition, committed_offset, at, number)
where not exists (
    select from offsets_committedoffset o
    where o.group_id = %(group)s and o.topic = l.topic and o.partition = l.partition
      and (o.commit_timestamp >= l.at or o.committed_offset >= l.committed_offset)
    offset 0  -- looked up for each line: a join may compare each with all of the group
) and not exists (
    select from offset_commit_log j
    where j.group_name = %(group_name)s and j.topic = l.topic and j.partition = l.partition and j.at >= l.at
      and not (j.kind = 'restore' and j.plan_id is null)
)
order by l.number

-- name: record_lost_commits
-- For all processes: offsets that one of them found to be missing, by the time in which they were acknowledged.
with recorded as (
    insert into kcoord_counter (name, value)
    values ('lost_commits:' || %(since)s::bigint || ':' || %(until)s::bigint, %(offsets)s)
    on conflict (name) do update set value = kcoord_counter.value + excluded.value
)
select pg_notify(%(channel)s, '')

-- name: lost_commits
-- What was recorded of losses that were found after an instant, as one.
select coalesce(min(since), 0), coalesce(max(until), 0), coalesce(sum(offsets), 0)::bigint
from (select split_part(name, ':', 2)::bigint as since, split_part(name, ':', 3)::bigint as until, value as offsets
      from kcoord_counter where name like 'lost_commits:%%') as lost
where until > %(after)s
