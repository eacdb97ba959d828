-- What is looked up for the conditions of lists of groups before `groups.sql` finds the groups.

-- fragment: of_member
and (%(member)s::text is null
     or strpos(concat_ws(chr(10), m.member_id, m.instance_id, m.client_id), %(member)s) > 0)
and (%(client_id)s::text is null or strpos(m.client_id, %(client_id)s) > 0)
and (%(host)s::text is null or strpos(m.client_host, %(host)s) > 0)

-- name: groups_with_members
-- Groups that have a member which meets all conditions.
select m.group_id
from groups_member m
where true
  -- include: of_member
union
select m.group_id
from groups_consumermember m
where true
  -- include: of_member

-- name: groups_of_topics
-- The groups in the first rows that name one of these topics; there may be millions of them. What members name counts if it
-- is asked for, and in share groups, which are those with `assigned`.
(select group_id from groups_assignment where topic = any(%(names)s) limit %(limit)s)
union all
(select group_id from offsets_committedoffset where topic = any(%(names)s) limit %(limit)s)
union all
(select group_id from groups_consumermember
 where (%(subscribed)s or assigned is not null) and subscribed_topic_names && %(names)s::text[]
 limit %(limit)s)
limit %(limit)s

-- name: labelled_groups
-- The first groups that have one of these labels.
select g.id
from groups_grouplabels l
join groups_group g on g.group_id = l.group_name
where l.labels @> any(%(pairs)s::jsonb[]) or l.labels ?| %(names)s::text[]
limit %(limit)s

-- name: labelled_topics
-- Topics that have one of these labels. There are thousands of them at most, so all are looked at.
select name
from groups_topic
where (labels @> any(%(pairs)s::jsonb[]) or labels ?| %(names)s::text[])
  and kcoord_sees(name, %(visible_names)s, %(visible_prefixes)s, %(visible_denied)s, %(visible_denied_prefixes)s)
order by name

-- name: compares_code_points
-- Whether names are sorted by their code points: the built-in collations, and those of the C library that are called so.
select d.datlocprovider::text = 'b' or d.datlocprovider::text = 'c' and d.datcollate in ('C', 'POSIX', 'C.UTF-8', 'C.utf8')
from pg_database d
where d.datname = current_database()

-- name: statement_limit
select current_setting('statement_timeout')

-- name: limit_statements
-- Until the end of the transaction.
select set_config('statement_timeout', %(limit)s, true)

-- name: coordinator_names
-- The live owners of coordinator partitions, by name. A node that has ended, or whose lease has, coordinates nothing.
select p.partition, n.node_id
from groups_coordinatorpartition p
join groups_coordinatornode n on n.id = p.owner_id
where n.ended_at is null and n.expires_at > %(now)s
order by n.node_id, p.partition
