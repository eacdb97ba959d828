-- name: all_group_configs
select group_name, name, value
from groups_groupconfigoverride

-- name: read_group_config
select name, value, updated_at, updated_by
from groups_groupconfigoverride
where group_name = %(group_name)s

-- name: set_group_config
insert into groups_groupconfigoverride (group_name, name, value, updated_at, updated_by)
values (%(group_name)s, %(name)s, %(value)s, %(now)s, %(updated_by)s)
on conflict (group_name, name) do update
set value = excluded.value, updated_at = excluded.updated_at, updated_by = excluded.updated_by

-- name: remove_group_config
delete from groups_groupconfigoverride
where group_name = %(group_name)s and name = %(name)s

-- name: generation_of_group
select generation_id from groups_group where group_id = %(group_id)s
