-- A commit may give the id that its topic has, so that one of a topic that was created again is refused.
-- Three functions of 0001, whole, and a new one.

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
        ('STALE_MEMBER_EPOCH', 113, rejoin)
    ) as known (name, code, remedy)
    where known.name = error;
    raise exception using
        errcode = 'KC' || lpad(code::text, 3, '0'), message = error || ': ' || detail, hint = remedy;
end
$$;

-- One element of the argument `offsets`. Raises INVALID_REQUEST naming the field.
create or replace function kcoord.offset_at(entry jsonb, field text, out topic text, out partition integer,
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
    where key not in ('topic', 'topic_id', 'partition', 'committed_offset', 'committed_leader_epoch', 'committed_metadata')
    limit 1;
    if stranger is not null then
        perform kcoord.refuse('INVALID_REQUEST', format('%s.%s: there is no such field', field, left(stranger, 40)));
    end if;
    if jsonb_typeof(entry -> 'topic') is distinct from 'string' then
        perform kcoord.refuse('INVALID_REQUEST', field || '.topic: name the topic');
    end if;
    if coalesce(jsonb_typeof(entry -> 'topic_id'), 'null') <> 'null'
       and entry ->> 'topic_id' !~* '^[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}$' then
        perform kcoord.refuse('INVALID_REQUEST', field || '.topic_id: not a valid UUID');
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

-- Raises UNKNOWN_TOPIC_ID for the first entry whose topic has another id than it says, or was deleted.
create function kcoord.check_topic_ids(offsets jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    stranger text;
begin
    select format('offsets[%s].topic_id: topic %L has no such id', e.place - 1, e.entry ->> 'topic') into stranger
    from jsonb_array_elements(offsets) with ordinality as e (entry, place)
    where e.entry ->> 'topic_id' is not null
      and not exists (select from {schema}.groups_topic t
                      where t.name = e.entry ->> 'topic' and t.topic_id = (e.entry ->> 'topic_id')::uuid)
    order by e.place
    limit 1;
    if stranger is not null then
        perform kcoord.refuse('UNKNOWN_TOPIC_ID', stranger);
    end if;
end
$$;

revoke all on function kcoord.check_topic_ids(jsonb) from public;

-- OffsetCommit inside the caller's transaction: fenced by member and generation, committed or rolled back with all that
-- the transaction did. Call it last: from here on to the end of the transaction the group waits.
--   group_id, member_id, generation_id (of a consumer group the member epoch; -1 with an empty member_id for a lone
--   consumer), group_instance_id: as in OffsetCommit.
--   offsets: [{{"topic": "orders", "partition": 0, "committed_offset": 42}}, …], where the offset is the next one to read,
--   with "topic_id", "committed_leader_epoch" and "committed_metadata" where there are any. A partition named twice keeps its last.
--   retention_time_ms: -1 for the server's retention.
-- Returns how many partitions were committed. Raises SQLSTATE KC… (see kcoord.refuse).
create or replace function kcoord.commit_offsets(
    group_id text, member_id text, generation_id integer, offsets jsonb,
    group_instance_id text default null, retention_time_ms bigint default -1) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
    wanted kcoord.offsets_to_commit;
    pk bigint;
    now bigint;
    client_id text := '';
    is_consumer boolean;
begin
    wanted := kcoord.read_offsets(offsets);
    perform kcoord.check_identity(member_id, generation_id, group_instance_id);
    member_id := coalesce(member_id, '');
    pk := kcoord.lock_group(group_id);
    -- What was read before the lock was held may be of an earlier generation: everything below is read after it.
    perform kcoord.check_topic_ids(offsets);
    perform kcoord.check_partitions(wanted.topics, wanted.partitions);
    if group_id is null then
        perform kcoord.refuse('INVALID_GROUP_ID', 'group_id is null');
    elsif pk is null and generation_id >= 0 then
        perform kcoord.refuse('GROUP_ID_NOT_FOUND', format('there is no group %L', group_id));
    elsif pk is null then
        pk := kcoord.make_group(group_id);
    end if;
    -- After the last wait: a transaction that made the group at the same time may have committed meanwhile, and the
    -- journal of a partition is in the order of time.
    now := extract(epoch from clock_timestamp()) * 1000;
    select g.type = 'consumer' into strict is_consumer from {schema}.groups_group g where g.id = pk;
    if is_consumer then
        client_id := kcoord.check_consumer_commit(pk, member_id, generation_id, wanted.topics, wanted.partitions, now);
    else
        client_id := kcoord.check_classic_commit(pk, member_id, generation_id, group_instance_id, now);
    end if;
    perform kcoord.check_metadata(wanted.metadata);
    return kcoord.write_offsets(pk, group_id, member_id, generation_id, client_id, wanted, retention_time_ms, now);
end
$$;
