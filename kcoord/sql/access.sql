-- name: find_token
-- The token of an account that may no longer sign in is not valid.
select t.id,
       t.name,
       t.expires_at - coalesce(%(now)s::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint) as remaining_ms,
       coalesce(
           (select json_agg(json_build_array(r.operation, r.resource, r.pattern, r.name))
              from kcoord_accessrule r
             where r.token_id = t.id),
           '[]'::json) as rules
  from kcoord_apitoken t
  left join auth_user u on u.id = t.owner_id
 where t.digest = %(digest)s
   and (u.id is null or u.is_active)
