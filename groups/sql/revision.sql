-- name: bump_revision
-- The row stays locked until the commit, so changes of one subject follow each other. The step is random: a database
-- that goes back (restore, failover) and is changed in another way does not come to the same version. There is room for
-- two thousand million changes.
insert into groups_revision as r (subject, version)
values (%(subject)s, 1 + floor(random() * 4294967296)::bigint)
on conflict (subject) do update set version = r.version + excluded.version

-- name: read_revision
-- No row: it was never changed.
select version
from groups_revision
where subject = %(subject)s
