-- name: all_plans
-- Newest first, by the index of instants. What is searched for is looked at in that order, plan by plan: plans are kept
-- for as long as the journal, and people make them.
-- Of the parameters only those that lines show: the topics of a plan may be a megabyte.
select p.id::text as id, p.group_name as group_id, p.strategy,
       jsonb_strip_nulls(jsonb_build_object(
         'at', p.parameters -> 'at', 'by', p.parameters -> 'by', 'duration', p.parameters -> 'duration',
         'from_group', p.parameters -> 'from_group', 'offset', p.parameters -> 'offset')) as parameters,
       p.totals, p.state, p.reason, p.created_at, p.created_by,
       p.approved_at, p.approved_by, p.applied_at, p.applied_by, p.undone_at, p.undone_by
from offsets_offsetplan p
where (p.created_at, p.id) < (%(before_at)s::bigint, %(before_id)s::uuid)
  and p.created_at >= %(since)s
  and kcoord_sees(p.group_name, %(group_names)s, %(group_prefixes)s, %(group_denied)s, %(group_denied_prefixes)s)
  and (%(state)s::text is null or p.state = %(state)s)
  and (not %(unapproved)s::bool or p.approved_at is null)
  and (%(q)s::text is null or strpos(lower(p.group_name), lower(%(q)s)) > 0)
  and (%(who)s::text is null or p.created_by = %(who)s or p.approved_by = %(who)s
       or p.applied_by = %(who)s or p.undone_by = %(who)s)
order by p.created_at desc, p.id desc
limit %(limit)s
