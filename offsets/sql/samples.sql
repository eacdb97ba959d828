-- name: samples_around
-- What interpolating at one instant needs of each partition that has a watermark: the sample before, the one after, and
-- the watermark itself, which may be newer than the newest sample. Two primary key lookups per partition.
select w.partition, s.at, s.until, s.log_start_offset, s.log_end_offset
from groups_topic t
join groups_watermark w on w.topic_id = t.id
     and (%(partitions)s::int[] is null or w.partition = any(%(partitions)s))
cross join lateral (
    (select at, until, log_start_offset, log_end_offset
     from offsets_watermarksample
     where topic_id = t.id and partition = w.partition and at <= %(at)s
     order by at desc
     limit 1)
    union all
    (select at, until, log_start_offset, log_end_offset
     from offsets_watermarksample
     where topic_id = t.id and partition = w.partition and at > %(at)s
     order by at
     limit 1)
    union all
    select w.sampled_at, w.sampled_at, w.log_start_offset, w.log_end_offset
) s
where t.name = %(topic)s
order by w.partition, s.at, s.until desc

-- name: one_at_a_time
-- Two runs take turns batch by batch, so that they cannot lock rows in different orders.
select pg_advisory_xact_lock(%(key)s)

-- name: sample_watermarks
-- A batch of watermarks, compared with the newest sample of each. An equal one extends that sample, which touches no
-- index; a different one becomes a new sample. Where a log was truncated, earlier samples are cut to its new end, so
-- that ends never fall over time. Reports as old as samples that are dropped are not sampled again.
with reported as (
    select topic_id, partition, sampled_at, log_start_offset, log_end_offset
    from groups_watermark
    where (topic_id, partition) > (%(after_topic)s, %(after_partition)s)
    order by topic_id, partition
    limit %(limit)s
), compared as (
    select r.*, s.at, s.log_end_offset as sampled_end
    from reported r
    left join lateral (
        select at, until, log_end_offset
        from offsets_watermarksample
        where topic_id = r.topic_id and partition = r.partition
        order by at desc
        limit 1) s on true
    where r.sampled_at > coalesce(s.until, -1) and r.sampled_at >= %(oldest)s
), same as (
    update offsets_watermarksample s
    set until = c.sampled_at, log_start_offset = c.log_start_offset
    from compared c
    where c.log_end_offset = c.sampled_end
      and s.topic_id = c.topic_id and s.partition = c.partition and s.at = c.at
), cut as (
    update offsets_watermarksample s
    set log_end_offset = c.log_end_offset
    from compared c
    where c.log_end_offset < c.sampled_end
      and s.topic_id = c.topic_id and s.partition = c.partition and s.log_end_offset > c.log_end_offset
), other as (
    insert into offsets_watermarksample (topic_id, partition, at, until, log_start_offset, log_end_offset)
    select topic_id, partition, sampled_at, sampled_at, log_start_offset, log_end_offset
    from compared
    where sampled_end is distinct from log_end_offset
    on conflict do nothing
)
select topic_id, partition, (select count(*) from reported), (select count(*) from compared)
from reported
order by topic_id desc, partition desc
limit 1

-- name: thin_watermark_samples
-- For a batch of partitions: samples that are too old, and all but the first and last of each step to which samples
-- are thinned (`offsets.core.samples.surplus`). `tier_ends` and `tier_steps` go from the youngest tier to the oldest.
with reported as (
    select topic_id, partition
    from groups_watermark
    where (topic_id, partition) > (%(after_topic)s, %(after_partition)s)
    order by topic_id, partition
    limit %(limit)s
), old as (
    select s.topic_id, s.partition, s.at, s.until < %(oldest)s as expired, tier.step, s.at / tier.step as slot
    from reported r
    join offsets_watermarksample s
         on s.topic_id = r.topic_id and s.partition = r.partition and s.at < (%(tier_ends)s::bigint[])[1]
    cross join lateral (
        select step
        from unnest(%(tier_ends)s::bigint[], %(tier_steps)s::bigint[]) with ordinality as t (ends, step, position)
        where s.at < ends
        order by position desc
        limit 1) tier
), ranked as (
    select topic_id, partition, at, expired, lag(at) over slot as before, lead(at) over slot as after
    from old
    window slot as (partition by topic_id, partition, expired, step, slot order by at)
), gone as (
    delete from offsets_watermarksample s
    using ranked r
    where s.topic_id = r.topic_id and s.partition = r.partition and s.at = r.at
      and (r.expired or r.before is not null and r.after is not null)
    returning 1
)
select topic_id, partition, (select count(*) from reported), (select count(*) from gone)
from reported
order by topic_id desc, partition desc
limit 1

-- name: drop_samples_of_deleted_topics
-- The topics that have samples are found by one look into the primary key each.
with recursive sampled (topic_id) as (
    select min(topic_id) from offsets_watermarksample
    union all
    select (select min(s.topic_id) from offsets_watermarksample s where s.topic_id > sampled.topic_id)
    from sampled
    where sampled.topic_id is not null
)
delete from offsets_watermarksample
where ctid = any(array(
    select s.ctid
    from sampled
    cross join lateral (
        select ctid
        from offsets_watermarksample
        where topic_id = sampled.topic_id
        order by partition, at
        limit %(limit)s) s
    where not exists (select from groups_topic t where t.id = sampled.topic_id)
    limit %(limit)s))

-- name: last_lag_sample
select max(at) from offsets_lagsample

-- name: groups_to_sample
-- The next groups, with about the given number of offsets together; at least one group.
select max(id)
from (select id, sum(offsets) over (order by id) - offsets as before
      from (select g.id, (select count(*) from offsets_committedoffset o where o.group_id = g.id)
                         + (select count(*) from offsets_sharepartition p where p.group_id = g.id) as offsets
            from groups_group g
            where g.id > %(after)s
            order by g.id
            limit %(groups)s) counted) added
where before < %(offsets)s

-- name: sample_lag
-- The lag of each partition and the totals, as in `offsets.core.lag` and `offsets.core.samples`: a test compares them.
-- Partitions without a watermark count only among the committed offsets, those that are owned alone only among the
-- group's. What a share group has committed is the first offset that is not finished.
with behind as (
    select o.group_id, o.topic, o.committed_offset, w.log_end_offset,
           case when w.id is not null then greatest(w.log_end_offset - c.position, 0) end as lag, late.time_lag_ms,
           late.at_least_ms
    from offsets_committedoffset o
    left join groups_topic t on t.name = o.topic
    left join lateral (select * from groups_watermark where topic_id = t.id and partition = o.partition limit 1) w on true
    cross join lateral (
        select t.id as topic_id, o.partition, greatest(o.committed_offset, w.log_start_offset) as position,
               w.id is not null as known) c
    -- include: time_lag
    where o.group_id > %(after)s and o.group_id <= %(upto)s
    union all
    select p.group_id, t.name, behind.start_offset, ends.last, behind.lag,
           case when behind.lag = 0 then 0 else late.time_lag_ms end, late.at_least_ms
    from offsets_sharepartition p
    join groups_topic t on t.topic_id = p.topic_id
    -- include: share_lag
    -- include: unfinished
    -- include: time_lag
    where p.group_id > %(after)s and p.group_id <= %(upto)s
), topics as (
    select group_id, topic, max(lag) as max_lag,
           kcoord_bigint(sum(lag)) as lag,
           case when bool_and(time_lag_ms is not null) filter (where lag is not null) then max(time_lag_ms)
           end as time_lag_ms,
           max(coalesce(time_lag_ms, at_least_ms)) as at_least_ms,
           coalesce(kcoord_bigint(sum(committed_offset)), 0) as committed_offsets,
           kcoord_bigint(sum(log_end_offset)) as log_end_offsets,
           count(*) as partitions, count(*) - count(lag) as unknown_partitions
    from behind
    group by group_id, topic
), history as (
    insert into offsets_lagsample (group_name, topic, at, lag, time_lag_ms)
    select g.group_id, t.topic, %(now)s, t.lag, t.time_lag_ms
    from topics t
    join groups_group g on g.id = t.group_id and g.id > %(after)s and g.id <= %(upto)s
    where t.lag is not null
    on conflict do nothing
    returning 1
), uncommitted as (
    select a.group_id, count(distinct (a.topic, a.partition)) as partitions
    from groups_assignment a
    where a.group_id > %(after)s and a.group_id <= %(upto)s
      and not exists (select from offsets_committedoffset o
                      where o.group_id = a.group_id and o.topic = a.topic and o.partition = a.partition)
    group by a.group_id
), latest as (
    insert into offsets_grouplag as l (group_id, at, lag, time_lag_ms, time_lag_at_least_ms, state, generation_id,
                                       members, partitions)
    select g.id, %(now)s, kcoord_bigint(sum(t.lag)),
           case when bool_and(t.time_lag_ms is not null) filter (where t.lag is not null) then max(t.time_lag_ms) end,
           case when bool_and(t.time_lag_ms is not null) filter (where t.lag is not null) then null
                else max(t.at_least_ms)
           end,
           g.state, g.generation_id,
           case when g.type <> 'classic'
                then (select count(*) from groups_consumermember m where m.group_id = g.id)
                else (select count(*) from groups_member m where m.group_id = g.id)
           end,
           coalesce(sum(t.partitions), 0) + coalesce(max(u.partitions), 0)
    from groups_group g
    left join topics t on t.group_id = g.id
    left join uncommitted u on u.group_id = g.id
    where g.id > %(after)s and g.id <= %(upto)s
    group by g.id
    order by g.id
    on conflict (group_id) do update
    set at = excluded.at, lag = excluded.lag, time_lag_ms = excluded.time_lag_ms,
        time_lag_at_least_ms = excluded.time_lag_at_least_ms, state = excluded.state,
        generation_id = excluded.generation_id, members = excluded.members, partitions = excluded.partitions
    where l.at <= excluded.at
), latest_of_topics as (
    insert into offsets_topiclag as l (group_id, topic, at, lag, max_lag, time_lag_ms, time_lag_at_least_ms,
                                       committed_offsets, log_end_offsets, partitions, unknown_partitions)
    select group_id, topic, %(now)s, lag, max_lag, time_lag_ms, case when time_lag_ms is null then at_least_ms end,
           committed_offsets, log_end_offsets, partitions, unknown_partitions
    from topics
    order by group_id, topic
    on conflict (group_id, topic) do update
    set at = excluded.at, lag = excluded.lag, max_lag = excluded.max_lag, time_lag_ms = excluded.time_lag_ms,
        time_lag_at_least_ms = excluded.time_lag_at_least_ms, committed_offsets = excluded.committed_offsets, log_end_offsets = excluded.log_end_offsets,
        partitions = excluded.partitions, unknown_partitions = excluded.unknown_partitions
    where l.at <= excluded.at
), gone as (
    delete from offsets_topiclag l
    where l.group_id > %(after)s and l.group_id <= %(upto)s
      and not exists (select from topics t where t.group_id = l.group_id and t.topic = l.topic)
)
select count(*) from history

-- name: total_topics
-- Topics over all groups, once these have been sampled. Rows of deleted groups wait to be removed.
with totals as (
    select l.topic, count(*) as groups,
           kcoord_bigint(sum(l.lag)) as lag,
           max(array[l.lag, -l.group_id]) filter (where l.lag is not null) as worst, max(l.time_lag_ms) as time_lag_ms,
           case when bool_or(l.time_lag_at_least_ms is not null)
                then max(coalesce(l.time_lag_at_least_ms, l.time_lag_ms)) end as time_lag_at_least_ms
    from offsets_topiclag l
    join groups_group g on g.id = l.group_id
    group by l.topic
), gone as (
    delete from offsets_topictotal o
    where not exists (select from totals t where t.topic = o.topic)
)
insert into offsets_topictotal as o (topic, at, groups, lag, worst_group_id, worst_lag, time_lag_ms,
                                      time_lag_at_least_ms)
select topic, %(now)s, groups, lag, -worst[2], worst[1], time_lag_ms, time_lag_at_least_ms
from totals
order by topic
on conflict (topic) do update
set at = excluded.at, groups = excluded.groups, lag = excluded.lag, worst_group_id = excluded.worst_group_id,
    worst_lag = excluded.worst_lag, time_lag_ms = excluded.time_lag_ms,
    time_lag_at_least_ms = excluded.time_lag_at_least_ms
where o.at <= excluded.at

-- name: lag_sample_instants
-- One index lookup per instant at which lag was sampled.
with recursive sampled (at) as (
    select min(at) from offsets_lagsample
    union all
    select (select min(s.at) from offsets_lagsample s where s.at > sampled.at)
    from sampled
    where sampled.at is not null
)
select at from sampled where at is not null

-- name: keep_lag_peaks
-- What is largest in a step, in lag or in time lag, before samples between its first and last are dropped: of each group
-- on each topic, of each group over its topics, and of each topic over its groups. Peaks of shorter steps become those
-- of this one. Of equal ones a sample that stays is the peak, so that a steady lag leaves nothing here.
with looked as (
    select group_name, topic, at, lag, time_lag_ms
    from offsets_lagsample
    where at >= %(first)s and at < %(last)s
), before as (
    select group_name, topic, at, lag, time_lag_ms, parts
    from offsets_lagpeak
    where at >= %(first)s and at < %(last)s
), having_topics as (
    select group_name, count(*) as topics
    from (select group_name, topic from looked
          union
          select group_name, topic from before where group_name <> '' and topic <> '') u
    group by group_name
), series as (
    select group_name, topic, at, lag, time_lag_ms, topics as parts
    from looked
    join having_topics using (group_name)
    union all
    select b.group_name, b.topic, b.at, b.lag, b.time_lag_ms,
           case when b.topic = '' then b.parts else coalesce(h.topics, b.parts) end
    from before b
    left join having_topics h using (group_name)
    union all
    select group_name, '', at, kcoord_bigint(sum(lag)),
           case when bool_and(time_lag_ms is not null) then max(time_lag_ms) end, count(*)
    from looked
    join having_topics using (group_name)
    where topics > 1
    group by group_name, at
    union all
    select b.group_name, '', b.at, b.lag, b.time_lag_ms, 1
    from before b
    join having_topics h using (group_name)
    where h.topics > 1 and b.topic <> '' and b.parts = 1
    union all
    select '', topic, at, kcoord_bigint(sum(lag)),
           case when bool_and(time_lag_ms is not null) then max(time_lag_ms) end, count(*)
    from looked
    group by topic, at
    having count(*) > 1
), largest as (
    (select distinct on (group_name, topic) *
     from series
     order by group_name, topic, lag desc, at = any(%(kept)s::bigint[]) desc, at)
    union all
    (select distinct on (group_name, topic) *
     from series
     where time_lag_ms is not null
     order by group_name, topic, time_lag_ms desc, at = any(%(kept)s::bigint[]) desc, at)
), peaks as (
    select distinct on (group_name, topic, at) *
    from largest
    where at <> all(%(kept)s::bigint[])
    order by group_name, topic, at, lag desc
), gone as (
    delete from offsets_lagpeak p
    where p.at >= %(first)s and p.at < %(last)s
      and not exists (select from peaks k where k.group_name = p.group_name and k.topic = p.topic and k.at = p.at)
)
insert into offsets_lagpeak as p (group_name, topic, at, lag, time_lag_ms, parts)
select group_name, topic, at, lag, time_lag_ms, parts
from peaks
on conflict (group_name, topic, at) do update
set lag = excluded.lag, time_lag_ms = excluded.time_lag_ms, parts = excluded.parts

-- name: drop_lag_peaks
delete from offsets_lagpeak
where ctid = any(array(select ctid from offsets_lagpeak where at < %(oldest)s limit %(limit)s))

-- name: drop_lag_samples
delete from offsets_lagsample
where ctid = any(array(select ctid from offsets_lagsample where at = any(%(instants)s::bigint[]) limit %(limit)s))

-- name: drop_lag_of_deleted_groups
with of_topics as (
    delete from offsets_topiclag l
    where not exists (select from groups_group g where g.id = l.group_id)
)
delete from offsets_grouplag l
where not exists (select from groups_group g where g.id = l.group_id)
