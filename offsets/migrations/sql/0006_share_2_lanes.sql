-- Acquire and settle for many members at once, and at the cost of few statements for one.
-- Plans are generic where a parameter is an array or a limit: plans for the values at hand always look cheaper, so
-- Postgres would make a new plan for every call, which takes longer than the call.

-- Locks a partition to acquire from it. `id` null: another transaction works on it (`busy`), or it does not exist. A
-- partition of a topic that the group has not begun begins. Locks whose time is over are ended.
-- `first`: what is given out next; null: nobody knows where it begins. `last`: how far it goes. `ends`: how far the caller
-- says, null: nothing; an end below what is known changes nothing. `room`: how many more may be locked. `due`: something
-- is to be delivered again. Source: share.md 7.2.
create function kcoord.share_enter(
    group_pk bigint, topic uuid, number integer, ends bigint, rules kcoord.share_rules, now bigint,
    out id bigint, out next_offset bigint, out end_offset bigint, out first bigint, out last bigint, out room bigint,
    out due boolean, out busy boolean)
language plpgsql set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_variable
declare
    overdue boolean;
begin
    for turn in 1..2 loop
        select p.id, p.next_offset, p.end_offset into id, next_offset, end_offset
        from {schema}.offsets_sharepartition p
        where p.group_id = group_pk and p.topic_id = topic and p.partition = number
        for no key update skip locked;
        exit when found;
        busy := exists (select from {schema}.offsets_sharepartition p
                        where p.group_id = group_pk and p.topic_id = topic and p.partition = number);
        if busy or turn = 2 then
            return;
        end if;
        perform kcoord.share_begin(group_pk, array[topic], rules);
    end loop;
    -- By a statement of its own: what others did while they had the partition is seen.
    for turn in 1..2 loop
        select greatest(end_offset, ends, (
                   select w.log_end_offset from {schema}.groups_topic t
                   join {schema}.groups_watermark w on w.topic_id = t.id
                   where t.topic_id = topic and w.partition = number)),
               rules.most_locks - coalesce(sum(case when l.held = int8multirange(range_merge(l.held))
                                                    then upper(l.held) - lower(l.held)
                                                    else kcoord.size_of(l.held) end), 0),
               bool_or(l.until <= now),
               exists (select from {schema}.offsets_shareretry r
                       where r.share_partition_id = id and r.not_before <= now)
        into last, room, overdue, due
        from {schema}.offsets_sharelock l where l.share_partition_id = id;
        exit when turn = 2 or overdue is not true;
        perform kcoord.share_end(array(
            select l.id from {schema}.offsets_sharelock l where l.share_partition_id = id and l.until <= now
            for update skip locked), 'expired', rules, now);
    end loop;
    -- A start that was left open (share_begin) is at the first end that is known.
    first := coalesce(next_offset, nullif(last, 0));
end
$$;

-- What is due again in a partition leaves the retries: up to `room` offsets in their order, up to `most[n]` for each of
-- these places, which have their turns one after the other.
create function kcoord.share_due(partition_pk bigint, places integer[], most bigint[], room bigint, now bigint)
returns table (place integer, held int8multirange, delivery_count integer, last_error text, "number" bigint)
language sql set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
as $$
    with asked as (
        select p.place, sum(most[p.place]) over (order by p.turn) as upto, most[p.place] as most
        from unnest(places) with ordinality p (place, turn)
    ), due as materialized (
        select r.id, r.delivery_count, r.held, r.last_error
        from {schema}.offsets_shareretry r
        where r.share_partition_id = partition_pk and r.not_before <= now
        for update skip locked
    ), chosen as materialized (
        select d.id, d.delivery_count, d.last_error, o, row_number() over (order by o) as turn
        from due d
        cross join lateral unnest(d.held) g
        cross join lateral generate_series(lower(g), upper(g) - 1) o
        order by o
        limit least(room, (select max(upto) from asked))
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
    select a.place, range_agg(int8range(c.o, c.o + 1)) as held, c.delivery_count + 1, c.last_error, count(*)
    from chosen c
    join asked a on c.turn > a.upto - a.most and c.turn <= a.upto
    group by a.place, c.delivery_count, c.last_error
    order by min(c.o)
$$;

-- A member has these offsets of a partition until the time of a lock is over. Returns the id of the lock.
create function kcoord.share_give(
    partition_pk bigint, member_id text, held int8multirange, delivery_count integer, lock_ms bigint, last_error text,
    now bigint) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    lock_id bigint;
begin
    insert into {schema}.offsets_sharelock (share_partition_id, member_id, held, delivery_count, until, lock_ms,
                                            acquired_at, last_error)
    values (partition_pk, member_id, held, delivery_count, now + lock_ms, lock_ms, now, last_error)
    returning id into lock_id;
    return lock_id;
end
$$;

-- Up to `most[n]` items for each `members[n]`, in this order, from partitions one after the other: those that are due
-- again first, then new ones. `places[n]`: to which members the n-th partition is assigned, as {{1,3}}. A partition that
-- another transaction works on is passed over; a member that got nothing because of that has one row without a lock.
create function kcoord.share_acquire(
    group_pk bigint, members text[], most bigint[], lock_ms bigint[], topics uuid[], partitions integer[],
    places text[], ends bigint[], rules kcoord.share_rules, now bigint)
returns table (place integer, lock_id bigint, topic_id uuid, "partition" integer, held int8multirange,
               delivery_count integer, until bigint, last_error text)
language plpgsql set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_variable
declare
    part record;
    number bigint;
    wanting integer[];
    asked bigint[] := most;
    passed_over integer[] := '{{}}';
begin
    for line in 1..cardinality(partitions) loop
        exit when 0 >= all (most);
        wanting := '{{}}';
        foreach place in array places[line]::integer[] loop
            if most[place] > 0 then
                wanting := wanting || place;
            end if;
        end loop;
        continue when wanting = '{{}}';
        topic_id := topics[line];
        "partition" := partitions[line];
        part := kcoord.share_enter(group_pk, topic_id, "partition", ends[line], rules, now);
        if part.id is null then
            passed_over := passed_over || case when part.busy then wanting end;
            continue;
        end if;
        if part.due and part.room > 0 then
            for place, held, delivery_count, last_error, number in
                select * from kcoord.share_due(part.id, wanting, most, part.room, now)
            loop
                lock_id := kcoord.share_give(part.id, members[place], held, delivery_count, lock_ms[place], last_error, now);
                until := now + lock_ms[place];
                most[place] := most[place] - number;
                part.room := part.room - number;
                return next;
            end loop;
        end if;
        delivery_count := 1;
        last_error := null;
        foreach place in array wanting loop
            number := least(most[place], part.room, part.last - part.first);
            continue when number <= 0 or part.first is null;
            held := int8multirange(int8range(part.first, part.first + number));
            lock_id := kcoord.share_give(part.id, members[place], held, 1, lock_ms[place], null, now);
            until := now + lock_ms[place];
            most[place] := most[place] - number;
            part.room := part.room - number;
            part.first := part.first + number;
            return next;
        end loop;
        if part.first is distinct from part.next_offset or ends[line] > part.end_offset then
            update {schema}.offsets_sharepartition p
            set next_offset = part.first, end_offset = greatest(part.end_offset, ends[line]) where p.id = part.id;
            if part.next_offset is null and part.first is not null then
                perform kcoord.share_journal_begin(array[part.id]);
            end if;
            if ends[line] > part.end_offset then
                perform kcoord.share_wake(part.id);
            end if;
        end if;
    end loop;
    lock_id := null;
    if passed_over <> '{{}}' then
        for place in select distinct b from unnest(passed_over) b where most[b] = asked[b] loop
            return next;
        end loop;
    end if;
end
$$;

-- One entry of a settlement. Who settles several has locked their locks. `late`: a lock whose time is over, and that
-- nobody has ended yet, is still settled. `remembers`: what was settled stays known for a while, and settling it again
-- the same way changes nothing and succeeds. Source: share.md 7.3.
create function kcoord.share_settle_entry(
    group_id text, member_id text, item jsonb, number integer, place integer, late boolean, remembers boolean,
    rules kcoord.share_rules, now bigint) returns kcoord.share_outcome
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    kinds constant text[] := '{{accept,gap,release,reject,renew}}';
    fields constant text[] := '{{lock,accept,gap,release,reject,renew,delay_ms,error}}';
    unknown text;
    parts int8multirange[] := '{{"{{}}","{{}}","{{}}","{{}}","{{}}"}}';
    named int8multirange := '{{}}';
    finished int8multirange;
    part int8multirange;
    lock_pk bigint;
    mine record;
    done {schema}.offsets_shareended%rowtype;
    why text;
    held_by text;
    until bigint;
begin
    if jsonb_typeof(item) is distinct from 'object' or coalesce(item ->> 'lock', '') !~ '^\d{{1,18}}$' then
        perform kcoord.refuse('INVALID_REQUEST', format('items[%s].lock is no id of a lock', place));
    elsif item - fields <> '{{}}' then
        select key into unknown from jsonb_object_keys(item - fields) as key limit 1;
        perform kcoord.refuse('INVALID_REQUEST',
                              format('items[%s].%s: there is no such field', place, left(unknown, 40)));
    elsif coalesce(item ->> 'delay_ms', '0') !~ '^\d{{1,12}}$' then
        perform kcoord.refuse('INVALID_REQUEST', format('items[%s].delay_ms is no number of milliseconds', place));
    elsif coalesce(jsonb_typeof(item -> 'error'), 'null') not in ('string', 'null') then
        perform kcoord.refuse('INVALID_REQUEST', format('items[%s].error is no text', place));
    end if;
    for n in 1..5 loop
        continue when not item ? kinds[n];
        part := kcoord.offsets_at(item -> kinds[n], format('items[%s].%s', place, kinds[n]));
        if part && named then
            perform kcoord.refuse('INVALID_REQUEST', format('items[%s]: an offset is settled twice', place));
        end if;
        named := named + part;
        parts[n] := part;
    end loop;
    if isempty(named) then
        perform kcoord.refuse('INVALID_REQUEST', format('items[%s] settles nothing', place));
    end if;
    lock_pk := (item ->> 'lock')::bigint;
    select l.id, l.share_partition_id, l.member_id, l.held, l.delivery_count, l.until, l.lock_ms,
           t.name as topic, p.partition into mine
    from {schema}.offsets_sharelock l
    join {schema}.offsets_sharepartition p on p.id = l.share_partition_id
    join {schema}.groups_group g on g.id = p.group_id and g.group_id = group_id
    join {schema}.groups_topic t on t.topic_id = p.topic_id
    where l.id = lock_pk for update of l;
    if mine.member_id is distinct from member_id or not named <@ mine.held then
        select e.* into done from {schema}.offsets_shareended e
        join {schema}.offsets_sharepartition p on p.id = e.share_partition_id
        join {schema}.groups_group g on g.id = p.group_id and g.group_id = group_id
        where e.lock_id = lock_pk;
        if done.member_id = member_id then
            parts[1] := parts[1] - done.accepted;
            parts[2] := parts[2] - done.accepted;
            parts[3] := parts[3] - done.released;
            parts[4] := parts[4] - done.rejected;
            named := parts[1] + parts[2] + parts[3] + parts[4] + parts[5];
            if isempty(named) then
                return row(number, place, null, null, mine.until, null, null, null, null)::kcoord.share_outcome;
            end if;
        end if;
    end if;
    why := case
        when mine.id is null then coalesce(done.cause, 'unknown')
        when mine.member_id is distinct from member_id then 'other_member'
        when mine.until <= now and not late then 'expired'
        when not named <@ mine.held then case when done.lock_id is null then 'not_held' else 'settled' end
    end;
    if why is not null then
        select l.member_id into held_by from {schema}.offsets_sharelock l
        where l.share_partition_id = coalesce(mine.share_partition_id, done.share_partition_id)
          and l.held && named and l.member_id <> member_id
        order by l.id desc limit 1;
        return row(number, place, why, held_by, null, null, null, null, null)::kcoord.share_outcome;
    end if;
    finished := named - parts[5];
    if not isempty(parts[3]) then
        rules := coalesce(rules, kcoord.share_rules_of(group_id));
        perform kcoord.share_return(
            mine.share_partition_id, parts[3], mine.delivery_count,
            now + coalesce((item ->> 'delay_ms')::bigint, kcoord.share_backoff(mine.delivery_count, rules)),
            item ->> 'error', member_id, rules, now);
    end if;
    if not isempty(parts[4]) then
        perform kcoord.share_bury(mine.share_partition_id, parts[4], mine.delivery_count, 'rejected', item ->> 'error',
                                  member_id, now);
    end if;
    if mine.held <@ finished then
        delete from {schema}.offsets_sharelock l where l.id = mine.id;
    else
        until := case when isempty(parts[5]) then mine.until else now + mine.lock_ms end;
        update {schema}.offsets_sharelock l set held = mine.held - finished, until = until where l.id = mine.id;
    end if;
    if remembers and not isempty(finished) then
        insert into {schema}.offsets_shareended as e (lock_id, share_partition_id, member_id, cause, accepted, released,
                                                      rejected, at)
        values (mine.id, mine.share_partition_id, member_id, 'settled', parts[1] + parts[2], parts[3], parts[4], now)
        on conflict (lock_id) do update
        set accepted = e.accepted + excluded.accepted, released = e.released + excluded.released,
            rejected = e.rejected + excluded.rejected, at = excluded.at;
    end if;
    return row(number, place, null, null, until, mine.topic, mine.partition, parts[1], parts[2])::kcoord.share_outcome;
end
$$;

-- Settlements of members, one after the other and entry by entry. Of one with several entries locks are taken in the order
-- of their ids, so that two cannot wait for each other. What is finished has one line in the journal for each partition of
-- a settlement. `rules[n]` null: they are looked up if they are needed.
create function kcoord.share_settle(
    groups text[], members text[], items jsonb[], late boolean, remembers boolean, rules kcoord.share_rules[],
    now bigint) returns kcoord.share_outcome[]
language plpgsql set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
as $$
declare
    outcome kcoord.share_outcome;
    outcomes kcoord.share_outcome[] := '{{}}';
    -- Of each line of the journal.
    owners text[] := '{{}}';
    settlers text[] := '{{}}';
    topics text[] := '{{}}';
    partitions integer[] := '{{}}';
    accepted int8multirange[] := '{{}}';
    gaps int8multirange[] := '{{}}';
    details text[] := '{{}}';
    before integer;
    at integer;
begin
    for n in 1..cardinality(items) loop
        if jsonb_typeof(items[n]) is distinct from 'array' or jsonb_array_length(items[n]) = 0 then
            perform kcoord.refuse('INVALID_REQUEST', 'items: name at least one lock');
        elsif jsonb_array_length(items[n]) > 1 then
            perform from {schema}.offsets_sharelock l
            where l.id = any(array(select (value ->> 'lock')::bigint from jsonb_array_elements(items[n])
                                   where value ->> 'lock' ~ '^\d{{1,18}}$'))
            order by l.id for update;
        end if;
        before := cardinality(topics);
        for position in 0..jsonb_array_length(items[n]) - 1 loop
            outcome := kcoord.share_settle_entry(groups[n], members[n], items[n] -> position,
                                                 n, position, late, remembers, rules[n], now);
            outcomes := outcomes || outcome;
            continue when isempty(coalesce(outcome.accepted + outcome.gaps, '{{}}'));
            at := before + 1;
            while at <= cardinality(topics) and (topics[at], partitions[at]) <> (outcome.topic, outcome.partition) loop
                at := at + 1;
            end loop;
            owners[at] := groups[n];
            settlers[at] := members[n];
            topics[at] := outcome.topic;
            partitions[at] := outcome.partition;
            accepted[at] := coalesce(accepted[at], '{{}}') + outcome.accepted;
            gaps[at] := coalesce(gaps[at], '{{}}') + outcome.gaps;
        end loop;
    end loop;
    for at in 1..cardinality(topics) loop
        details[at] := '{{' || concat_ws(',',
            case when not isempty(accepted[at]) then '"accept":' || kcoord.share_ranges(accepted[at]) end,
            case when not isempty(gaps[at]) then '"gap":' || kcoord.share_ranges(gaps[at]) end) || '}}';
    end loop;
    if topics <> '{{}}' then
        perform kcoord.share_journal('items_done', owners, topics, partitions, details, settlers, now);
    end if;
    return outcomes;
end
$$;

-- Up to `most` items of a topic for a member, in the caller's transaction. The member need not be in the group.
-- `ends`: how far partitions go, as {{"0": 128}}; an end below one that is known changes nothing. A partition that
-- another transaction acquires from is passed over.
create function kcoord.acquire(
    group_id text, member_id text, topic text, most integer, ends jsonb default '{{}}')
returns table (lock bigint, "partition" integer, "offset" bigint, delivery_count integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_variable
declare
    known record := kcoord.share_group(group_id, member_id, topic);
    named text;
    start integer := floor(random() * known.partitions); -- so that workers spread
    n integer;
    numbers integer[] := '{{}}';
    last bigint[];
begin
    if coalesce(most, 0) < 1 then
        perform kcoord.refuse('INVALID_REQUEST', 'most: at least one item');
    elsif known.topic_id is null then
        perform kcoord.refuse('UNKNOWN_TOPIC_OR_PARTITION', format('there is no topic %L', topic));
    elsif jsonb_typeof(ends) is distinct from 'object' then
        perform kcoord.refuse('INVALID_REQUEST', 'ends is no object of ends by partition');
    end if;
    for n in start..start + known.partitions - 1 loop
        numbers := numbers || n % known.partitions;
    end loop;
    if ends <> '{{}}' then
        select key into named from jsonb_each_text(ends) e (key, value)
        where key !~ '^\d{{1,9}}$' or coalesce(value, '') !~ '^\d{{1,18}}$' limit 1;
        if named is not null then
            perform kcoord.refuse('INVALID_REQUEST',
                                  format('ends.%s: a partition and its end are numbers', left(named, 40)));
        end if;
        foreach n in array numbers loop
            last := last || (ends ->> n::text)::bigint;
        end loop;
    end if;
    return query
        select a.lock_id, a.partition, o, a.delivery_count
        from kcoord.share_acquire(
            known.pk, array[member_id], array[most::bigint], array[(known.rules).lock_ms],
            array_fill(known.topic_id, array[known.partitions]), numbers,
            array_fill('{{1}}'::text, array[known.partitions]), last, known.rules,
            (extract(epoch from clock_timestamp()) * 1000)::bigint) a
        cross join lateral unnest(a.held) r
        cross join lateral generate_series(lower(r), upper(r) - 1) o
        where a.lock_id is not null;
end
$$;

-- Settles what a member holds, in the caller's transaction: all of it or nothing. Raises KC121 if a lock is lost; then
-- another member may have the item by now, and the transaction is undone. Settling late is fine while nobody took it.
-- Returns how many entries were settled.
create function kcoord.settle(group_id text, member_id text, items jsonb) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    outcome kcoord.share_outcome;
    outcomes kcoord.share_outcome[];
begin
    outcomes := kcoord.share_settle(
        array[group_id], array[member_id], array[items], true, false, array[null::kcoord.share_rules],
        (extract(epoch from clock_timestamp()) * 1000)::bigint);
    foreach outcome in array outcomes loop
        if outcome.why is not null then
            perform kcoord.share_group(group_id, member_id, null); -- else there may be no such group
            perform kcoord.refuse('INVALID_RECORD_STATE', format(
                'items[%s]: %s%s', outcome.place, outcome.why, ', held by ' || quote_literal(outcome.held_by)));
        end if;
    end loop;
    return cardinality(outcomes);
end
$$;
