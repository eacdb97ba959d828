-- The functions of schema kcoord: offsets committed and read inside a transaction of the caller's own.
-- docs/sinks.md describes them. {schema} is the schema of the coordinator's tables. Everything runs with a pinned
-- search_path and names tables by their schema, so nothing that a caller may create is ever found in their place.

create schema if not exists kcoord;

-- The limit of metadata, in UTF-16 code units: the setting offset.metadata.max.bytes of the servers, which this database
-- cannot see. Whoever changes the setting replaces this function.
create function kcoord.offset_metadata_max_bytes() returns integer
language sql immutable set search_path = pg_catalog, pg_temp
as $$ select 4096 $$;

-- Raises one of Kafka's errors: SQLSTATE is KC and Kafka's number, the message begins with its name, the hint says what
-- to do. Whatever is raised, the caller's transaction is over: that is what keeps its results and its offsets together.
create function kcoord.refuse(error text, detail text) returns void
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
        ('STALE_MEMBER_EPOCH', 113, rejoin)
    ) as known (name, code, remedy)
    where known.name = error;
    raise exception using
        errcode = 'KC' || lpad(code::text, 3, '0'), message = error || ': ' || detail, hint = remedy;
end
$$;

-- An integer of a JSON document. Raises INVALID_REQUEST naming the field.
create function kcoord.integer_at(value jsonb, field text, smallest bigint, largest bigint) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if value is null then
        perform kcoord.refuse('INVALID_REQUEST', field || ' is missing');
    end if;
    if jsonb_typeof(value) <> 'number' or value::text !~ '^-?[0-9]+$' then
        perform kcoord.refuse('INVALID_REQUEST', field || ': ' || left(value::text, 40) || ' is no integer');
    end if;
    if value::numeric not between smallest and largest then
        perform kcoord.refuse('INVALID_REQUEST',
            format('%s: %s is not between %s and %s', field, left(value::text, 40), smallest, largest));
    end if;
    return value::bigint;
end
$$;

-- One element of the argument `offsets`. Raises INVALID_REQUEST naming the field.
create function kcoord.offset_at(entry jsonb, field text, out topic text, out partition integer,
                                 out committed_offset bigint, out leader_epoch integer, out metadata text)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    int4 constant bigint := 2147483647;
    int8 constant bigint := 9223372036854775807;
    stranger text;
begin
    if jsonb_typeof(entry) <> 'object' then
        perform kcoord.refuse('INVALID_REQUEST', field || ' is no object');
    end if;
    select key into stranger from jsonb_object_keys(entry) as key
    where key not in ('topic', 'partition', 'committed_offset', 'committed_leader_epoch', 'committed_metadata')
    limit 1;
    if stranger is not null then
        perform kcoord.refuse('INVALID_REQUEST', format('%s.%s: there is no such field', field, left(stranger, 40)));
    end if;
    if jsonb_typeof(entry -> 'topic') is distinct from 'string' then
        perform kcoord.refuse('INVALID_REQUEST', field || '.topic: name the topic');
    end if;
    if coalesce(jsonb_typeof(entry -> 'committed_metadata'), 'null') not in ('string', 'null') then
        perform kcoord.refuse('INVALID_REQUEST', field || '.committed_metadata is no text');
    end if;
    topic := entry ->> 'topic';
    partition := kcoord.integer_at(entry -> 'partition', field || '.partition', -int4 - 1, int4);
    committed_offset := kcoord.integer_at(entry -> 'committed_offset', field || '.committed_offset', -int8 - 1, int8);
    leader_epoch := kcoord.integer_at(
        coalesce(entry -> 'committed_leader_epoch', '-1'), field || '.committed_leader_epoch', -int4 - 1, int4);
    metadata := coalesce(entry ->> 'committed_metadata', '');
end
$$;

-- The argument `offsets`, column by column. No table: what a client sends is read once, before anything is locked.
create type kcoord.offsets_to_commit as (
    topics text[], partitions integer[], offsets bigint[], leader_epochs integer[], metadata text[]);

-- Reads the argument `offsets`. Raises INVALID_REQUEST naming the field.
create function kcoord.read_offsets(offsets jsonb) returns kcoord.offsets_to_commit
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    most constant integer := 10000;
    wanted kcoord.offsets_to_commit;
begin
    if jsonb_typeof(offsets) is distinct from 'array' then
        perform kcoord.refuse('INVALID_REQUEST',
            'offsets: give a list of {{"topic": …, "partition": …, "committed_offset": …}}');
    elsif jsonb_array_length(offsets) not between 1 and most then
        perform kcoord.refuse('INVALID_REQUEST',
            format('offsets: %s partitions; 1 to %s can be committed at once', jsonb_array_length(offsets), most));
    end if;
    select array_agg(o.topic order by e.place), array_agg(o.partition order by e.place),
           array_agg(o.committed_offset order by e.place), array_agg(o.leader_epoch order by e.place),
           array_agg(o.metadata order by e.place)
    into wanted
    from jsonb_array_elements(offsets) with ordinality as e (entry, place),
         kcoord.offset_at(e.entry, format('offsets[%s]', e.place - 1)) as o;
    return wanted;
end
$$;

-- Raises INVALID_REQUEST for a caller that no group could know.
create function kcoord.check_identity(member_id text, generation_id integer, group_instance_id text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
    if generation_id is null then
        perform kcoord.refuse('INVALID_REQUEST', 'generation_id is null; -1 stands for a consumer without a group');
    elsif length(member_id) > 300 then
        perform kcoord.refuse('INVALID_REQUEST', 'member_id has more than 300 characters');
    end if;
end
$$;
