-- name: list_groups_by_id
-- A page is two statements: this one finds the groups and their order, `group_summaries` reads what is shown.
-- The five finders differ only in their order; the empty text is part of every id, the empty prefix of every
-- name. Topics are looked up for each group with `limit 1`, so that no plan reads all rows of a topic.
select g.id, g.group_id, null::bigint
from groups_group g
where g.group_id > %(after)s
  and (%(states)s::text[] is null or lower(g.state) = any(%(states)s))
  and (%(types)s::text[] is null or lower(g.type) = any(%(types)s))
  and strpos(lower(g.group_id), lower(%(q)s)) > 0
  and (%(topic)s::text is null
       or (select true from groups_assignment a where a.group_id = g.id and a.topic = %(topic)s limit 1)
       or (select true from offsets_committedoffset o where o.group_id = g.id and o.topic = %(topic)s limit 1))
  and (%(labelled)s::text[] is null
       or (select true from groups_assignment a where a.group_id = g.id and a.topic = any(%(labelled)s) limit 1)
       or (select true from offsets_committedoffset o
           where o.group_id = g.id and o.topic = any(%(labelled)s) limit 1)
       or (select true from groups_consumermember m where m.group_id = g.id
                  and m.subscribed_topic_names && %(labelled)s limit 1))
  and (%(member)s::text is null
       or exists (select from groups_member m where m.group_id = g.id
                  and strpos(concat_ws(chr(10), m.member_id, m.instance_id, m.client_id), %(member)s) > 0)
       or exists (select from groups_consumermember m where m.group_id = g.id
                  and strpos(concat_ws(chr(10), m.member_id, m.instance_id, m.client_id), %(member)s) > 0))
  and (%(min_lag)s::bigint is null
       or exists (select from offsets_grouplag l where l.group_id = g.id and l.lag >= %(min_lag)s))
  and (%(lagging)s::bigint[] is null or g.id = any(%(lagging)s))
  and (g.group_id = any(%(visible_names)s::text[])
       or exists (select from unnest(%(visible_prefixes)s::text[]) prefix where starts_with(g.group_id, prefix)))
order by g.group_id
limit %(limit)s

-- name: list_groups_by_change
-- The second comparison alone would do; the first is what the index can seek to.
select g.id, g.group_id, g.updated_at
from groups_group g
where (%(after_key)s::bigint is null
       or g.updated_at <= %(after_key)s and (g.updated_at < %(after_key)s or g.group_id > %(after)s))
  and (%(states)s::text[] is null or lower(g.state) = any(%(states)s))
  and (%(types)s::text[] is null or lower(g.type) = any(%(types)s))
  and strpos(lower(g.group_id), lower(%(q)s)) > 0
  and (%(topic)s::text is null
       or (select true from groups_assignment a where a.group_id = g.id and a.topic = %(topic)s limit 1)
       or (select true from offsets_committedoffset o where o.group_id = g.id and o.topic = %(topic)s limit 1))
  and (%(labelled)s::text[] is null
       or (select true from groups_assignment a where a.group_id = g.id and a.topic = any(%(labelled)s) limit 1)
       or (select true from offsets_committedoffset o
           where o.group_id = g.id and o.topic = any(%(labelled)s) limit 1)
       or (select true from groups_consumermember m where m.group_id = g.id
                  and m.subscribed_topic_names && %(labelled)s limit 1))
  and (%(member)s::text is null
       or exists (select from groups_member m where m.group_id = g.id
                  and strpos(concat_ws(chr(10), m.member_id, m.instance_id, m.client_id), %(member)s) > 0)
       or exists (select from groups_consumermember m where m.group_id = g.id
                  and strpos(concat_ws(chr(10), m.member_id, m.instance_id, m.client_id), %(member)s) > 0))
  and (%(min_lag)s::bigint is null
       or exists (select from offsets_grouplag l where l.group_id = g.id and l.lag >= %(min_lag)s))
  and (%(lagging)s::bigint[] is null or g.id = any(%(lagging)s))
  and (g.group_id = any(%(visible_names)s::text[])
       or exists (select from unnest(%(visible_prefixes)s::text[]) prefix where starts_with(g.group_id, prefix)))
order by g.updated_at desc, g.group_id
limit %(limit)s

-- name: list_groups_by_state
select g.id, g.group_id, g.state
from groups_group g
where (g.state, g.group_id) > (%(after_key)s, %(after)s)
  and (%(states)s::text[] is null or lower(g.state) = any(%(states)s))
  and (%(types)s::text[] is null or lower(g.type) = any(%(types)s))
  and strpos(lower(g.group_id), lower(%(q)s)) > 0
  and (%(topic)s::text is null
       or (select true from groups_assignment a where a.group_id = g.id and a.topic = %(topic)s limit 1)
       or (select true from offsets_committedoffset o where o.group_id = g.id and o.topic = %(topic)s limit 1))
  and (%(labelled)s::text[] is null
       or (select true from groups_assignment a where a.group_id = g.id and a.topic = any(%(labelled)s) limit 1)
       or (select true from offsets_committedoffset o
           where o.group_id = g.id and o.topic = any(%(labelled)s) limit 1)
       or (select true from groups_consumermember m where m.group_id = g.id
                  and m.subscribed_topic_names && %(labelled)s limit 1))
  and (%(member)s::text is null
       or exists (select from groups_member m where m.group_id = g.id
                  and strpos(concat_ws(chr(10), m.member_id, m.instance_id, m.client_id), %(member)s) > 0)
       or exists (select from groups_consumermember m where m.group_id = g.id
                  and strpos(concat_ws(chr(10), m.member_id, m.instance_id, m.client_id), %(member)s) > 0))
  and (%(min_lag)s::bigint is null
       or exists (select from offsets_grouplag l where l.group_id = g.id and l.lag >= %(min_lag)s))
  and (%(lagging)s::bigint[] is null or g.id = any(%(lagging)s))
  and (g.group_id = any(%(visible_names)s::text[])
       or exists (select from unnest(%(visible_prefixes)s::text[]) prefix where starts_with(g.group_id, prefix)))
order by g.state, g.group_id
limit %(limit)s

-- name: list_groups_by_members
-- Both directions: the sign turns the smallest into the largest.
select s.id, s.group_id, s.key
from (
    select g.id, g.group_id,
           %(sign)s * ((select count(*) from groups_member m where m.group_id = g.id)
                       + (select count(*) from groups_consumermember m where m.group_id = g.id)) as key
    from groups_group g
    where (%(states)s::text[] is null or lower(g.state) = any(%(states)s))
      and (%(types)s::text[] is null or lower(g.type) = any(%(types)s))
      and strpos(lower(g.group_id), lower(%(q)s)) > 0
      and (%(topic)s::text is null
           or (select true from groups_assignment a where a.group_id = g.id and a.topic = %(topic)s limit 1)
           or (select true from offsets_committedoffset o where o.group_id = g.id and o.topic = %(topic)s limit 1))
      and (%(labelled)s::text[] is null
           or (select true from groups_assignment a where a.group_id = g.id and a.topic = any(%(labelled)s) limit 1)
           or (select true from offsets_committedoffset o
               where o.group_id = g.id and o.topic = any(%(labelled)s) limit 1)
           or (select true from groups_consumermember m where m.group_id = g.id
                      and m.subscribed_topic_names && %(labelled)s limit 1))
      and (%(member)s::text is null
           or exists (select from groups_member m where m.group_id = g.id
                      and strpos(concat_ws(chr(10), m.member_id, m.instance_id, m.client_id), %(member)s) > 0)
           or exists (select from groups_consumermember m where m.group_id = g.id
                      and strpos(concat_ws(chr(10), m.member_id, m.instance_id, m.client_id), %(member)s) > 0))
      and (%(min_lag)s::bigint is null
           or exists (select from offsets_grouplag l where l.group_id = g.id and l.lag >= %(min_lag)s))
      and (%(lagging)s::bigint[] is null or g.id = any(%(lagging)s))
      and (g.group_id = any(%(visible_names)s::text[])
           or exists (select from unnest(%(visible_prefixes)s::text[]) prefix where starts_with(g.group_id, prefix)))
) s
where %(after_key)s::bigint is null or (s.key, s.group_id) > (%(after_key)s, %(after)s)
order by s.key, s.group_id
limit %(limit)s

-- name: list_groups_by_lag
-- Both directions, as above; a group of unknown lag counts as less than any other. `lag_of` and `lags`: what
-- counts instead of the lag on all topics.
select s.id, s.group_id, s.key
from (
    select g.id, g.group_id,
           %(sign)s * coalesce(case when %(lag_of)s::bigint[] is null
                                    then (select l.lag from offsets_grouplag l where l.group_id = g.id)
                                    else v.lag end, -1) as key
    from groups_group g
    left join unnest(%(lag_of)s::bigint[], %(lags)s::bigint[]) v (id, lag) on v.id = g.id
    where (%(states)s::text[] is null or lower(g.state) = any(%(states)s))
      and (%(types)s::text[] is null or lower(g.type) = any(%(types)s))
      and strpos(lower(g.group_id), lower(%(q)s)) > 0
      and (%(topic)s::text is null
           or (select true from groups_assignment a where a.group_id = g.id and a.topic = %(topic)s limit 1)
           or (select true from offsets_committedoffset o where o.group_id = g.id and o.topic = %(topic)s limit 1))
      and (%(labelled)s::text[] is null
           or (select true from groups_assignment a where a.group_id = g.id and a.topic = any(%(labelled)s) limit 1)
           or (select true from offsets_committedoffset o
               where o.group_id = g.id and o.topic = any(%(labelled)s) limit 1)
           or (select true from groups_consumermember m where m.group_id = g.id
                      and m.subscribed_topic_names && %(labelled)s limit 1))
      and (%(member)s::text is null
           or exists (select from groups_member m where m.group_id = g.id
                      and strpos(concat_ws(chr(10), m.member_id, m.instance_id, m.client_id), %(member)s) > 0)
           or exists (select from groups_consumermember m where m.group_id = g.id
                      and strpos(concat_ws(chr(10), m.member_id, m.instance_id, m.client_id), %(member)s) > 0))
      and (%(min_lag)s::bigint is null
           or exists (select from offsets_grouplag l where l.group_id = g.id and l.lag >= %(min_lag)s))
      and (%(lagging)s::bigint[] is null or g.id = any(%(lagging)s))
      and (g.group_id = any(%(visible_names)s::text[])
           or exists (select from unnest(%(visible_prefixes)s::text[]) prefix where starts_with(g.group_id, prefix)))
) s
where %(after_key)s::bigint is null or (s.key, s.group_id) > (%(after_key)s, %(after)s)
order by s.key, s.group_id
limit %(limit)s

-- name: labelled_topics
-- Topics that have one of these labels. There are at most thousands of topics, so all are read.
select name
from groups_topic
where (labels @> any(%(pairs)s::jsonb[]) or labels ?| %(names)s::text[])
  and (name = any(%(visible_names)s::text[])
       or exists (select from unnest(%(visible_prefixes)s::text[]) prefix where starts_with(name, prefix)))
order by name

-- name: group_summaries
-- Topics by a loose index scan: one look per topic, however many partitions a group has.
select g.id, g.group_id, g.type, g.state, g.generation_id, g.protocol_type, g.protocol_name, g.updated_at,
       (select count(*) from groups_member m where m.group_id = g.id)
       + (select count(*) from groups_consumermember m where m.group_id = g.id),
       array(
           with recursive t (topic) as (
               select min(a.topic) from groups_assignment a where a.group_id = g.id
               union all
               select (select min(a.topic) from groups_assignment a where a.group_id = g.id and a.topic > t.topic)
               from t
               where t.topic is not null)
           select topic
           from t
           where topic is not null
             and (topic = any(%(visible_names)s::text[])
                  or exists (select from unnest(%(visible_prefixes)s::text[]) prefix where starts_with(topic, prefix)))
           limit %(topics)s),
       l.lag, l.at
from groups_group g
left join offsets_grouplag l on l.group_id = g.id
where g.id = any(%(ids)s)

-- name: visible_lags
-- Lag of groups on some topics only, at the last sample; no row for a group of unknown lag.
select l.group_id, least(sum(s.lag), 9223372036854775807)::bigint
from offsets_grouplag l
join groups_group g on g.id = l.group_id
join offsets_lagsample s on s.group_name = g.group_id and s.at = l.at
where (%(ids)s::bigint[] is null or l.group_id = any(%(ids)s))
  and (s.topic = any(%(visible_names)s::text[])
       or exists (select from unnest(%(visible_prefixes)s::text[]) prefix where starts_with(s.topic, prefix)))
group by l.group_id
having %(min_lag)s::bigint is null or sum(s.lag) >= %(min_lag)s

-- name: member_holdings
-- One row for each topic of the member; one row without a topic if it has none.
select m.member_epoch, a.topic_id, a.topic, array_agg(a.partition)
from groups_group g
join groups_consumermember m on m.group_id = g.id and m.member_id = %(member_id)s
left join groups_assignment a on a.group_id = g.id and a.member_id = m.member_id
where g.group_id = %(group_id)s
group by m.member_epoch, a.topic_id, a.topic

-- name: list_events
-- Events only about topics that the caller may not describe are left out. If `topics` is a number, it names none.
select id, at, kind, generation_id, member_id, detail
from groups_event
where group_name = %(group_id)s
  and (%(before)s::bigint is null or id < %(before)s)
  and (%(kinds)s::text[] is null or kind = any(%(kinds)s))
  and (%(since)s::bigint is null or at >= %(since)s)
  and (%(unlimited)s
       or coalesce((select bool_or(named.topic #>> '{}' = any(%(visible_names)s::text[])
                                   or exists (select from unnest(%(visible_prefixes)s::text[]) prefix
                                              where starts_with(named.topic #>> '{}', prefix)))
                    from (select jsonb_path_query(detail, '$.topic ? (@.type() == "string")') as topic
                          union all
                          select jsonb_path_query(detail, '$.topics[*] ? (@.type() == "string")')) named), true))
order by id desc
limit %(limit)s

-- name: group_is_known
-- A deleted group is known as long as its events are kept.
select exists (select from groups_group where group_id = %(group_id)s)
       or exists (select from groups_event where group_name = %(group_id)s)
