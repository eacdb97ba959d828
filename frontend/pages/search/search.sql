-- What the search of all pages reads. Each statement is bounded by the rows that it looks at and by a statement timeout.
-- Names that begin with the words come first, from the index that Django makes for `like`; only if these are few, the
-- names that contain them, from a scan.

-- name: limit_search
-- Until the end of the transaction.
select set_config('statement_timeout', %(limit)s, true)

-- name: groups_beginning
select group_id, state, type, held_until
from groups_group
where group_id ~>=~ %(q)s and group_id ~<~ %(end)s
  and kcoord_sees(group_id, %(group_names)s, %(group_prefixes)s, %(group_denied)s, %(group_denied_prefixes)s)
order by group_id using ~<~
limit %(limit)s

-- name: groups_containing
select group_id, state, type, held_until
from (select group_id, state, type, held_until from groups_group limit %(most)s) g
where strpos(lower(group_id), lower(%(q)s)) > 0
  and kcoord_sees(group_id, %(group_names)s, %(group_prefixes)s, %(group_denied)s, %(group_denied_prefixes)s)
limit %(limit)s

-- name: labels_containing
-- Labels that have the words in their value, or in `name=value`, with how many of the visible groups that exist have them.
select t.name, t.value, count(*) as groups, min(l.group_name) as group_id
from (select group_name, labels from groups_grouplabels limit %(most)s) l
cross join lateral jsonb_each_text(l.labels) t (name, value)
where strpos(lower(t.name || '=' || t.value), lower(%(q)s)) > 0
  and (strpos(lower(t.value), lower(%(q)s)) > 0 or strpos(%(q)s, '=') > 0)
  and exists (select from groups_group g where g.group_id = l.group_name)
  and kcoord_sees(l.group_name, %(group_names)s, %(group_prefixes)s, %(group_denied)s, %(group_denied_prefixes)s)
group by t.name, t.value
order by t.name, t.value
limit %(limit)s

-- name: topics_beginning
select name, partitions
from groups_topic
where name ~>=~ %(q)s and name ~<~ %(end)s
  and kcoord_sees(name, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
order by name using ~<~
limit %(limit)s

-- name: topics_containing
select name, partitions
from (select name, partitions from groups_topic limit %(most)s) t
where strpos(lower(name), lower(%(q)s)) > 0
  and kcoord_sees(name, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s)
limit %(limit)s

-- name: members_containing
-- Without an index: each would be written with every member that joins, and none helps a part of an id.
select g.group_id, m.member_id, m.instance_id, m.client_id, m.client_host
from ((select group_id, member_id, instance_id, client_id, client_host
       from (select group_id, member_id, instance_id, client_id, client_host from groups_member limit %(most)s) c
       where strpos(lower(concat_ws(chr(10), member_id, instance_id, client_id, client_host)), lower(%(q)s)) > 0
         and exists (select from groups_group g
                     where g.id = c.group_id
                       and kcoord_sees(g.group_id, %(group_names)s, %(group_prefixes)s,
                                       %(group_denied)s, %(group_denied_prefixes)s))
       limit %(limit)s)
      union all
      (select group_id, member_id, instance_id, client_id, client_host
       from (select group_id, member_id, instance_id, client_id, client_host from groups_consumermember
             limit %(most)s) k
       where strpos(lower(concat_ws(chr(10), member_id, instance_id, client_id, client_host)), lower(%(q)s)) > 0
         and exists (select from groups_group g
                     where g.id = k.group_id
                       and kcoord_sees(g.group_id, %(group_names)s, %(group_prefixes)s,
                                       %(group_denied)s, %(group_denied_prefixes)s))
       limit %(limit)s)) m
join groups_group g on g.id = m.group_id

-- name: plans_containing
-- The newest of those found.
select id, group_name, strategy, state, reason, created_at, created_by
from (select id, group_name, strategy, state, reason, created_at, created_by
      from offsets_offsetplan
      limit %(most)s) p
where strpos(lower(concat_ws(chr(10), id, group_name, strategy, reason, created_by)), lower(%(q)s)) > 0
  and kcoord_sees(group_name, %(group_names)s, %(group_prefixes)s, %(group_denied)s, %(group_denied_prefixes)s)
order by created_at desc
limit %(limit)s

-- name: labels_completed
-- What a field for a label can be completed with: names, and unless only these are asked for, `name=value`.
select n.name
from (select group_name, labels from groups_grouplabels limit %(most)s) l
cross join lateral jsonb_each_text(l.labels) t (name, value)
cross join lateral (values ('label-names', t.name), ('labels', t.name), ('labels', t.name || '=' || t.value)) n (kind, name)
where n.kind = %(kind)s and strpos(lower(n.name), lower(%(q)s)) > 0
  and exists (select from groups_group g where g.group_id = l.group_name)
  and kcoord_sees(l.group_name, %(group_names)s, %(group_prefixes)s, %(group_denied)s, %(group_denied_prefixes)s)
group by n.name
order by not starts_with(n.name, %(q)s), n.name using ~<~
limit %(limit)s

-- name: members_completed
-- The same for members of all groups, or of one; `members`: by any name that the list of groups is filtered by.
select n.name
from (select group_id, member_id, instance_id, client_id, client_host from groups_member
      union all
      select group_id, member_id, instance_id, client_id, client_host from groups_consumermember
      limit %(most)s) m
cross join lateral (values ('member-ids', m.member_id), ('members', m.member_id), ('members', m.instance_id),
                           ('members', m.client_id), ('clients', m.client_id), ('hosts', m.client_host)) n (kind, name)
where n.kind = %(kind)s and strpos(lower(n.name), lower(%(q)s)) > 0
  and exists (select from groups_group g
              where g.id = m.group_id and %(group_id)s in ('', g.group_id)
                and kcoord_sees(g.group_id, %(group_names)s, %(group_prefixes)s,
                                %(group_denied)s, %(group_denied_prefixes)s))
group by n.name
order by not starts_with(n.name, %(q)s), n.name using ~<~
limit %(limit)s

-- name: principals_completed
-- The same for accounts, with tokens, who both act, and with groups of people, who all can be given rules.
select p.name
from (select username as name from auth_user
      union all
      select name from kcoord_apitoken where %(kind)s in ('principals', 'holders')
      union all
      select name from auth_group where %(kind)s = 'holders'
      limit %(most)s) p
where %(administers)s::bool and strpos(lower(p.name), lower(%(q)s)) > 0
group by p.name
order by not starts_with(p.name, %(q)s), p.name using ~<~
limit %(limit)s
