-- name: migrations_table
select to_regclass('django_migrations')

-- name: applied_migrations
select app, name from django_migrations

-- name: timer_lag
select coalesce(%(now)s::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint) - ticked_at
  from kcoord_timerheartbeat
 where id = 1

-- name: journal_day_is_there
select to_regclass('offset_commit_log_' || to_char(
           to_timestamp(coalesce(%(now)s::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint) / 1000)
               at time zone 'utc', 'YYYYMMDD')) is not null

-- name: little_memory
-- What follows in this transaction has to go to disk.
select set_config('work_mem', '64kB', true)

-- name: take_space
-- About 2 MB in a temporary file, which is removed at once.
select count(*) from generate_series(1, 100000)

-- name: samples_age
-- Since the older of the last sample of lag and the last judgement of offsets; null before the first.
select coalesce(%(now)s::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint)
       - least((select max(at) from offsets_grouplag), (select at from offsets_verdictrun where name = 'offsets'))
