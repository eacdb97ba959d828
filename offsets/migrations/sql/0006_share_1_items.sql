-- Items of share groups: their journal, how they end, what operators do. Acquire, settle and plans are in the files that
-- follow. The rules are here and nowhere else; share.md 7 has them as tables.
-- An offset is in one row of a lock, a retry or the dead, or at or above next_offset without one, or it is finished. It
-- moves in the transaction that takes it out of the row where it was, so of two transactions for one offset the second
-- finds none.
-- Locks and retries have no foreign keys: each new row would lock that of its partition, and workers would write there.
-- What removes partitions removes them (share_forget).
-- What happens to items is in the journal: a line for each partition of a request, which names offsets as ranges in its
-- metadata. `committed_offset` is null, as after a removal, which is what it is for all who read what was committed: a
-- share group has no committed offsets. Source: share.md 8.

alter table {schema}.offsets_sharepartition add constraint offsets_sharepartition_of_group
    foreign key (group_id) references {schema}.groups_group (id) on delete cascade;
-- Pages keep room for new versions of their rows, so that an acquire needs no entry in an index.
alter table {schema}.offsets_sharepartition set (fillfactor = 50);

-- A partition has the names of its group and topic, which never change, and the key of the topic: who settles or
-- acquires need not look them up.
create function kcoord.share_named() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    select g.group_id, t.name, t.id into new.group_name, new.topic_name, new.topic_pk
    from {schema}.groups_group g cross join {schema}.groups_topic t
    where g.id = new.group_id and t.topic_id = new.topic_id;
    return new;
end
$$;
create trigger offsets_sharepartition_named before insert on {schema}.offsets_sharepartition
    for each row execute function kcoord.share_named();

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

-- The settings of a group. `starts`: earliest or latest, where a partition begins.
create type kcoord.share_rules as (
    lock_ms bigint, delivery_limit integer, most_locks integer,
    backoff_ms bigint, backoff_max_ms bigint, backoff_multiplier integer, starts text);

-- What became of one entry (`place`) of the n-th settlement. `why` null: it is done, and the lock lasts until `until` (null: it is over).
-- Else nothing was changed: expired, settled, released, other_member, not_held or unknown; `held_by`: who has some of it.
-- `accepted` and `gaps` of a partition: what it finished, for the journal.
create type kcoord.share_outcome as (
    number integer, place integer, why text, held_by text, until bigint, topic text, partition integer,
    accepted int8multirange, gaps int8multirange);

-- The settings of the server, which each migration writes here (offsets/commit_function.py).
create function kcoord.share_defaults() returns kcoord.share_rules
language sql immutable set search_path = pg_catalog, pg_temp
as $$ select row(30000, 5, 2000, 0, 60000, 2, 'earliest')::kcoord.share_rules $$;

-- The settings in force for a group, for callers of SQL; the service passes its own.
create function kcoord.share_rules_of(group_name text) returns kcoord.share_rules
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select row(
        coalesce(o.values ->> 'share.record.lock.duration.ms', d.lock_ms::text)::bigint,
        coalesce(o.values ->> 'share.delivery.count.limit', d.delivery_limit::text)::integer,
        coalesce(o.values ->> 'share.partition.max.record.locks', d.most_locks::text)::integer,
        coalesce(o.values ->> 'share.release.backoff.ms', d.backoff_ms::text)::bigint,
        coalesce(o.values ->> 'share.release.backoff.max.ms', d.backoff_max_ms::text)::bigint,
        coalesce(o.values ->> 'share.release.backoff.multiplier', d.backoff_multiplier::text)::integer,
        coalesce(o.values ->> 'share.auto.offset.reset', d.starts))::kcoord.share_rules
    from kcoord.share_defaults() d
    cross join (select jsonb_object_agg(c.name, c.value) as values
                from {schema}.groups_groupconfigoverride c where c.group_name = share_rules_of.group_name) o
$$;

-- How many offsets a set has.
create function kcoord.size_of(held int8multirange) returns bigint
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
    if held = int8multirange(range_merge(held)) then
        return coalesce(upper(held) - lower(held), 0);
    end if;
    return (select coalesce(sum(upper(r) - lower(r)), 0)::bigint from unnest(held) r);
end
$$;

-- A list of first and last offsets, [[17, 19], [21, 21]], as a set. Raises INVALID_REQUEST naming the field.
create function kcoord.offsets_at(entry jsonb, field text) returns int8multirange
language plpgsql immutable strict set search_path = pg_catalog, pg_temp
as $$
declare
    written constant text := entry::text;
begin
    if written in ('null', '[]') then
        return '{{}}';
    elsif written ~ '^\[(?:\["?\d{{1,18}}"?, "?\d{{1,18}}"?\](?:, )?)+\]$' then
        begin
            return ('{{' || substr(written, 2, length(written) - 2) || '}}')::int8multirange;
        exception when data_exception then null; -- a range ends before it begins
        end;
    end if;
    perform kcoord.refuse('INVALID_REQUEST', field || ' is no list of [first, last]');
end
$$;

-- A set of offsets as a list of first and last ones, as requests have it: [[17,19],[21,21]].
create function kcoord.share_ranges(held int8multirange) returns text
language plpgsql immutable strict set search_path = pg_catalog, pg_temp
as $$
begin
    if not isempty(held) and held = int8multirange(range_merge(held)) then
        return '[[' || lower(held) || ',' || upper(held) - 1 || ']]';
    end if;
    return (select '[' || coalesce(string_agg(format('[%s,%s]', lower(r), upper(r) - 1), ',' order by r), '') || ']'
            from unnest(held) r);
end
$$;

-- Wakes requests that wait for items of the group, in every process. A hint: those who wait look at the rows.
create function kcoord.share_wake(partition_pk bigint) returns void
language sql set search_path = pg_catalog, pg_temp
as $$
    select pg_notify('kcoord_wake', p.group_name) from {schema}.offsets_sharepartition p where p.id = partition_pk
$$;

-- Lines of the journal, one for each of these partitions; `details`: what became of which offsets, `member_id`: who did it.
-- Who does it by SQL is named by the role, as in kcoord.commit_offsets; the service itself is not.
create function kcoord.share_note(kind text, partitions bigint[], details text[], member_id text, now bigint)
returns void
language sql set search_path = pg_catalog, pg_temp
as $$
    insert into {schema}.offset_commit_log (at, kind, group_name, topic, partition, metadata, member_id, principal)
    select now, kind, p.group_name, p.topic_name, p.partition, n.detail, share_note.member_id,
           coalesce(nullif(session_user, current_user), '')
    from unnest(partitions, details) n (id, detail)
    join {schema}.offsets_sharepartition p on p.id = n.id
$$;

-- Partitions begin, or begin again, at their next offset: what is in the journal before this line no longer counts. One
-- whose start is open has no line until it is known.
create function kcoord.share_journal_begin(partitions bigint[]) returns void
language sql set search_path = pg_catalog, pg_temp
as $$
    select kcoord.share_note('items_begin', array_agg(p.id), array_agg(format('{{"begin":%s}}', p.next_offset)), '',
                             (extract(epoch from clock_timestamp()) * 1000)::bigint)
    from {schema}.offsets_sharepartition p
    where p.id = any(share_journal_begin.partitions) and p.next_offset is not null
    having count(*) > 0
$$;

create function kcoord.share_bury(
    partition_pk bigint, offsets int8multirange, delivery_count integer, cause text, error text, member_id text,
    now bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
begin
    if isempty(offsets) then
        return;
    end if;
    insert into {schema}.offsets_sharedead (share_partition_id, "offset", delivery_count, cause, error, member_id, at)
    select partition_pk, o, delivery_count, cause, error, member_id, now
    from unnest(offsets) r cross join lateral generate_series(lower(r), upper(r) - 1) o
    -- A dead letter of the same item: the group began again before it.
    on conflict (share_partition_id, "offset") do update
    set delivery_count = excluded.delivery_count, cause = excluded.cause, error = excluded.error,
        member_id = excluded.member_id, at = excluded.at;
    perform kcoord.share_note('items_dead', array[partition_pk],
                              array[format('{{"%s":%s}}', cause, kcoord.share_ranges(offsets))], member_id, now);
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
        perform kcoord.share_wake(partition_pk);
    else
        perform kcoord.share_bury(partition_pk, offsets, delivery_count, 'limit', error, member_id, now);
    end if;
end
$$;

-- When an item that is released without a delay is due again. Source: share.md 7.3.
create function kcoord.share_backoff(delivery_count integer, rules kcoord.share_rules) returns bigint
language sql immutable set search_path = pg_catalog, pg_temp
as $$
    select least(rules.backoff_ms * power(rules.backoff_multiplier::float8, least(delivery_count - 1, 60)),
                 rules.backoff_max_ms)::bigint
$$;

-- Whether a server is there for members to renew locks at: while none is, the time of no lock is over. Where no server has
-- ever been, there is nobody to wait for. Source: share.md 7.4.
create function kcoord.share_served(now bigint) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select exists (select from {schema}.groups_coordinatornode n where n.ended_at is null and n.expires_at > now)
           or not exists (select from {schema}.groups_coordinatorpartition)
$$;

-- What became of a lock, or of parts of it, stays known for a while: who settles them again succeeds, or learns why not.
create function kcoord.share_remember(
    lock_pk bigint, partition_pk bigint, member_id text, cause text, accepted int8multirange, released int8multirange,
    rejected int8multirange, now bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
begin
    insert into {schema}.offsets_shareended as e (lock_id, share_partition_id, member_id, cause, accepted, released,
                                                  rejected, at)
    values (lock_pk, partition_pk, member_id, cause, accepted, released, rejected, now)
    on conflict (lock_id) do update
    set cause = excluded.cause, accepted = e.accepted + excluded.accepted, released = e.released + excluded.released,
        rejected = e.rejected + excluded.rejected, at = excluded.at;
end
$$;

-- Ends locks without a settlement: what they hold is returned. The caller has locked their rows.
-- `cause`: expired, or released (its member is gone, or an operator did it).
create function kcoord.share_end(locks bigint[], cause text, rules kcoord.share_rules, now bigint) returns integer
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    ended record;
    count integer := 0;
begin
    if cause = 'expired' and cardinality(locks) > 0 and not kcoord.share_served(now) then
        return 0;
    end if;
    for ended in
        delete from {schema}.offsets_sharelock l where l.id = any(locks)
        returning l.id, l.share_partition_id, l.held, l.delivery_count, l.member_id, l.last_error
    loop
        perform kcoord.share_return(ended.share_partition_id, ended.held, ended.delivery_count, now, ended.last_error,
                                    ended.member_id, rules, now);
        perform kcoord.share_remember(ended.id, ended.share_partition_id, ended.member_id, cause, '{{}}', '{{}}', '{{}}',
                                      now);
        count := count + 1;
    end loop;
    return count;
end
$$;

-- Ends the locks of a group whose time is over, `most` at most; those that somebody settles just now are left alone.
create function kcoord.share_expire(group_pk bigint, most integer, rules kcoord.share_rules, now bigint)
returns integer
language sql set search_path = pg_catalog, pg_temp
as $$
    select kcoord.share_end(array(
        select l.id from {schema}.offsets_sharelock l
        join {schema}.offsets_sharepartition p on p.id = l.share_partition_id
        where l.until <= now and p.group_id = group_pk
        order by l.until limit most for update of l skip locked), 'expired', rules, now)
$$;

-- Ends the locks of members that are gone, except those that are being settled just now: these end with their time.
create function kcoord.share_leave(group_pk bigint, members text[], rules kcoord.share_rules, now bigint)
returns integer
language sql set search_path = pg_catalog, pg_temp
as $$
    select kcoord.share_end(array(
        select l.id from {schema}.offsets_sharelock l
        join {schema}.offsets_sharepartition p on p.id = l.share_partition_id
        where p.group_id = group_pk and l.member_id = any(members)
        for update of l skip locked), 'released', rules, now)
$$;

-- Partitions of topics that the group has not begun begin. Of a topic that is new to the group at the first or the
-- last known offset, by `rules.starts`; null: where it ends is not known yet, and the first end that is said decides.
-- Of a topic that it knows at 0: nothing of a new partition is missed. Source: share.md 7.5.
create function kcoord.share_begin(group_pk bigint, topics uuid[], rules kcoord.share_rules) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    begun bigint[];
begin
    with added as (
        insert into {schema}.offsets_sharepartition (group_id, topic_id, partition, next_offset, end_offset)
        select group_pk, t.topic_id, n,
               case when exists (select from {schema}.offsets_sharepartition k
                                 where k.group_id = group_pk and k.topic_id = t.topic_id) then 0
                    when rules.starts = 'latest' then w.log_end_offset
                    else coalesce(w.log_start_offset, 0) end,
               0
        from {schema}.groups_topic t
        cross join lateral generate_series(0, t.partitions - 1) n
        left join {schema}.groups_watermark w on w.topic_id = t.id and w.partition = n
        where t.topic_id = any(topics)
          and not exists (select from {schema}.offsets_sharepartition p
                          where p.group_id = group_pk and p.topic_id = t.topic_id and p.partition = n)
        on conflict do nothing
        returning id
    )
    select array_agg(id) into begun from added;
    perform kcoord.share_journal_begin(begun);
end
$$;

-- Partitions of a topic whose start is open begin at the end that was reported.
create function kcoord.share_begin_open(topic text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    begun bigint[];
begin
    with opened as (
        update {schema}.offsets_sharepartition p set next_offset = w.log_end_offset
        from {schema}.groups_topic t join {schema}.groups_watermark w on w.topic_id = t.id
        where t.name = topic and p.topic_id = t.topic_id and p.partition = w.partition and p.next_offset is null
        returning p.id
    )
    select array_agg(id) into begun from opened;
    perform kcoord.share_journal_begin(begun);
end
$$;

-- What an operator does with items of one partition, whoever has them: release makes them available now, reject makes
-- dead letters of them. Returns how many there were. Who held them learns that the lock was released.
create function kcoord.share_operate(
    partition_pk bigint, offsets int8multirange, kind text, error text, rules kcoord.share_rules, now bigint)
returns bigint
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    found record;
    part int8multirange;
    count bigint := 0;
begin
    -- Whoever lets the partition begin again, or removes it, comes before or after, and sees all rows.
    perform from {schema}.offsets_sharepartition p where p.id = partition_pk for key share;
    -- Retries first: what locks hold becomes one.
    for found in
        select r.* from {schema}.offsets_shareretry r
        where r.share_partition_id = partition_pk and r.held && offsets order by r.id for update
    loop
        part := found.held * offsets;
        count := count + kcoord.size_of(part);
        if found.held <@ part then
            delete from {schema}.offsets_shareretry r where r.id = found.id;
        else
            update {schema}.offsets_shareretry r set held = found.held - part where r.id = found.id;
        end if;
        if kind = 'release' then
            perform kcoord.share_return(partition_pk, part, found.delivery_count, now,
                                        coalesce(error, found.last_error), found.last_member, rules, now);
        else
            perform kcoord.share_bury(partition_pk, part, found.delivery_count, 'rejected',
                                      coalesce(error, found.last_error), found.last_member, now);
        end if;
    end loop;
    for found in
        select l.* from {schema}.offsets_sharelock l
        where l.share_partition_id = partition_pk and l.held && offsets order by l.id for update
    loop
        part := found.held * offsets;
        count := count + kcoord.size_of(part);
        update {schema}.offsets_sharelock l set held = found.held - part where l.id = found.id;
        if found.held <@ part then
            perform kcoord.share_end(array[found.id], 'released', rules, now);
        end if;
        if kind = 'release' then
            perform kcoord.share_return(partition_pk, part, found.delivery_count, now, coalesce(error, found.last_error),
                                        found.member_id, rules, now);
        else
            perform kcoord.share_bury(partition_pk, part, found.delivery_count, 'rejected',
                                      coalesce(error, found.last_error), found.member_id, now);
        end if;
    end loop;
    return count;
end
$$;

-- Dead letters are available again now, with one delivery left at least, or from the first one on. Returns how many.
create function kcoord.share_replay(
    group_pk bigint, ids bigint[], reset_count boolean, rules kcoord.share_rules, now bigint) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    dead record;
    count bigint := 0;
begin
    perform from {schema}.offsets_sharepartition p
    where p.group_id = group_pk
      and p.id in (select d.share_partition_id from {schema}.offsets_sharedead d where d.id = any(ids))
    for key share; -- as share_operate
    for dead in
        with gone as (
            delete from {schema}.offsets_sharedead d using {schema}.offsets_sharepartition p
            where p.id = d.share_partition_id and p.group_id = group_pk and d.id = any(ids)
            returning d.share_partition_id, d."offset", d.delivery_count, d.error, d.member_id
        )
        select g.share_partition_id, g.error, g.member_id,
               case when reset_count then 0 else least(g.delivery_count, rules.delivery_limit - 1) end as deliveries,
               range_agg(int8range(g."offset", g."offset" + 1)) as held
        from gone g group by 1, 2, 3, 4
    loop
        count := count + kcoord.size_of(dead.held);
        insert into {schema}.offsets_shareretry (share_partition_id, held, delivery_count, not_before, last_error,
                                                 last_member)
        values (dead.share_partition_id, dead.held, dead.deliveries, now, dead.error, dead.member_id);
        perform kcoord.share_wake(dead.share_partition_id);
    end loop;
    return count;
end
$$;

-- Dead letters are gone for good. Returns how many.
create function kcoord.share_discard(group_pk bigint, ids bigint[], now bigint) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    gone record;
    count bigint := 0;
begin
    for gone in
        with deleted as (
            delete from {schema}.offsets_sharedead d using {schema}.offsets_sharepartition p
            where p.id = d.share_partition_id and p.group_id = group_pk and d.id = any(ids)
            returning d.share_partition_id, d."offset"
        )
        select d.share_partition_id as id, range_agg(int8range(d."offset", d."offset" + 1)) as held from deleted d
        group by 1
    loop
        count := count + kcoord.size_of(gone.held);
        perform kcoord.share_note('items_done', array[gone.id],
                                  array[format('{{"discard":%s}}', kcoord.share_ranges(gone.held))], '', now);
    end loop;
    return count;
end
$$;

-- A partition of a group begins again at an offset: nothing is locked or waits, and what was given up from there on is
-- to be delivered again. Null if it does not exist; else where it began before.
create function kcoord.share_alter(group_pk bigint, topic uuid, partition_no integer, start bigint) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    pk bigint;
    before bigint;
begin
    if not exists (select from {schema}.groups_topic t
                   where t.topic_id = topic and partition_no between 0 and t.partitions - 1) then
        return null;
    end if;
    perform kcoord.share_begin(group_pk, array[topic], kcoord.share_rules_of(
        (select g.group_id from {schema}.groups_group g where g.id = group_pk)));
    select p.id, coalesce(p.next_offset, -1) into pk, before from {schema}.offsets_sharepartition p
    where p.group_id = group_pk and p.topic_id = topic and p.partition = partition_no for update;
    select least(before, min(x.first)) into before from (
        select lower(l.held) as first from {schema}.offsets_sharelock l where l.share_partition_id = pk
        union all select lower(r.held) from {schema}.offsets_shareretry r where r.share_partition_id = pk) x;
    delete from {schema}.offsets_sharelock l where l.share_partition_id = pk;
    delete from {schema}.offsets_shareretry r where r.share_partition_id = pk;
    delete from {schema}.offsets_sharedead d where d.share_partition_id = pk and d."offset" >= start;
    update {schema}.offsets_sharepartition p set next_offset = start where p.id = pk;
    perform kcoord.share_journal_begin(array[pk]);
    return before;
end
$$;

-- Partitions go, with all items: of a group, or of all (null), those of some topics, or all (null).
create function kcoord.share_forget(group_pk bigint, topics uuid[]) returns integer
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    gone bigint[];
begin
    -- One statement for each table: what a transaction adds that is waited for here is seen by the next one.
    with deleted as (delete from {schema}.offsets_sharepartition p
                     where (group_pk is null or p.group_id = group_pk) and (topics is null or p.topic_id = any(topics))
                     returning p.id)
    select coalesce(array_agg(id), '{{}}') into gone from deleted;
    delete from {schema}.offsets_sharelock l where l.share_partition_id = any(gone);
    delete from {schema}.offsets_shareretry r where r.share_partition_id = any(gone);
    delete from {schema}.offsets_sharedead d where d.share_partition_id = any(gone);
    delete from {schema}.offsets_shareended e where e.share_partition_id = any(gone);
    return cardinality(gone);
end
$$;

-- The key of a share group, the settings in force for it, and a topic, which is null if it does not exist. The row of the
-- group is not locked: members beat while a transaction settles. Raises GROUP_ID_NOT_FOUND, INVALID_REQUEST.
create function kcoord.share_group(
    group_id text, member_id text, topic text, out pk bigint, out rules kcoord.share_rules, out topic_id uuid,
    out partitions integer)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    kind text;
    has_own boolean;
begin
    if coalesce(trim(member_id), '') = '' or length(member_id) > 36 then
        perform kcoord.refuse('INVALID_REQUEST', 'member_id has 1 to 36 characters');
    end if;
    select g.id, g.type, t.topic_id, t.partitions,
           exists (select from {schema}.groups_groupconfigoverride c where c.group_name = g.group_id)
    into pk, kind, topic_id, partitions, has_own
    from {schema}.groups_group g left join {schema}.groups_topic t on t.name = topic where g.group_id = group_id;
    if kind is distinct from 'share' then
        perform kcoord.refuse('GROUP_ID_NOT_FOUND', format(
            case when pk is null then 'there is no share group %L' else 'group %L exists and is no share group' end,
            group_id));
    end if;
    rules := case when has_own then kcoord.share_rules_of(group_id) else kcoord.share_defaults() end;
end
$$;
