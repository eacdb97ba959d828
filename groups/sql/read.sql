-- name: member_holdings
-- One row for each topic of the member; one without a topic where it has none.
select m.member_epoch, a.topic_id, a.topic, array_agg(a.partition)
from groups_group g
join groups_consumermember m on m.group_id = g.id and m.member_id = %(member_id)s
left join groups_assignment a on a.group_id = g.id and a.member_id = m.member_id
where g.group_id = %(group_id)s
group by m.member_epoch, a.topic_id, a.topic

-- name: list_events
-- What is about topics that cannot be seen alone did not happen. Where `topics` is a number, it names none.
select id, at, kind, generation_id, member_id, detail
from groups_event
where group_name = %(group_id)s
  and (%(before)s::bigint is null or id < %(before)s)
  and (%(kinds)s::text[] is null or kind = any(%(kinds)s))
  and (%(since)s::bigint is null or at >= %(since)s)
  and (%(unlimited)s
       or coalesce((select bool_or(kcoord_sees(named.topic #>> '{}', %(visible_names)s, %(visible_prefixes)s,
                                                 %(visible_denied)s, %(visible_denied_prefixes)s))
                    from (select jsonb_path_query(detail, '$.topic ? (@.type() == "string")') as topic
                          union all
                          select jsonb_path_query(detail, '$.topics[*] ? (@.type() == "string")')) named), true))
order by id desc
limit %(limit)s

-- name: group_is_known
-- A group that is gone is known as long as its events are.
select exists (select from groups_group where group_id = %(group_id)s)
       or exists (select from groups_event where group_name = %(group_id)s)
