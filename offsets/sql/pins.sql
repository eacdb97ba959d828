-- name: pinned_topics
-- The empty text stands for all topics of the group.
select topic
from offsets_retentionpin
where group_name = %(group_id)s

-- name: list_pins
select topic, pinned_at, pinned_by, reason
from offsets_retentionpin
where group_name = %(group_id)s
  and (%(after)s::text is null or topic > %(after)s)
  and (topic = '' or kcoord_sees(topic, %(visible_names)s, %(visible_prefixes)s,
                                 %(visible_denied)s, %(visible_denied_prefixes)s))
order by topic
limit %(limit)s

-- name: count_pins
select count(*)
from offsets_retentionpin
where group_name = %(group_id)s

-- name: insert_pin
-- An existing pin, even one set concurrently, stays unchanged.
insert into offsets_retentionpin (group_name, topic, pinned_at, pinned_by, reason)
values (%(group_id)s, %(topic)s, %(now)s, %(pinned_by)s, %(reason)s)
on conflict (group_name, topic) do update set topic = excluded.topic
returning topic, pinned_at, pinned_by, reason

-- name: read_pin
select topic, pinned_at, pinned_by, reason
from offsets_retentionpin
where group_name = %(group_id)s and topic = %(topic)s

-- name: delete_pin
delete from offsets_retentionpin
where group_name = %(group_id)s and topic = %(topic)s
returning topic
