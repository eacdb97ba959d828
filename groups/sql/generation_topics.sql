-- name: load_generation_topics
select group_id, topics
from groups_generationtopics
where group_id = any(%(ids)s::bigint[])

-- name: upsert_generation_topics
insert into groups_generationtopics (group_id, topics)
select group_id, topics
from json_populate_recordset(null::groups_generationtopics, %(rows)s::text::json)
on conflict (group_id) do update set topics = excluded.topics

-- name: delete_generation_topics
delete from groups_generationtopics
where group_id = any(%(ids)s::bigint[])
