-- A share group has no committed offsets, and topics may be named by their ids. One function of 0001, whole.

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
    kind text;
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
    select g.type into strict kind from {schema}.groups_group g where g.id = pk;
    if kind = 'share' then
        perform kcoord.refuse('GROUP_ID_NOT_FOUND',
            format('group %L is a share group: it has no committed offsets. Use another group id', group_id));
    elsif kind = 'consumer' then
        client_id := kcoord.check_consumer_commit(pk, member_id, generation_id, wanted.topics, wanted.partitions, now);
    else
        client_id := kcoord.check_classic_commit(pk, member_id, generation_id, group_instance_id, now);
    end if;
    perform kcoord.check_metadata(wanted.metadata);
    return kcoord.write_offsets(pk, group_id, member_id, generation_id, client_id, wanted, retention_time_ms, now);
end
$$;
