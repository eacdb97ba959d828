-- name: lag_changes
-- How much the lag of some groups changed within %(window)s ms before it was last sampled: per topic one look for the
-- last sample of at least that age, of at most twice it. Topics without one do not count.
select l.group_id, kcoord_bigint(sum(t.lag - s.lag)) as change, (max(l.at) - min(s.at))::bigint as within_ms
from offsets_grouplag l
join groups_group g on g.id = l.group_id
join offsets_topiclag t on t.group_id = l.group_id
cross join lateral (
    select s.lag, s.at
    from offsets_lagsample s
    where (s.group_name, s.topic, s.at) >= (g.group_id, t.topic, l.at - 2 * %(window)s::bigint)
      and (s.group_name, s.topic, s.at) <= (g.group_id, t.topic, l.at - %(window)s::bigint)
    order by s.group_name desc, s.topic desc, s.at desc
    limit 1) s
where l.group_id = any(%(ids)s)
  and t.lag is not null
  and kcoord_sees(t.topic, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
group by l.group_id
