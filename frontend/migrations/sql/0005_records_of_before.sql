select at, source, who, act, name, member_id, detail
from (
    select e.at, 'event' as source, lpad(e.id::text, 20, '0') as key,
           coalesce(e.detail ->> 'principal', gone.principal, '') as who, e.kind as act, e.group_name as name,
           e.member_id, e.detail
    from groups_event e
    left join lateral (
        select l.principal
        from offset_commit_log l
        where e.kind = 'group_deleted' and l.group_name = e.group_name and l.kind = 'group_delete' and l.at = e.at
        order by l.id desc
        limit 1) gone on true
    where e.detail ? 'principal' or e.kind = 'group_deleted'
    union all
    select p.created_at, 'plan', p.id::text, p.created_by, 'plan_made', p.group_name, null,
           jsonb_build_object('plan_id', p.id, 'reason', p.reason, 'strategy', p.strategy,
                              'partitions', p.totals -> 'partitions')
    from offsets_offsetplan p
    union all
    select r.requested_at, 'run', r.id::text, r.requested_by, 'run_requested', r.id::text, null,
           jsonb_build_object('kind', r.kind)
    from offsets_sparkrun r
    union all
    select d.deleted_at, 'topic', lpad(d.id::text, 20, '0'), d.principal, 'topic_deleted', d.topic, null, '{}'::jsonb
    from offsets_deletedtopic d
    union all
    select (extract(epoch from a.action_time) * 1000)::bigint, 'admin', lpad(a.id::text, 20, '0'), u.username,
           'admin_' || a.action_flag, a.object_repr, null,
           jsonb_build_object('change', a.change_message, 'model', t.model)
    from django_admin_log a
    join auth_user u on u.id = a.user_id
    left join django_content_type t on t.id = a.content_type_id) acts
order by at, source, key
