-- name: find_token
-- The token of an account that may no longer sign in is not valid.
-- After a rotation the secret before is valid for a while, too.
select t.id,
       t.name,
       least(t.expires_at, case when t.digest <> %(digest)s then t.previous_until end) - clock.now as remaining_ms,
       coalesce(
           (select json_agg(json_build_array(r.operation, r.resource, r.pattern, r.name, r.effect))
              from kcoord_accessrule r
             where r.token_id = t.id),
           '[]'::json) as rules,
       t.last_used_at is null or t.last_used_at < clock.now - %(noted_every_ms)s as unnoted,
       t.owner_id
  from kcoord_apitoken t
  left join auth_user u on u.id = t.owner_id
 cross join (select coalesce(%(now)s::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint) as now) clock
 where (t.digest = %(digest)s or t.previous_digest = %(digest)s)
   and (u.id is null or u.is_active)

-- name: note_token_use
-- Whichever process comes first within the time notes it. Rows that others hold are left to them.
update kcoord_apitoken
   set last_used_at = coalesce(%(now)s::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint)
 where id in (select id
                from kcoord_apitoken
               where id = any(%(ids)s::bigint[])
                 and (last_used_at is null
                      or last_used_at < coalesce(%(now)s::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint)
                                        - %(noted_every_ms)s)
               order by id
                 for no key update skip locked)

-- name: find_person
-- An account with its own rules and those of the groups it is in.
select u.username,
       u.is_active,
       u.is_superuser,
       coalesce(
           (select json_agg(json_build_array(r.operation, r.resource, r.pattern, r.name, r.effect))
              from kcoord_accessrule r
             where r.user_id = u.id
                or r.group_id in (select m.group_id from auth_user_groups m where m.user_id = u.id)),
           '[]'::json) as rules
  from auth_user u
 where u.id = %(id)s
