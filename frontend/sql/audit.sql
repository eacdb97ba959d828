-- name: audit_page
-- Acts of people and tokens, newest first: of each source as many as fit on a page, in the order of the list. A key is
-- text that sorts as the source's own does. A deletion of a group is an event without a name; the journal has it, if
-- the group had offsets.
select at, source, key, who, act, name, generation_id, member_id, detail
from (
    (select e.at, 'event' as source, lpad(e.id::text, 20, '0') as key,
            coalesce(e.detail ->> 'principal', gone.principal, '') as who, e.kind as act, e.group_name as name,
            e.generation_id, e.member_id, e.detail
     from groups_event e
     left join lateral (
         select l.principal
         from offset_commit_log l
         where e.kind = 'group_deleted' and l.group_name = e.group_name and l.kind not in ('commit', 'txn_commit')
           and l.kind = 'group_delete' and l.at = e.at
         order by l.at desc, l.id desc
         limit 1) gone on true
     where (e.detail ? 'principal' or e.kind = 'group_deleted')
       and 'event' = any(%(sources)s::text[])
       and (%(kinds)s::text[] is null or e.kind = any(%(kinds)s))
       and e.at >= %(since)s and e.at <= %(before_at)s
       and (e.at, 'event', lpad(e.id::text, 20, '0')) < (%(before_at)s, %(before_source)s::text, %(before_key)s::text)
       and (%(who)s::text is null
            or strpos(lower(coalesce(e.detail ->> 'principal', gone.principal, '')), lower(%(who)s)) > 0)
       and (%(name)s::text is null or strpos(lower(e.group_name), lower(%(name)s)) > 0)
     order by e.at desc, e.id desc
     limit %(limit)s)
    union all
    (select p.created_at, 'plan', p.id::text, p.created_by, 'plan_made', p.group_name, 0, null,
            jsonb_build_object('plan_id', p.id, 'reason', p.reason, 'strategy', p.strategy,
                               'partitions', p.totals -> 'partitions')
     from offsets_offsetplan p
     where 'plan' = any(%(sources)s::text[])
       and p.created_at >= %(since)s and p.created_at <= %(before_at)s
       and (p.created_at, 'plan', p.id::text) < (%(before_at)s, %(before_source)s::text, %(before_key)s::text)
       and (%(who)s::text is null or strpos(lower(p.created_by), lower(%(who)s)) > 0)
       and (%(name)s::text is null or strpos(lower(p.group_name), lower(%(name)s)) > 0)
     order by p.created_at desc, p.id desc
     limit %(limit)s)
    union all
    (select r.requested_at, 'run', r.id::text, r.requested_by, 'run_requested', r.kind, 0, null,
            jsonb_build_object('run_id', r.id, 'state', r.state)
     from offsets_sparkrun r
     where 'run' = any(%(sources)s::text[])
       and r.requested_at >= %(since)s and r.requested_at <= %(before_at)s
       and (r.requested_at, 'run', r.id::text) < (%(before_at)s, %(before_source)s::text, %(before_key)s::text)
       and (%(who)s::text is null or strpos(lower(r.requested_by), lower(%(who)s)) > 0)
       and (%(name)s::text is null or strpos(lower(r.kind), lower(%(name)s)) > 0)
     order by r.requested_at desc, r.id::text desc
     limit %(limit)s)
    union all
    (select d.deleted_at, 'topic', lpad(d.id::text, 20, '0'), d.principal, 'topic_deleted', d.topic, 0, null, '{}'
     from offsets_deletedtopic d
     where 'topic' = any(%(sources)s::text[])
       and d.deleted_at >= %(since)s and d.deleted_at <= %(before_at)s
       and (d.deleted_at, 'topic', lpad(d.id::text, 20, '0'))
           < (%(before_at)s, %(before_source)s::text, %(before_key)s::text)
       and (%(who)s::text is null or strpos(lower(d.principal), lower(%(who)s)) > 0)
       and (%(name)s::text is null or strpos(lower(d.topic), lower(%(name)s)) > 0)
     order by d.deleted_at desc, d.id desc
     limit %(limit)s)
    union all
    (select a.at, 'admin', lpad(a.id::text, 20, '0'), u.username, 'admin_' || a.action_flag, a.object_repr, 0, null,
            jsonb_build_object('change', a.change_message, 'model', t.model)
     from (select (extract(epoch from action_time) * 1000)::bigint as at, id, user_id, action_flag, object_repr,
                  change_message, content_type_id
           from django_admin_log) a
     join auth_user u on u.id = a.user_id
     left join django_content_type t on t.id = a.content_type_id
     where 'admin' = any(%(sources)s::text[])
       and a.at >= %(since)s and a.at <= %(before_at)s
       and (a.at, 'admin', lpad(a.id::text, 20, '0')) < (%(before_at)s, %(before_source)s::text, %(before_key)s::text)
       and (%(who)s::text is null or strpos(lower(u.username), lower(%(who)s)) > 0)
       and (%(name)s::text is null or strpos(lower(a.object_repr), lower(%(name)s)) > 0)
     order by a.at desc, a.id desc
     limit %(limit)s)) acts
order by at desc, source desc, key desc
limit %(limit)s
