-- name: bump_revision
-- The row stays locked until the commit, so changes of one subject follow each other.
insert into groups_revision as r (subject, version)
values (%(subject)s, 1)
on conflict (subject) do update set version = r.version + 1

-- name: read_revision
-- No row: it was never changed.
select version
from groups_revision
where subject = %(subject)s
