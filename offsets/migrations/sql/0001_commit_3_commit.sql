-- What callers are given, and what it is made of.

-- Locks the row of a group until the transaction ends, and nothing else. Returns its key, null where there is no group.
-- The lock excludes other commits as well. Sharing it would let them starve heartbeats and rebalances, which would wait
-- for an instant without any sharer, and let two commits of one partition reach journal and view in different orders.
create function kcoord.lock_group(group_id text) returns bigint
language sql set search_path = pg_catalog, pg_temp
as $$ select g.id from {schema}.groups_group g where g.group_id = lock_group.group_id for no key update $$;

-- Makes an Empty group for whoever commits without a generation; returns its key, with the lock.
create function kcoord.make_group(group_id text) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    now constant bigint := extract(epoch from clock_timestamp()) * 1000;
    pk bigint;
begin
    if length(group_id) > 255 or group_id ~ '[/\u0001-\u001f\u007f-\u009f]' then
        perform kcoord.refuse('INVALID_GROUP_ID',
            'a group id has at most 255 characters, none of them ''/'' or a control character');
    end if;
    insert into {schema}.groups_group (group_id, type, state, previous_state, state_since, generation_id,
                                       new_member_added, version, created_at, updated_at)
    values (make_group.group_id, 'classic', 'Empty', 'Dead', now, 0, false, 1, now, now)
    on conflict (group_id) do nothing
    returning id into pk;
    if pk is null then  -- somebody was faster
        pk := kcoord.lock_group(group_id);
        if pk is null then
            perform kcoord.refuse('COORDINATOR_LOAD_IN_PROGRESS', 'the group was made and deleted meanwhile');
        end if;
        return pk;
    end if;
    insert into {schema}.groups_event (group_name, at, kind, generation_id, detail)
    values (make_group.group_id, now, 'group_created', 0, '{{}}');
    perform pg_notify('kcoord_changed', group_id);
    return pk;
end
$$;

-- Raises UNKNOWN_TOPIC_OR_PARTITION for the first partition that does not exist.
create function kcoord.check_partitions(topics text[], partitions integer[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    stranger text;
begin
    select format('%s-%s', c.topic, c.partition) into stranger
    from unnest(topics, partitions) with ordinality as c (topic, partition, place)
    left join {schema}.groups_topic t on t.name = c.topic
    where t.name is null or c.partition < 0 or c.partition >= t.partitions
    order by c.place
    limit 1;
    if stranger is not null then
        perform kcoord.refuse('UNKNOWN_TOPIC_OR_PARTITION', 'there is no partition ' || stranger);
    end if;
end
$$;

-- Raises OFFSET_METADATA_TOO_LARGE for the first text beyond the limit. A character beyond U+FFFF counts two.
create function kcoord.check_metadata(metadata text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    most constant integer := kcoord.offset_metadata_max_bytes();
    place bigint;
begin
    select m.place into place
    from unnest(metadata) with ordinality as m (text, place)
    where length(m.text) + length(regexp_replace(m.text, '[\u0001-\uffff]', '', 'g')) > most
    order by m.place
    limit 1;
    if place is not null then
        perform kcoord.refuse('OFFSET_METADATA_TOO_LARGE', format(
            'offsets[%s].committed_metadata has more than %s UTF-16 code units', place - 1, most));
    end if;
end
$$;

-- Writes the journal and the view, one line and one row a partition, as the coordinator's own commits do.
create function kcoord.write_offsets(
    pk bigint, group_id text, member_id text, generation_id integer, client_id text,
    wanted kcoord.offsets_to_commit, retention_time_ms bigint, now bigint) returns integer
language sql set search_path = pg_catalog, pg_temp
as $$
    with last as (
        select distinct on (w.topic, w.partition) w.topic, w.partition, w.committed_offset, w.leader_epoch, w.metadata
        from unnest(wanted.topics, wanted.partitions, wanted.offsets, wanted.leader_epochs, wanted.metadata)
             with ordinality as w (topic, partition, committed_offset, leader_epoch, metadata, place)
        order by w.topic, w.partition, w.place desc
    ), journal as (
        insert into {schema}.offset_commit_log (at, kind, group_name, topic, partition, committed_offset, leader_epoch,
                                                metadata, expire_timestamp, member_id, generation_id, client_id,
                                                principal)
        select write_offsets.now, 'commit', write_offsets.group_id, l.topic, l.partition, l.committed_offset,
               l.leader_epoch, l.metadata,
               case when retention_time_ms <> -1
                    then least(write_offsets.now::numeric + retention_time_ms, 9223372036854775807)::bigint end,
               write_offsets.member_id, write_offsets.generation_id, write_offsets.client_id, session_user
        from last l
        returning id, at, topic, partition, committed_offset, leader_epoch, metadata, expire_timestamp, member_id,
                  generation_id
    ), view as (
        insert into {schema}.offsets_committedoffset (group_id, topic, partition, committed_offset, leader_epoch,
                                                      metadata, commit_timestamp, expire_timestamp, member_id,
                                                      generation_id, record_offset)
        select pk, j.topic, j.partition, j.committed_offset, j.leader_epoch, j.metadata, j.at, j.expire_timestamp,
               j.member_id, j.generation_id, j.id
        from journal j
        on conflict (group_id, topic, partition) do update
        set committed_offset = excluded.committed_offset, leader_epoch = excluded.leader_epoch,
            metadata = excluded.metadata, commit_timestamp = excluded.commit_timestamp,
            expire_timestamp = excluded.expire_timestamp, member_id = excluded.member_id,
            generation_id = excluded.generation_id, record_offset = excluded.record_offset
        returning 1
    )
    select count(*)::integer from view
$$;

-- OffsetCommit inside the caller's transaction: fenced by member and generation, committed or rolled back with all that
-- the transaction did. Call it last: from here on to the end of the transaction the group waits.
--   group_id, member_id, generation_id (of a consumer group the member epoch; -1 with an empty member_id for a lone
--   consumer), group_instance_id: as in OffsetCommit.
--   offsets: [{{"topic": "orders", "partition": 0, "committed_offset": 42}}, …], where the offset is the next one to read,
--   with "committed_leader_epoch" and "committed_metadata" where there are any. A partition named twice keeps its last.
--   retention_time_ms: -1 for the server's retention.
-- Returns how many partitions were committed. Raises SQLSTATE KC… (see kcoord.refuse).
-- Differs from Kafka: all partitions or none; no session is renewed; an empty list is refused, it would fence nothing.
create function kcoord.commit_offsets(
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
    perform kcoord.check_partitions(wanted.topics, wanted.partitions);
    if group_id is null then
        perform kcoord.refuse('INVALID_GROUP_ID', 'group_id is null');
    elsif pk is null and generation_id >= 0 then
        perform kcoord.refuse('GROUP_ID_NOT_FOUND', format('there is no group %L', group_id));
    elsif pk is null then
        pk := kcoord.make_group(group_id);
    end if;
    -- After the last wait: whoever made the group at the same time may have committed meanwhile, and the journal of a
    -- partition is in the order of time.
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

-- The committed offsets of a group, of all topics or of those named: what a plain read of this transaction sees.
-- With require_stable, an offset that a transaction of the coordinator has open on these topics raises
-- UNSTABLE_OFFSET_COMMIT. Nothing committed, or no such group: no row.
create function kcoord.fetch_offsets(group_id text, topics text[] default null, require_stable boolean default true)
returns table (topic text, partition integer, committed_offset bigint, committed_leader_epoch integer,
               committed_metadata text, commit_timestamp bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    open_on text;
begin
    if require_stable then
        select format('%s-%s', p.topic, p.partition) into open_on
        from {schema}.groups_group g
        join {schema}.offsets_pendingoffset p on p.group_id = g.id
        where g.group_id = fetch_offsets.group_id and (topics is null or p.topic = any (topics))
        limit 1;
        if open_on is not null then
            perform kcoord.refuse('UNSTABLE_OFFSET_COMMIT', 'a transaction is open on partition ' || open_on);
        end if;
    end if;
    return query
        select o.topic::text, o.partition, o.committed_offset, o.leader_epoch, o.metadata, o.commit_timestamp
        from {schema}.groups_group g
        join {schema}.offsets_committedoffset o on o.group_id = g.id
        where g.group_id = fetch_offsets.group_id and (topics is null or o.topic = any (topics))
        order by 1, 2;
end
$$;

-- PUBLIC may execute a new function unless told otherwise. docs/sinks.md has the grants of a sink's role.
revoke all on schema kcoord from public;
revoke all on all functions in schema kcoord from public;
