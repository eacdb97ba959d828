-- name: count
insert into kcoord_counter as c (name, value)
values (%(name)s, %(by)s)
on conflict (name) do update set value = c.value + excluded.value

-- name: counters
select name, value
from kcoord_counter
