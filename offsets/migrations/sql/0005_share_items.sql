-- Items of share groups: acquire, settle, expire. The rules are here and nowhere else; share.md 7 has them as tables.
-- An offset is in one row of a lock or a retry, or at or above next_offset without one, or it is finished. It moves in
-- the transaction that takes it out of the row where it was, so of two transactions for one offset the second finds none.

alter table {schema}.offsets_sharepartition add constraint offsets_sharepartition_of_group
    foreign key (group_id) references {schema}.groups_group (id) on delete cascade;
alter table {schema}.offsets_sharelock add constraint offsets_sharelock_of_partition
    foreign key (share_partition_id) references {schema}.offsets_sharepartition (id) on delete cascade;
alter table {schema}.offsets_shareretry add constraint offsets_shareretry_of_partition
    foreign key (share_partition_id) references {schema}.offsets_sharepartition (id) on delete cascade;
alter table {schema}.offsets_sharedead add constraint offsets_sharedead_of_partition
    foreign key (share_partition_id) references {schema}.offsets_sharepartition (id) on delete cascade;
-- Pages keep room for new versions of their rows, so that an acquire needs no entry in an index.
alter table {schema}.offsets_sharepartition set (fillfactor = 50);

-- Raises one of Kafka's errors: SQLSTATE is KC and Kafka's number, the message begins with its name, the hint says what
-- to do. Whatever is raised, the caller's transaction is over: that is what keeps its results and its offsets together.
create or replace function kcoord.refuse(error text, detail text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    rejoin constant text := 'Roll back and poll: the member joins again. The next owner of the partitions begins at '
        'the committed offsets.';
    mend constant text := 'Roll back and mend the call: the same one fails again.';
    wait constant text := 'Roll back and try the whole transaction again, a moment later.';
    code integer;
    remedy text;
begin
    select known.code, known.remedy into strict code, remedy
    from (values
        ('UNKNOWN_TOPIC_OR_PARTITION', 3, 'Roll back; create the topic, or name a partition that it has.'),
        ('OFFSET_METADATA_TOO_LARGE', 12, 'Roll back and shorten the metadata.'),
        ('COORDINATOR_LOAD_IN_PROGRESS', 14, wait),
        ('COORDINATOR_NOT_AVAILABLE', 15, wait),
        ('ILLEGAL_GENERATION', 22, rejoin),
        ('INVALID_GROUP_ID', 24, mend),
        ('UNKNOWN_MEMBER_ID', 25, rejoin),
        ('REBALANCE_IN_PROGRESS', 27, rejoin),
        ('INVALID_REQUEST', 42, mend),
        ('GROUP_ID_NOT_FOUND', 69, rejoin),
        ('FENCED_INSTANCE_ID', 82, 'Roll back and stop: another process runs with this group_instance_id.'),
        ('UNSTABLE_OFFSET_COMMIT', 88, wait),
        ('UNKNOWN_TOPIC_ID', 100, 'Roll back; the topic was deleted, or created again: start with its new log.'),
        ('STALE_MEMBER_EPOCH', 113, rejoin),
        ('INVALID_RECORD_STATE', 121, 'Roll back and go on: another member may have the item by now.')
    ) as known (name, code, remedy)
    where known.name = error;
    raise exception using
        errcode = 'KC' || lpad(code::text, 3, '0'), message = error || ': ' || detail, hint = remedy;
end
$$;

create type kcoord.share_rules as (lock_ms bigint, delivery_limit integer, most_locks integer);

-- How many offsets a set has.
create function kcoord.size_of(held int8multirange) returns bigint
language sql immutable set search_path = pg_catalog, pg_temp
as $$ select coalesce(sum(upper(r) - lower(r)), 0)::bigint from unnest(held) r $$;

-- A list of first and last offsets, [[17, 19], [21, 21]], as a set. Raises INVALID_REQUEST naming the field.
create function kcoord.offsets_at(entry jsonb, field text) returns int8multirange
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
    found int8multirange := '{{}}';
    each jsonb;
begin
    if entry is null or jsonb_typeof(entry) = 'null' then
        return found;
    end if;
    if jsonb_typeof(entry) <> 'array' then
        perform kcoord.refuse('INVALID_REQUEST', field || ' is no list of [first, last]');
    end if;
    for each in select value from jsonb_array_elements(entry) loop
        if jsonb_typeof(each) <> 'array' or jsonb_array_length(each) <> 2
           or jsonb_typeof(each -> 0) <> 'number' or jsonb_typeof(each -> 1) <> 'number'
           or (each ->> 0)::numeric > (each ->> 1)::numeric or (each ->> 0)::numeric < 0
           or (each ->> 1)::numeric >= 9223372036854775807 or (each ->> 0) !~ '^\d+$' or (each ->> 1) !~ '^\d+$' then
            perform kcoord.refuse('INVALID_REQUEST', field || ' is no list of [first, last]');
        end if;
        found := found + int8multirange(int8range((each ->> 0)::bigint, (each ->> 1)::bigint + 1));
    end loop;
    return found;
end
$$;

-- Offsets of an attempt that ended without success: available again, or given up if it was the last one.
create function kcoord.share_return(
    partition_pk bigint, offsets int8multirange, delivery_count integer, not_before bigint, error text,
    member_id text, rules kcoord.share_rules, now bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if isempty(offsets) then
        return;
    elsif delivery_count < rules.delivery_limit then
        insert into {schema}.offsets_shareretry (share_partition_id, held, delivery_count, not_before, last_error,
                                                 last_member)
        values (partition_pk, offsets, delivery_count, not_before, error, member_id);
    else
        perform kcoord.share_bury(partition_pk, offsets, delivery_count, 'limit', error, member_id, now);
    end if;
end
$$;

create function kcoord.share_bury(
    partition_pk bigint, offsets int8multirange, delivery_count integer, cause text, error text, member_id text,
    now bigint) returns void
language sql set search_path = pg_catalog, pg_temp
as $$
    insert into {schema}.offsets_sharedead (share_partition_id, "offset", delivery_count, cause, error, member_id, at)
    select partition_pk, o, delivery_count, cause, error, member_id, now
    from unnest(offsets) r cross join lateral generate_series(lower(r), upper(r) - 1) o
$$;

-- Up to `most` offsets of one partition, whose row is locked: those that are due again first, in their order, then new
-- ones. Source: share.md 7.2.
create function kcoord.share_take(
    partition_pk bigint, member_id text, most bigint, rules kcoord.share_rules, now bigint)
returns table (lock_id bigint, held int8multirange, delivery_count integer)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    wanted bigint;
    first bigint;
    fresh bigint;
    given record;
begin
    select least(most, rules.most_locks - coalesce(sum(kcoord.size_of(l.held)), 0)) into wanted
    from {schema}.offsets_sharelock l where l.share_partition_id = partition_pk;
    if wanted <= 0 then
        return;
    end if;
    for given in
        with due as materialized (
            select r.id, r.delivery_count, r.held
            from {schema}.offsets_shareretry r
            where r.share_partition_id = partition_pk and r.not_before <= now
            for update skip locked
        ), chosen as materialized (
            select d.id, d.delivery_count, o
            from due d
            cross join lateral unnest(d.held) g
            cross join lateral generate_series(lower(g), upper(g) - 1) o
            order by o
            limit wanted
        ), left_over as (
            select d.id, d.held - range_agg(int8range(c.o, c.o + 1)) as held
            from due d join chosen c on c.id = d.id
            group by d.id, d.held
        ), emptied as (
            delete from {schema}.offsets_shareretry r using left_over l where r.id = l.id and isempty(l.held)
        ), shortened as (
            update {schema}.offsets_shareretry r set held = l.held
            from left_over l where r.id = l.id and not isempty(l.held)
        )
        select c.delivery_count + 1 as delivery_count, range_agg(int8range(c.o, c.o + 1)) as held, count(*) as number
        from chosen c
        group by c.delivery_count
    loop
        wanted := wanted - given.number;
        return query insert into {schema}.offsets_sharelock as l (share_partition_id, member_id, held, delivery_count,
                                                                  until, acquired_at)
            values (partition_pk, member_id, given.held, given.delivery_count, now + rules.lock_ms, now)
            returning l.id, l.held, l.delivery_count;
    end loop;
    select p.next_offset, least(wanted, greatest(p.end_offset - p.next_offset, 0)) into strict first, fresh
    from {schema}.offsets_sharepartition p where p.id = partition_pk;
    if fresh > 0 then
        update {schema}.offsets_sharepartition p set next_offset = first + fresh where p.id = partition_pk;
        return query insert into {schema}.offsets_sharelock as l (share_partition_id, member_id, held, delivery_count,
                                                                  until, acquired_at)
            values (partition_pk, member_id, int8multirange(int8range(first, first + fresh)), 1, now + rules.lock_ms, now)
            returning l.id, l.held, l.delivery_count;
    end if;
end
$$;

-- One part of a settlement, whose lock is locked by the caller. Source: share.md 7.3.
create function kcoord.share_settle_lock(
    group_pk bigint, member_id text, item jsonb, field text, rules kcoord.share_rules, now bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    kinds constant text[] := array['accept', 'gap', 'release', 'reject', 'renew'];
    named int8multirange := '{{}}';
    part int8multirange;
    kind text;
    mine record;
    rest int8multirange;
    ends bigint;
begin
    if jsonb_typeof(item) is distinct from 'object' or coalesce(item ->> 'lock', '') !~ '^\d{{1,18}}$' then
        perform kcoord.refuse('INVALID_REQUEST', field || '.lock is no id of a lock');
    end if;
    select key into kind from jsonb_object_keys(item) as key
    where key <> all(kinds || array['lock', 'delay_ms', 'error']) limit 1;
    if kind is not null then
        perform kcoord.refuse('INVALID_REQUEST', format('%s.%s: there is no such field', field, left(kind, 40)));
    elsif coalesce(item ->> 'delay_ms', '0') !~ '^\d{{1,15}}$' then
        perform kcoord.refuse('INVALID_REQUEST', field || '.delay_ms is no number of milliseconds');
    elsif coalesce(jsonb_typeof(item -> 'error'), 'null') not in ('string', 'null') then
        perform kcoord.refuse('INVALID_REQUEST', field || '.error is no text');
    end if;
    select l.id, l.share_partition_id, l.member_id, l.held, l.delivery_count, l.until into mine
    from {schema}.offsets_sharelock l
    join {schema}.offsets_sharepartition p on p.id = l.share_partition_id
    where l.id = (item ->> 'lock')::bigint and p.group_id = group_pk;
    if mine.id is null then
        perform kcoord.refuse('INVALID_RECORD_STATE', field || ': the lock is over, or all of it is settled');
    elsif mine.member_id <> member_id then
        perform kcoord.refuse('INVALID_RECORD_STATE', field || ': the lock belongs to another member');
    end if;
    rest := mine.held;
    ends := mine.until;
    foreach kind in array kinds loop
        part := kcoord.offsets_at(item -> kind, field || '.' || kind);
        if part && named then
            perform kcoord.refuse('INVALID_REQUEST', field || ': an offset is settled twice');
        elsif not part <@ mine.held then
            perform kcoord.refuse('INVALID_RECORD_STATE', format('%s.%s: %s is not held by the lock', field, kind, part - mine.held));
        end if;
        named := named + part;
        if kind = 'renew' then
            ends := case when isempty(part) then ends else now + rules.lock_ms end;
        else
            rest := rest - part;
        end if;
        if kind = 'release' then
            perform kcoord.share_return(mine.share_partition_id, part, mine.delivery_count,
                                        now + coalesce((item ->> 'delay_ms')::bigint, 0), item ->> 'error', member_id,
                                        rules, now);
        elsif kind = 'reject' then
            perform kcoord.share_bury(mine.share_partition_id, part, mine.delivery_count, 'rejected', item ->> 'error',
                                      member_id, now);
        end if;
    end loop;
    if isempty(named) then
        perform kcoord.refuse('INVALID_REQUEST', field || ' settles nothing');
    elsif isempty(rest) then
        delete from {schema}.offsets_sharelock l where l.id = mine.id;
    else
        update {schema}.offsets_sharelock l set held = rest, until = ends where l.id = mine.id;
    end if;
end
$$;

-- A settlement: all of it or nothing. Locks are taken in the order of their ids, so that two cannot wait for each other.
create function kcoord.share_settle(
    group_pk bigint, member_id text, items jsonb, rules kcoord.share_rules, now bigint) returns integer
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    place integer := 0;
    item jsonb;
begin
    if jsonb_typeof(items) is distinct from 'array' or jsonb_array_length(items) = 0 then
        perform kcoord.refuse('INVALID_REQUEST', 'items: name at least one lock');
    end if;
    perform from {schema}.offsets_sharelock l
    where l.id::text in (select value ->> 'lock' from jsonb_array_elements(items))
    order by l.id for update;
    for item in select value from jsonb_array_elements(items) loop
        perform kcoord.share_settle_lock(group_pk, member_id, item, format('items[%s]', place), rules, now);
        place := place + 1;
    end loop;
    return place;
end
$$;

-- Ends locks whose time is over, `most` at most; those that somebody settles just now are left alone.
create function kcoord.share_expire(most integer, rules kcoord.share_rules, now bigint) returns integer
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    ended record;
    count integer := 0;
begin
    for ended in
        delete from {schema}.offsets_sharelock
        where id in (select l.id from {schema}.offsets_sharelock l where l.until <= now
                     order by l.until limit most for update skip locked)
        returning share_partition_id, held, delivery_count, member_id
    loop
        perform kcoord.share_return(ended.share_partition_id, ended.held, ended.delivery_count, now, null,
                                    ended.member_id, rules, now);
        count := count + 1;
    end loop;
    return count;
end
$$;

-- The key of a share group, which stays until the transaction ends. Raises GROUP_ID_NOT_FOUND, INVALID_REQUEST.
create function kcoord.share_group(group_id text, member_id text) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    pk bigint;
    kind text;
begin
    if coalesce(trim(member_id), '') = '' or length(member_id) > 36 then
        perform kcoord.refuse('INVALID_REQUEST', 'member_id has 1 to 36 characters');
    end if;
    select g.id, g.type into pk, kind from {schema}.groups_group g where g.group_id = group_id for key share;
    if pk is null then
        perform kcoord.refuse('GROUP_ID_NOT_FOUND', format('there is no share group %L', group_id));
    elsif kind <> 'share' then
        perform kcoord.refuse('GROUP_ID_NOT_FOUND', format('group %L exists and is no share group', group_id));
    end if;
    return pk;
end
$$;

-- Kafka's defaults.
create function kcoord.share_defaults() returns kcoord.share_rules
language sql immutable set search_path = pg_catalog, pg_temp
as $$ select row(30000, 5, 2000)::kcoord.share_rules $$;

-- Up to `most` items of a topic for a member, in the caller's transaction. `ends`: how far partitions go, as
-- {{"0": 128}}; an end below one that is known changes nothing. A partition that another transaction has is passed over.
create function kcoord.acquire(group_id text, member_id text, topic text, most integer, ends jsonb default '{{}}')
returns table (lock bigint, "partition" integer, "offset" bigint, delivery_count integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    pk bigint := kcoord.share_group(group_id, member_id);
    known record;
    part record;
    taken record;
    wanted bigint := most;
    now bigint := extract(epoch from clock_timestamp()) * 1000;
begin
    if coalesce(most, 0) < 1 then
        perform kcoord.refuse('INVALID_REQUEST', 'most: at least one item');
    end if;
    select t.id, t.topic_id, t.partitions into known from {schema}.groups_topic t where t.name = topic;
    if known.id is null then
        perform kcoord.refuse('UNKNOWN_TOPIC_OR_PARTITION', format('there is no topic %L', topic));
    end if;
    insert into {schema}.offsets_sharepartition (group_id, topic_id, partition, next_offset, end_offset)
    select pk, known.topic_id, n, coalesce(w.log_start_offset, 0), coalesce(w.log_end_offset, 0)
    from generate_series(0, known.partitions - 1) n
    left join {schema}.groups_watermark w on w.topic_id = known.id and w.partition = n
    where not exists (select from {schema}.offsets_sharepartition p
                      where p.group_id = pk and p.topic_id = known.topic_id and p.partition = n)
    on conflict do nothing;
    for part in
        select p.id, p.partition from {schema}.offsets_sharepartition p
        where p.group_id = pk and p.topic_id = known.topic_id
        order by random()
    loop
        exit when wanted <= 0;
        perform from {schema}.offsets_sharepartition p where p.id = part.id for update skip locked;
        continue when not found;
        update {schema}.offsets_sharepartition p set end_offset = (ends ->> part.partition::text)::bigint
        where p.id = part.id and p.end_offset < (ends ->> part.partition::text)::bigint;
        for taken in
            select t.lock_id, t.delivery_count, o
            from kcoord.share_take(part.id, member_id, wanted, kcoord.share_defaults(), now) t
            cross join lateral unnest(t.held) r
            cross join lateral generate_series(lower(r), upper(r) - 1) o
        loop
            wanted := wanted - 1;
            lock := taken.lock_id;
            "partition" := part.partition;
            "offset" := taken.o;
            delivery_count := taken.delivery_count;
            return next;
        end loop;
    end loop;
end
$$;

-- Settles what a member holds, in the caller's transaction: all of it or nothing. Raises KC121 if a lock is lost; then
-- another member may have the item by now, and the transaction is undone. Settling late is fine while nobody took it.
create function kcoord.settle(group_id text, member_id text, items jsonb) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
    return kcoord.share_settle(
        kcoord.share_group(group_id, member_id), member_id, items, kcoord.share_defaults(),
        (extract(epoch from clock_timestamp()) * 1000)::bigint);
end
$$;

revoke all on all functions in schema kcoord from public;
