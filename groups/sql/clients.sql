-- name: remember_client_software
-- Of clients that have not joined for `kept_ms` nothing is kept.
with forgotten as (
    delete from groups_clientsoftware
    where seen_at < %(now)s::bigint - %(kept_ms)s::bigint
      and (client_id, client_host) <> (%(client_id)s, %(client_host)s)
)
insert into groups_clientsoftware as c (client_id, client_host, name, version, seen_at)
values (%(client_id)s, %(client_host)s, %(name)s, %(version)s, %(now)s)
on conflict (client_id, client_host)
do update set name = excluded.name, version = excluded.version, seen_at = excluded.seen_at

-- name: client_software
select c.client_id, c.client_host, c.name, c.version
from unnest(%(client_ids)s::text[], %(client_hosts)s::text[]) as asked (client_id, client_host)
join groups_clientsoftware c on c.client_id = asked.client_id and c.client_host = asked.client_host
