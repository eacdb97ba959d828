-- What several pages read of a group and its members.

-- name: group_header
select id as pk, group_id, type, state, previous_state, state_since, generation_id, protocol_type, protocol_name,
       leader_id, join_deadline, join_delay_ms, sync_deadline, assignment_epoch, created_at, updated_at, held_until,
       held_by, hold_reason
from groups_group
where group_id = %(group_id)s

-- name: group_briefs
select %(now)s::bigint as now, g.group_id, g.type, g.state,
       (select count(*) from groups_member m where m.group_id = g.id)
       + (select count(*) from groups_consumermember m where m.group_id = g.id) as members,
       (select count(*) from offsets_committedoffset o
        where o.group_id = g.id
          and kcoord_sees(o.topic, %(topic_names)s, %(topic_prefixes)s,
                          %(topic_denied)s, %(topic_denied_prefixes)s)) as offsets,
       (select count(distinct topic) from offsets_committedoffset o
        where o.group_id = g.id
          and kcoord_sees(o.topic, %(topic_names)s, %(topic_prefixes)s,
                          %(topic_denied)s, %(topic_denied_prefixes)s)) as topics,
       g.held_until, case when %(all_topics)s then l.lag end as lag, l.at as lag_sampled_at
from groups_group g
left join offsets_grouplag l on l.group_id = g.id
where g.group_id = any(%(group_ids)s::text[])

-- name: group_standing
select g.type, g.state,
       (select count(*) from groups_member m where m.group_id = g.id)
       + (select count(*) from groups_consumermember m where m.group_id = g.id) as members
from groups_group g
where g.group_id = %(group_id)s

-- name: uses_hidden_topics
-- Members of a consumer group subscribe to, own or are meant to have a topic that cannot be seen.
select exists (select from groups_assignment a
               where a.group_id = %(pk)s
                 and not kcoord_sees(a.topic, %(topic_names)s, %(topic_prefixes)s,
                                     %(topic_denied)s, %(topic_denied_prefixes)s))
       or exists (select from groups_consumermember m
                  cross join lateral unnest(m.subscribed_topic_names) n (topic)
                  where m.group_id = %(pk)s
                    and not kcoord_sees(n.topic, %(topic_names)s, %(topic_prefixes)s,
                                        %(topic_denied)s, %(topic_denied_prefixes)s))
       or exists (select from groups_consumermember m
                  cross join lateral jsonb_object_keys(m.target) k (topic_id)
                  join groups_topic t on t.topic_id = k.topic_id::uuid
                  where m.group_id = %(pk)s
                    and not kcoord_sees(t.name, %(topic_names)s, %(topic_prefixes)s,
                                        %(topic_denied)s, %(topic_denied_prefixes)s))

-- fragment: member_columns
-- Of any type of member, with the number of partitions that it owns.
select m.id as pk, m.member_id, m.instance_id, m.client_id, m.client_host, m.awaiting_join, m.awaiting_sync,
       m.pending_sync, m.session_timeout_ms, m.session_deadline, m.last_heartbeat_at, m.member_epoch, m.consumer_state,
       (select count(*) from groups_assignment a
        where a.group_id = %(pk)s and a.member_id = m.member_id
          and kcoord_sees(a.topic, %(topic_names)s, %(topic_prefixes)s,
                          %(topic_denied)s, %(topic_denied_prefixes)s))
       + (select count(*) from groups_consumermember s
          cross join lateral jsonb_each(s.assigned) h
          cross join lateral jsonb_object_keys(h.value)
          where s.group_id = %(pk)s and s.member_id = m.member_id) as owned,
       (select c.name || ' ' || c.version
        from groups_clientsoftware c
        where c.client_id = m.client_id and c.client_host = m.client_host) as software

-- name: consumer_details
select m.member_id, m.rack_id, m.subscribed_topic_names[1:%(names)s] as topic_names,
       cardinality(m.subscribed_topic_names) as topic_count, m.subscribed_topic_regex as regex,
       jsonb_array_length(g.resolution->m.topic_rights->'topics'->m.subscribed_topic_regex) as matched,
       m.server_assignor as assignor, m.classic_session_timeout_ms is not null as classic, m.rebalance_deadline,
       least(m.join_deadline, m.sync_deadline) as rejoin_deadline
from groups_consumermember m
join groups_group g on g.id = m.group_id
where m.group_id = %(pk)s and m.member_id = any(%(member_ids)s)

-- name: known_topics
select name
from groups_topic
where name = any(%(names)s)

-- name: member_names
-- Client and host of members: of those that the group has, if they can be seen, and of those that joined by its newest
-- events, for some are gone.
with asked as (select id from groups_group where group_id = %(group_id)s)
select m.member_id, m.client_id, m.client_host, 1 as place
from asked g
join groups_member m on m.group_id = g.id
where m.member_id = any(%(member_ids)s::text[])
union all
select m.member_id, m.client_id, m.client_host, 1
from asked g
join groups_consumermember m on m.group_id = g.id
where m.member_id = any(%(member_ids)s::text[]) and %(all_topics)s
union all
select e.member_id, e.detail ->> 'client_id', e.detail ->> 'client_host', 2
from (select kind, member_id, detail
      from groups_event
      where group_name = %(group_id)s
      order by id desc
      limit %(most)s) e
where e.kind = 'member_joined' and e.member_id = any(%(member_ids)s::text[])
order by place

-- name: member_names_in_groups
-- The same for members of several groups, looked up one by one.
with asked as (
    select a.group_id, a.member_id, g.id
    from unnest(%(group_ids)s::text[], %(member_ids)s::text[]) a (group_id, member_id)
    left join groups_group g on g.group_id = a.group_id
)
select a.group_id, a.member_id, m.client_id, m.client_host, 1 as place
from asked a
join groups_member m on m.group_id = a.id and m.member_id = a.member_id
union all
select a.group_id, a.member_id, m.client_id, m.client_host, 1
from asked a
join groups_consumermember m on m.group_id = a.id and m.member_id = a.member_id
where %(all_topics)s
union all
select a.group_id, a.member_id, e.detail ->> 'client_id', e.detail ->> 'client_host', 2
from (select distinct group_id from asked) n
cross join lateral (select kind, member_id, detail
                    from groups_event
                    where group_name = n.group_id
                    order by id desc
                    limit %(most)s) e
join asked a on a.group_id = n.group_id and a.member_id = e.member_id
where e.kind = 'member_joined'
order by place

-- name: member_progress
-- What members committed since an instant on the partitions that they own, each from its owner's first commit on: of
-- members that own at most `most` partitions, for each costs a look into the journal, of which at most `lines` lines are
-- searched.
with owned as (
    select a.member_id, a.topic, a.partition, count(*) over (partition by a.member_id) as partitions
    from groups_assignment a
    where a.group_id = %(pk)s and a.member_id = any(%(member_ids)s)
      and kcoord_sees(a.topic, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s))
select w.member_id, kcoord_bigint(sum(greatest(o.committed_offset::numeric - f.committed_offset, 0))) as records,
       min(f.at) as since
from owned w
left join offsets_committedoffset o
    on o.group_id = %(pk)s and o.topic = w.topic and o.partition = w.partition and o.member_id = w.member_id
       and o.commit_timestamp >= %(since)s
left join lateral (
    select l.at, l.committed_offset
    from (select at, id, member_id, committed_offset
          from offset_commit_log
          where o.partition is not null and group_name = %(group_id)s and topic = w.topic and partition = w.partition
            and at >= %(since)s and at <= %(now)s
          order by at, id
          limit %(lines)s) l
    where l.member_id = w.member_id
    order by l.at, l.id
    limit 1) f on true
where w.partitions <= %(most)s
group by w.member_id
