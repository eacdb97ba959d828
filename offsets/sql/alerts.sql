-- Alerts, by the rules of `offsets.core.alerts`.

-- fragment: rule_columns
-- What statements write of an `offsets.alerts.types.AlertRuleView`, of which they take the whole as JSON.
name, enabled, pattern, group_name, label, verdicts, min_lag, min_time_lag_ms, for_ms, remind_ms, send_resolved,
receivers, updated_at, updated_by

-- name: alert_rules
select id,
-- include: rule_columns
from offsets_alertrule
order by name

-- name: insert_alert_rule
insert into offsets_alertrule (
-- include: rule_columns
) select
-- include: rule_columns
from jsonb_populate_record(null::offsets_alertrule, %(rule)s)
returning id,
-- include: rule_columns

-- name: update_alert_rule
update offsets_alertrule set (
-- include: rule_columns
) = (select
-- include: rule_columns
from jsonb_populate_record(null::offsets_alertrule, %(rule)s))
where id = %(id)s
returning id,
-- include: rule_columns

-- name: delete_alert_rule
with alerts as (
    delete from offsets_alert where rule_id = %(id)s
)
delete from offsets_alertrule where id = %(id)s

-- name: alert_receivers
-- All of them, or the one called `name`.
select name, kind, sealed from offsets_alertreceiver where %(name)s::text is null or name = %(name)s order by name

-- name: put_alert_receiver
insert into offsets_alertreceiver (name, kind, sealed, updated_at, updated_by)
values (%(name)s, %(kind)s, %(sealed)s, %(now)s, %(principal)s)
on conflict (name) do update
set kind = excluded.kind, sealed = excluded.sealed, updated_at = excluded.updated_at, updated_by = excluded.updated_by

-- name: delete_alert_receiver
delete from offsets_alertreceiver where name = %(name)s returning kind

-- name: check_alerts_alone
select pg_advisory_xact_lock(%(key)s)

-- fragment: has_label_of_rule
(r.label = '' or exists (select from groups_grouplabels l
                         where l.group_name = about.group_id
                           and case when strpos(r.label, '=') = 0 then l.labels ? r.label
                                    else l.labels ->> split_part(r.label, '=', 1)
                                         = substr(r.label, strpos(r.label, '=') + 1)
                               end))

-- name: groups_of_alert_rules
-- For each rule, or for `rule`, which need not be stored, the groups for which its condition holds, the worst verdict of a
-- group first and its lag last. Rules for one group look it up: they are `named`. The others begin at the verdicts, which
-- are few, and at the last samples that any of them is about: each of those is read once, and so are the labels of these
-- groups, however many rules there are.
with rules as not materialized (
    select * from offsets_alertrule where enabled and %(rule)s::jsonb is null
    union all
    select * from jsonb_populate_record(null::offsets_alertrule, %(rule)s) where %(rule)s::jsonb is not null
), named as materialized (
    select r.id, r.verdicts, r.min_lag, r.min_time_lag_ms, g.id as key, g.group_id
    from rules r
    join groups_group g on g.group_id = r.group_name
    cross join lateral (select r.group_name) about (group_id)
    where r.pattern = 'literal' and
    -- include: has_label_of_rule
), beginning as materialized (
    select * from rules where pattern = 'prefix'
), unwell as materialized (
    select g.group_id, v.kind, v.since
    from offsets_groupverdict v
    join groups_group g on g.id = v.group_id
    where exists (select from beginning r where v.kind = any(r.verdicts))
), late as materialized (
    select g.group_id, l.lag, coalesce(l.time_lag_ms, l.time_lag_at_least_ms) as time_lag_ms
    from offsets_grouplag l
    join groups_group g on g.id = l.group_id
    where exists (select from beginning)
      and (l.lag >= (select min(min_lag) from beginning)
           or coalesce(l.time_lag_ms, l.time_lag_at_least_ms) >= (select min(min_time_lag_ms) from beginning))
), found as materialized (
    select group_id from unwell union select group_id from late
), labelled as materialized (
    -- As rules write them, '' for any group. The first = of a rule ends the name, so that no rule is about a name that
    -- has one.
    select group_id, '' as label from found where exists (select from beginning where label = '')
    union all
    select found.group_id, written.label
    from found
    join groups_grouplabels l on l.group_name = found.group_id
    cross join lateral jsonb_each_text(l.labels) pair (name, value)
    cross join lateral (values (pair.name), (pair.name || '=' || pair.value)) written (label)
    where exists (select from beginning where label <> '')
      and strpos(pair.name, '=') = 0
      and written.label in (select label from beginning)
), judged as (
    select r.id as rule_id, r.group_id, v.kind, v.since
    from named r
    join offsets_groupverdict v on v.group_id = r.key and v.kind = any(r.verdicts)
    union all
    select r.id, v.group_id, v.kind, v.since
    from beginning r
    join labelled using (label)
    join unwell v using (group_id)
    where v.kind = any(r.verdicts) and starts_with(v.group_id, r.group_name)
), behind as (
    select r.id as rule_id, r.group_id, r.min_lag, l.lag, coalesce(l.time_lag_ms, l.time_lag_at_least_ms) as time_lag_ms
    from named r
    join offsets_grouplag l
        on l.group_id = r.key and (l.lag >= r.min_lag or coalesce(l.time_lag_ms, l.time_lag_at_least_ms) >= r.min_time_lag_ms)
    union all
    select r.id, l.group_id, r.min_lag, l.lag, l.time_lag_ms
    from beginning r
    join labelled using (label)
    join late l using (group_id)
    where (l.lag >= r.min_lag or l.time_lag_ms >= r.min_time_lag_ms) and starts_with(l.group_id, r.group_name)
), matched as (
    select rule_id, group_id, kind as cause, null::bigint as value, min(since) as since,
           array_position(%(worst_first)s::text[], kind::text) as place
    from judged
    group by rule_id, group_id, kind
    union all
    select rule_id, group_id, case when lag >= min_lag then 'lag' else 'time-lag' end,
           case when lag >= min_lag then lag else time_lag_ms end, null, 100
    from behind
)
select rule_id, group_id, cause, value, since
from matched
order by rule_id, group_id, place
limit %(limit)s

-- name: count_groups_of_alert_rule
-- How many groups that the caller may see a rule is about.
select count(*)
from jsonb_populate_record(null::offsets_alertrule, %(rule)s) r
join groups_group g on case when r.pattern = 'literal' then g.group_id = r.group_name
                            else starts_with(g.group_id, r.group_name) end
cross join lateral (select g.group_id) about (group_id)
where kcoord_sees(g.group_id, %(group_names)s, %(group_prefixes)s, %(group_denied)s, %(group_denied_prefixes)s) and
    -- include: has_label_of_rule

-- name: unresolved_alerts
select id, rule_id, group_name as group_id, cause, value, since, opened_at, over_since, told_at, muted_until
from offsets_alert
where resolved_at is null
order by id

-- name: insert_alerts
insert into offsets_alert (rule_id, group_name, cause, value, since, opened_at, told_at)
select * from unnest(%(rule_id)s::bigint[], %(group_id)s::text[], %(cause)s::text[], %(value)s::bigint[],
                     %(since)s::bigint[], %(opened_at)s::bigint[], %(told_at)s::bigint[])

-- name: update_alerts
update offsets_alert a
set cause = n.cause, value = n.value, since = n.since, opened_at = n.opened_at, over_since = n.over_since,
    told_at = n.told_at
from unnest(%(id)s::bigint[], %(cause)s::text[], %(value)s::bigint[], %(since)s::bigint[], %(opened_at)s::bigint[],
            %(over_since)s::bigint[], %(told_at)s::bigint[])
     as n (id, cause, value, since, opened_at, over_since, told_at)
where a.id = n.id

-- name: resolve_alerts
update offsets_alert set resolved_at = %(now)s where id = any(%(id)s::bigint[])

-- name: delete_alerts
delete from offsets_alert where id = any(%(id)s::bigint[])

-- name: mute_alert
update offsets_alert
set muted_until = %(until)s, muted_by = %(principal)s
where id = %(id)s and resolved_at is null
returning id

-- fragment: shown_alert
-- A `offsets.alerts.types.AlertRow`.
select a.id, a.rule_id, r.name as rule_name, a.group_name as group_id, a.cause, a.value, a.since, a.opened_at,
       a.over_since, a.told_at, a.muted_until, a.muted_by, a.resolved_at, r.min_lag, r.min_time_lag_ms, r.receivers
from offsets_alert a
join offsets_alertrule r on r.id = a.rule_id

-- name: open_alerts
-- include: shown_alert
where a.resolved_at is null and a.opened_at is not null
  and (a.opened_at, a.id) < (%(before_at)s::bigint, %(before_id)s::bigint)
  and (%(group_id)s::text is null or a.group_name = %(group_id)s)
  and kcoord_sees(a.group_name, %(group_names)s, %(group_prefixes)s, %(group_denied)s, %(group_denied_prefixes)s)
order by a.opened_at desc, a.id desc
limit %(limit)s

-- name: resolved_alerts
-- include: shown_alert
where a.resolved_at is not null
  and (a.resolved_at, a.id) < (%(before_at)s::bigint, %(before_id)s::bigint)
  and (%(group_id)s::text is null or a.group_name = %(group_id)s)
  and kcoord_sees(a.group_name, %(group_names)s, %(group_prefixes)s, %(group_denied)s, %(group_denied_prefixes)s)
order by a.resolved_at desc, a.id desc
limit %(limit)s

-- name: alert
-- include: shown_alert
where a.id = %(id)s

-- name: count_open_alerts
select r.name, count(a.id)
from offsets_alertrule r
left join offsets_alert a on a.rule_id = r.id and a.resolved_at is null and a.opened_at is not null
group by r.name
order by r.name

-- name: labels_of_alerts
select group_name, labels from groups_grouplabels where group_name = any(%(group_ids)s::text[])

-- name: insert_alert_messages
insert into offsets_alertmessage (id, rule_id, rule_name, receiver, notice, content, created_at, next_at)
select gen_random_uuid(), %(rule_id)s, %(rule_name)s, receiver, %(notice)s, %(content)s, %(now)s, %(now)s
from unnest(%(receivers)s::text[]) receiver

-- name: claim_alert_message
-- Whoever claims a message sends it. If that process ends meanwhile, it is due again after `again_at`.
update offsets_alertmessage
set attempts = attempts + 1, next_at = %(again_at)s
where id = (select id
            from offsets_alertmessage
            where next_at <= %(now)s
            order by next_at
            limit 1
            for update skip locked)
returning id::text, rule_id, rule_name, receiver, notice, content, created_at, attempts

-- name: note_alert_message
update offsets_alertmessage
set sent_at = %(sent_at)s, next_at = %(next_at)s, error = %(error)s
where id = %(id)s

-- name: alert_messages
select id, rule_id, rule_name, receiver, notice,
       case when sent_at is not null then 'sent' when next_at is null then 'failed' else 'waiting' end as state,
       (content ->> 'alert_count')::integer as alert_count, created_at, attempts, next_at, sent_at, error
from offsets_alertmessage
order by created_at desc, id
limit %(limit)s

-- name: alert_messages_by_outcome
-- `unsent_since`: the oldest that is still to be sent.
select count(*) filter (where sent_at is not null) as sent,
       count(*) filter (where next_at is not null) as waiting,
       count(*) filter (where sent_at is null and next_at is null) as failed,
       min(created_at) filter (where next_at is not null) as unsent_since,
       max(created_at) filter (where sent_at is null and next_at is null) as failed_at
from offsets_alertmessage

-- name: trim_alerts
with messages as (
    delete from offsets_alertmessage where next_at is null and created_at < %(before)s
)
delete from offsets_alert where resolved_at < %(before)s
