-- name: topics_after
-- Groups that own partitions, and groups that have committed offsets. They are looked for partition by partition and at most %(rows)s rows deep, so a topic that thousands of groups read
-- costs no more than any other; the first rows of a topic are its partition 0, once for each group.
select t.name, t.partitions, t.created_at,
       (select count(*) from groups_watermark w where w.topic_id = t.id) as watermarks,
       (select min(w.sampled_at) from groups_watermark w where w.topic_id = t.id) as sampled_at,
       array(
           select distinct g.group_id
           from (select a.group_id from groups_assignment a where a.topic = t.name
                 order by a.partition limit %(rows)s) a
           join groups_group g on g.id = a.group_id
           where kcoord_sees(g.group_id, %(group_names)s, %(group_prefixes)s,
                             %(group_denied)s, %(group_denied_prefixes)s)
           order by g.group_id) as groups,
       array(
           select distinct g.group_id
           from (select o.group_id from offsets_committedoffset o where o.topic = t.name
                 order by o.partition limit %(rows)s) o
           join groups_group g on g.id = o.group_id
           where kcoord_sees(g.group_id, %(group_names)s, %(group_prefixes)s,
                             %(group_denied)s, %(group_denied_prefixes)s)
           order by g.group_id) as committed
from (select id, name, partitions, created_at
      from groups_topic
      where (%(after)s::text is null or name > %(after)s)
        and kcoord_sees(name, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
        and (%(q)s::text is null or strpos(lower(name), lower(%(q)s)) > 0)
      order by name
      limit %(limit)s) t
order by t.name

-- name: topics_before
select name
from groups_topic
where name < %(before)s
  and kcoord_sees(name, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
  and (%(q)s::text is null or strpos(lower(name), lower(%(q)s)) > 0)
order by name desc
limit %(limit)s

-- name: count_topics
select count(*)
from groups_topic
where kcoord_sees(name, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
  and (%(q)s::text is null or strpos(lower(name), lower(%(q)s)) > 0)
