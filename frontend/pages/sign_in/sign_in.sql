-- name: count_attempt
-- One statement decides and counts, so that attempts sent at the same moment cannot all pass. No row comes back: this
-- key has to wait. The wait doubles with each failure beyond the free ones and ends at the largest.
insert into frontend_signinattempt as a (key, failures, last_at)
values (%(key)s, 1, (extract(epoch from clock_timestamp()) * 1000)::bigint)
on conflict (key) do update
set failures = case when a.last_at < excluded.last_at - %(forget_ms)s then 1 else a.failures + 1 end,
    last_at = excluded.last_at
where a.failures < %(free)s
   or a.last_at + least(%(first_ms)s * 2::numeric ^ least(a.failures - %(free)s, 30), %(longest_ms)s) <= excluded.last_at
returning failures

-- name: wait_ms
select greatest(0, a.last_at + least(%(first_ms)s * 2::numeric ^ least(a.failures - %(free)s, 30), %(longest_ms)s)
                   - (extract(epoch from clock_timestamp()) * 1000)::bigint)::bigint
from frontend_signinattempt a
where a.key = %(key)s

-- name: forgive_user
delete from frontend_signinattempt
where key = %(key)s

-- name: forgive_one
-- The attempt that succeeded does not count against its address; the failed ones before it still do.
update frontend_signinattempt
set failures = greatest(failures - 1, 0)
where key = %(key)s

-- name: forget_old_attempts
delete from frontend_signinattempt
where key in (select key from frontend_signinattempt
              where last_at < (extract(epoch from clock_timestamp()) * 1000)::bigint - %(forget_ms)s
              limit 100)
