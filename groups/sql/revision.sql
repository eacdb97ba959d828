-- name: bump_revision
-- The row stays locked until the commit, so changes of one subject follow each other. The step is random, so that a
-- database that went back in time (restore, failover) does not reach the same version with other content. There is
-- room for two billion changes.
insert into groups_revision as r (subject, version)
values (%(subject)s, 1 + floor(random() * 4294967296)::bigint)
on conflict (subject) do update set version = r.version + excluded.version

-- name: read_revision
-- No row: it was never changed.
select version
from groups_revision
where subject = %(subject)s
