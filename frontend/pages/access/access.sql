-- What the form for granting rules reads besides accounts and rules.

-- name: groups_seen
-- The first groups by name that rules let their holder see.
select group_id
from groups_group
where kcoord_sees(group_id, %(seen_names)s, %(seen_prefixes)s, %(seen_denied)s, %(seen_denied_prefixes)s)
order by group_id
limit %(limit)s

-- name: topics_seen
select name
from groups_topic
where kcoord_sees(name, %(seen_names)s, %(seen_prefixes)s, %(seen_denied)s, %(seen_denied_prefixes)s)
order by name
limit %(limit)s
