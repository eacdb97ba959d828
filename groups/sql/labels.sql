-- name: read_group_labels
select labels, updated_at, updated_by
from groups_grouplabels
where group_name = %(group_name)s

-- name: lock_group_labels
-- Locks the row with the labels of a group until the transaction ends, and creates it if it does not exist.
insert into groups_grouplabels (group_name, labels, updated_at, updated_by)
values (%(group_name)s, '{}', %(now)s, %(updated_by)s)
on conflict (group_name) do update set group_name = excluded.group_name
returning labels

-- name: set_group_labels
update groups_grouplabels
set labels = %(labels)s, updated_at = %(now)s, updated_by = %(updated_by)s
where group_name = %(group_name)s

-- name: remove_group_labels
delete from groups_grouplabels
where group_name = %(group_name)s
