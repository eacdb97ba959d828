-- Acquire and settle for many members at once, and at the cost of few statements for one.
-- Plans are generic where a parameter is an array or a limit: plans for the values at hand always look cheaper, so
-- Postgres would make a new plan for every call, which takes longer than the call.

-- Locks a partition to acquire from it. `id` null: another transaction works on it (`busy`), or it does not exist. A
-- partition of a topic that the group has not begun begins. Locks whose time is over are ended.
-- `first`: what is given out next; null: nobody knows where it begins. `last`: how far it goes. `ends`: how far the caller
-- says, null: nothing; an end below what is known changes nothing. `room`: how many more may be locked. `due`: something
-- is to be delivered again. Source: share.md 7.2.
-- Differs from Kafka: the limit of locks counts locks, not what lies between them.
create function kcoord.share_enter(
    group_pk bigint, topic uuid, number integer, ends bigint, rules kcoord.share_rules, now bigint,
    out id bigint, out next_offset bigint, out end_offset bigint, out first bigint, out last bigint, out room bigint,
    out due boolean, out busy boolean)
language plpgsql set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_variable
declare
    topic_pk bigint;
    overdue boolean;
    ended integer;
begin
    loop
        select p.id, p.next_offset, p.end_offset, p.topic_pk into id, next_offset, end_offset, topic_pk
        from {schema}.offsets_sharepartition p
        where p.group_id = group_pk and p.topic_id = topic and p.partition = number
        for no key update skip locked;
        exit when found;
        if busy is not null then
            return; -- there is no such partition that could begin
        end if;
        busy := exists (select from {schema}.offsets_sharepartition p
                        where p.group_id = group_pk and p.topic_id = topic and p.partition = number);
        if busy then
            return;
        end if;
        perform kcoord.share_begin(group_pk, array[topic], rules);
    end loop;
    -- By a statement of its own: what others did while they had the partition is seen.
    loop
        select greatest(nullif(end_offset, 0), ends, (
                   select w.log_end_offset from {schema}.groups_watermark w
                   where w.topic_id = topic_pk and w.partition = number)),
               rules.most_locks - coalesce(sum(case when l.held = int8multirange(range_merge(l.held))
                                                    then upper(l.held) - lower(l.held)
                                                    else kcoord.size_of(l.held) end), 0),
               bool_or(l.until <= now),
               exists (select from {schema}.offsets_shareretry r
                       where r.share_partition_id = id and r.not_before <= now)
        into last, room, overdue, due
        from {schema}.offsets_sharelock l where l.share_partition_id = id;
        exit when overdue is not true or ended is not null;
        ended := kcoord.share_end(array(
            select l.id from {schema}.offsets_sharelock l where l.share_partition_id = id and l.until <= now
            for update skip locked), 'expired', rules, now);
    end loop;
    -- A start that was left open (share_begin) is at the first end that is said, also if that is 0.
    first := coalesce(next_offset, last);
    last := coalesce(last, 0);
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
    passed_over integer[];
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
            if part.busy then
                passed_over := passed_over || wanting;
            end if;
            continue;
        end if;
        if part.due and part.room > 0 then
            for place, held, delivery_count, last_error, number in
                select * from kcoord.share_due(part.id, wanting, most, part.room, now)
            loop
                insert into {schema}.offsets_sharelock as l (share_partition_id, member_id, held, delivery_count, until,
                                                             lock_ms, acquired_at, last_error)
                values (part.id, members[place], held, delivery_count, now + lock_ms[place], lock_ms[place], now,
                        last_error)
                returning l.id, l.until into lock_id, until;
                most[place] := most[place] - number;
                part.room := part.room - number;
                return next;
            end loop;
        end if;
        foreach place in array wanting loop
            number := least(most[place], part.room, part.last - part.first);
            continue when number <= 0 or part.first is null;
            insert into {schema}.offsets_sharelock as l (share_partition_id, member_id, held, delivery_count, until,
                                                         lock_ms, acquired_at)
            values (part.id, members[place], int8multirange(int8range(part.first, part.first + number)), 1,
                    now + lock_ms[place], lock_ms[place], now)
            returning l.id, l.held, l.delivery_count, l.until, l.last_error
            into lock_id, held, delivery_count, until, last_error;
            most[place] := most[place] - number;
            part.room := part.room - number;
            part.first := part.first + number;
            return next;
        end loop;
        if part.first is distinct from part.next_offset or ends[line] > part.end_offset then
            update {schema}.offsets_sharepartition p
            set next_offset = part.first, end_offset = greatest(part.end_offset, ends[line]) where p.id = part.id;
            if part.next_offset is null then
                perform kcoord.share_journal_begin(array[part.id]); -- unless it is open still
            end if;
            if ends[line] > part.end_offset then
                perform kcoord.share_wake(part.id);
            end if;
        end if;
    end loop;
    lock_id := null;
    if passed_over is not null then
        for place in select distinct b from unnest(passed_over) b where most[b] = asked[b] loop
            return next;
        end loop;
    end if;
end
$$;

-- One entry of a settlement. Who settles several has locked their locks. `late`: a lock whose time is over, and that
-- nobody has ended yet, is still settled. `remembers`: what was settled stays known for a while, and settling it again
-- the same way changes nothing and succeeds. Source: share.md 7.3.
-- Differs from Kafka: what this lock has settled in the same way before is left out.
create function kcoord.share_settle_entry(
    group_id text, member_id text, item jsonb, number integer, place integer, late boolean, remembers boolean,
    rules kcoord.share_rules, now bigint) returns kcoord.share_outcome
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    entry constant text := 'items[' || place || ']';
    wrong text;
    parts int8multirange[]; -- accept, gap, release, reject, renew
    named int8multirange;
    lock_pk bigint;
    mine record;
    done {schema}.offsets_shareended%rowtype;
    why text;
    held_by text;
    until bigint;
begin
    parts := array[
        coalesce(kcoord.offsets_at(item -> 'accept', entry || '.accept'), '{{}}'),
        coalesce(kcoord.offsets_at(item -> 'gap', entry || '.gap'), '{{}}'),
        coalesce(kcoord.offsets_at(item -> 'release', entry || '.release'), '{{}}'),
        coalesce(kcoord.offsets_at(item -> 'reject', entry || '.reject'), '{{}}'),
        coalesce(kcoord.offsets_at(item -> 'renew', entry || '.renew'), '{{}}')];
    named := parts[1] + parts[2] + parts[3] + parts[4] + parts[5];
    wrong := case
        when jsonb_typeof(item) is distinct from 'object' or coalesce(item ->> 'lock', '') !~ '^\d{{1,18}}$'
            then '.lock is no id of a lock'
        when item - '{{lock,accept,gap,release,reject,renew,delay_ms,error}}'::text[] <> '{{}}'
            then format('.%s is unknown: there are lock, accept, gap, release, reject, renew, delay_ms and error', left(
                (select min(key) from jsonb_object_keys(
                     item - '{{lock,accept,gap,release,reject,renew,delay_ms,error}}'::text[]) key), 40))
        when coalesce(item ->> 'delay_ms', '0') !~ '^\d{{1,12}}$' then '.delay_ms is no number of milliseconds'
        when coalesce(jsonb_typeof(item -> 'error'), 'null') not in ('string', 'null') then '.error is no text'
        when isempty(named) then ' settles nothing'
        when kcoord.size_of(named) <> (select sum((part ->> 1)::bigint - (part ->> 0)::bigint + 1)
                                       from jsonb_path_query(item, '$.*[*]') part where jsonb_typeof(part) = 'array')
            then ': an offset is settled twice'
    end;
    if wrong is not null then
        perform kcoord.refuse('INVALID_REQUEST', entry || wrong);
    end if;
    lock_pk := (item ->> 'lock')::bigint;
    -- Most finish all that a lock holds: then it goes at once.
    delete from {schema}.offsets_sharelock l
    using {schema}.offsets_sharepartition p
    where l.id = lock_pk and l.member_id = member_id and l.held = named and isempty(parts[5])
      and (late or l.until > now) and p.id = l.share_partition_id and p.group_name = group_id
    returning l.id, l.share_partition_id, l.delivery_count, p.topic_name, p.partition into mine;
    if not found then
        select l.id, l.share_partition_id, l.member_id, l.held, l.delivery_count, l.until, l.lock_ms, p.topic_name,
               p.partition into mine
        from {schema}.offsets_sharelock l
        join {schema}.offsets_sharepartition p on p.id = l.share_partition_id and p.group_name = group_id
        where l.id = lock_pk for update of l;
        if mine.member_id is distinct from member_id or not named <@ mine.held then
            select e.* into done from {schema}.offsets_shareended e
            join {schema}.offsets_sharepartition p on p.id = e.share_partition_id and p.group_name = group_id
            where e.lock_id = lock_pk;
            if done.member_id = member_id then
                parts := array[parts[1] - done.accepted, parts[2] - done.accepted, parts[3] - done.released,
                               parts[4] - done.rejected, parts[5]];
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
        if mine.held <@ (named - parts[5]) then
            delete from {schema}.offsets_sharelock l where l.id = mine.id;
        else
            until := case when isempty(parts[5]) then mine.until else now + mine.lock_ms end;
            update {schema}.offsets_sharelock l set held = mine.held - (named - parts[5]), until = until
            where l.id = mine.id;
        end if;
    end if;
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
    if remembers and not isempty(named - parts[5]) then
        perform kcoord.share_remember(mine.id, mine.share_partition_id, member_id, 'settled', parts[1] + parts[2],
                                      parts[3], parts[4], now);
    end if;
    return row(number, place, null, null, until, mine.topic_name, mine.partition, parts[1],
               parts[2])::kcoord.share_outcome;
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
#variable_conflict use_variable
declare
    outcome kcoord.share_outcome;
    outcomes kcoord.share_outcome[];
    lines kcoord.share_outcome[] := '{{}}'; -- of the journal
    first integer;
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
        first := cardinality(lines) + 1;
        for position in 0..jsonb_array_length(items[n]) - 1 loop
            outcome := kcoord.share_settle_entry(groups[n], members[n], items[n] -> position,
                                                 n, position, late, remembers, rules[n], now);
            outcomes := outcomes || outcome;
            continue when isempty(coalesce(outcome.accepted + outcome.gaps, '{{}}'));
            at := first;
            while at <= cardinality(lines)
                  and ((lines[at]).topic, (lines[at]).partition) <> (outcome.topic, outcome.partition) loop
                at := at + 1;
            end loop;
            if at <= cardinality(lines) then
                outcome.accepted := outcome.accepted + (lines[at]).accepted;
                outcome.gaps := outcome.gaps + (lines[at]).gaps;
            end if;
            lines[at] := outcome;
        end loop;
    end loop;
    if cardinality(lines) > 0 then
        insert into {schema}.offset_commit_log (at, kind, group_name, topic, partition, metadata, member_id, principal)
        select now, 'items_done', groups[l.number], l.topic, l.partition,
               '{{' || concat_ws(',', '"accept":' || kcoord.share_ranges(nullif(l.accepted, '{{}}')),
                                      '"gap":' || kcoord.share_ranges(nullif(l.gaps, '{{}}'))) || '}}',
               coalesce(members[l.number], ''), coalesce(nullif(session_user, current_user), '')
        from unnest(lines) l;
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
    numbers integer[];
    last bigint[];
    given integer;
begin
    if coalesce(most, 0) < 1 then
        perform kcoord.refuse('INVALID_REQUEST', 'most: at least one item');
    elsif known.topic_id is null then
        perform kcoord.refuse('UNKNOWN_TOPIC_OR_PARTITION', format('there is no topic %L', topic));
    elsif jsonb_typeof(ends) is distinct from 'object' then
        perform kcoord.refuse('INVALID_REQUEST', 'ends is no object of ends by partition');
    end if;
    if ends <> '{{}}' then
        select key into named from jsonb_each_text(ends) e (key, value)
        where key !~ '^\d{{1,9}}$' or coalesce(value, '') !~ '^\d{{1,18}}$' limit 1;
        if named is not null then
            perform kcoord.refuse('INVALID_REQUEST',
                                  format('ends.%s: a partition and its end are numbers', left(named, 40)));
        end if;
    end if;
    -- Some partitions at a time, as the first of them mostly have enough.
    for at in start..start + known.partitions - 1 by 50 loop
        numbers := '{{}}';
        for n in at..least(at + 49, start + known.partitions - 1) loop
            numbers := numbers || n % known.partitions;
        end loop;
        if ends <> '{{}}' then
            last := '{{}}';
            foreach n in array numbers loop
                last := last || (ends ->> n::text)::bigint;
            end loop;
        end if;
        return query
            select h.lock_id, h.partition, generate_series(lower(h.range), upper(h.range) - 1), h.delivery_count
            from (select a.lock_id, a.partition, unnest(a.held) as range, a.delivery_count
                  from kcoord.share_acquire(
                      known.pk, array[member_id], array[most::bigint], array[(known.rules).lock_ms],
                      array_fill(known.topic_id, array[cardinality(numbers)]), numbers,
                      array_fill('{{1}}'::text, array[cardinality(numbers)]), last, known.rules,
                      (extract(epoch from clock_timestamp()) * 1000)::bigint) a
                  where a.lock_id is not null) h;
        get diagnostics given = row_count;
        most := most - given;
        exit when most = 0;
    end loop;
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
