-- name: read_clock
-- clock_timestamp(), not now(): the transaction may have waited for a lock since it began.
select coalesce(%(override)s::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint)

-- name: read_clocks
-- Also returns the database's own clock if another one is injected: request age is measured by it.
select coalesce(%(override)s::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint),
       (extract(epoch from clock_timestamp()) * 1000)::bigint
