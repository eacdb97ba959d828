-- Events of a group, newest first, as far as they can be seen: what is only about topics that cannot be seen did not
-- happen (as `list_events` of groups). Where `topics` is a number, it names none.

-- fragment: seen
and (%(all_topics)s
     or coalesce((select bool_or(kcoord_sees(named.topic #>> '{}', %(topic_names)s, %(topic_prefixes)s,
                                             %(topic_denied)s, %(topic_denied_prefixes)s))
                  from (select jsonb_path_query(detail, '$.topic ? (@.type() == "string")') as topic
                        union all
                        select jsonb_path_query(detail, '$.topics[*] ? (@.type() == "string")')) named), true))

-- fragment: in_span
-- Older than an event and within a span, as far as these are given. Ids of events are given in the order of time, and
-- `offsets_activity` says about every minute which was the last one: the events of a group before and after a span are
-- not read. An event may be stored a moment after a later one, so that the bound is taken from the instant after the next.
and (%(before)s::bigint is null or id < %(before)s)
and (%(since)s::bigint is null or at >= %(since)s)
and (%(until)s::bigint is null or at < %(until)s)
and id > coalesce((select event_id from offsets_activity where at <= %(since)s::bigint - 60000
                   order by at desc limit 1), 0)
and id <= coalesce((select event_id from offsets_activity where at >= %(until)s::bigint
                    order by at offset 1 limit 1), 9223372036854775807)

-- name: events_before
select id, at, kind, generation_id, member_id, detail
from groups_event
where group_name = %(group_id)s and (%(before)s::bigint is null or id < %(before)s)
  -- include: seen
order by id desc
limit %(limit)s

-- name: rebalance_events
select id, at, kind, generation_id, member_id, detail
from groups_event
where group_name = %(group_id)s
  and kind = any(%(kinds)s::text[])
  -- include: in_span
  -- include: seen
order by id desc
limit %(limit)s

-- name: events_in_span
select id, at, kind, generation_id, member_id, detail
from groups_event
where group_name = %(group_id)s
  -- include: in_span
  -- include: seen
order by id desc
limit %(limit)s

-- name: member_events
-- Those that name the member, among the newest of its group: no index is of members.
select id, at, kind, generation_id, member_id, detail
from (select id, at, kind, generation_id, member_id, detail
      from groups_event
      where group_name = %(group_id)s
        -- include: seen
      order by id desc
      limit %(most)s) e
where member_id = %(member_id)s
order by id desc
limit %(limit)s
