--
-- PostgreSQL database dump
--


-- Dumped from database version 18.6
-- Dumped by pg_dump version 18.6

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: kcoord; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA kcoord;


--
-- Name: pgmq; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA pgmq;


--
-- Name: offsets_to_commit; Type: TYPE; Schema: kcoord; Owner: -
--

CREATE TYPE kcoord.offsets_to_commit AS (
	topics text[],
	partitions integer[],
	offsets bigint[],
	leader_epochs integer[],
	metadata text[]
);


--
-- Name: message_record; Type: TYPE; Schema: pgmq; Owner: -
--

CREATE TYPE pgmq.message_record AS (
	msg_id bigint,
	read_ct integer,
	enqueued_at timestamp with time zone,
	last_read_at timestamp with time zone,
	vt timestamp with time zone,
	message jsonb,
	headers jsonb
);


--
-- Name: metrics_result; Type: TYPE; Schema: pgmq; Owner: -
--

CREATE TYPE pgmq.metrics_result AS (
	queue_name text,
	queue_length bigint,
	newest_msg_age_sec integer,
	oldest_msg_age_sec integer,
	total_messages bigint,
	scrape_time timestamp with time zone,
	queue_visible_length bigint,
	default_partition_length bigint
);


--
-- Name: queue_record; Type: TYPE; Schema: pgmq; Owner: -
--

CREATE TYPE pgmq.queue_record AS (
	queue_name character varying,
	is_partitioned boolean,
	is_unlogged boolean,
	created_at timestamp with time zone
);


--
-- Name: check_classic_commit(bigint, text, integer, text, bigint); Type: FUNCTION; Schema: kcoord; Owner: -
--

CREATE FUNCTION kcoord.check_classic_commit(pk bigint, member_id text, generation_id integer, group_instance_id text, now bigint) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_variable
declare
    grp record;
    member record;
    due boolean;
begin
    select g.state, g.generation_id, g.wake_at into strict grp from "public".groups_group g where g.id = pk;
    due := coalesce(grp.wake_at <= now, false);
    if grp.state = 'Dead' then
        perform kcoord.refuse('COORDINATOR_NOT_AVAILABLE', 'the group is being unloaded');
    elsif generation_id < 0 and grp.state = 'Empty' then
        perform kcoord.require_unheld(pk, now);
        return '';
    elsif generation_id < 0 and due then
        perform kcoord.refuse('COORDINATOR_LOAD_IN_PROGRESS', 'timers of the group are due');
    elsif generation_id < 0 and member_id = '' and group_instance_id is null then
        perform kcoord.refuse('UNKNOWN_MEMBER_ID',
            'the group has members: commit with the member_id and generation_id of one of them');
    end if;
    member := kcoord.classic_member(pk, member_id, group_instance_id, now);
    -- In a Stable group only other members can be overdue, and their end leaves the generation as it is.
    if due and (grp.state <> 'Stable' or member.rebalance_timeout_ms = 0) then
        perform kcoord.refuse('COORDINATOR_LOAD_IN_PROGRESS', 'timers of the group are due');
    elsif generation_id <> grp.generation_id then
        perform kcoord.refuse('ILLEGAL_GENERATION', format(
            'member %s is at generation %s, the group is at %s', member_id, generation_id, grp.generation_id));
    elsif grp.state = 'CompletingRebalance' then
        perform kcoord.refuse('REBALANCE_IN_PROGRESS', 'the group waits for the assignments of its leader');
    end if;
    return member.client_id;
end
$$;


--
-- Name: check_consumer_commit(bigint, text, integer, text[], integer[], bigint); Type: FUNCTION; Schema: kcoord; Owner: -
--

CREATE FUNCTION kcoord.check_consumer_commit(pk bigint, member_id text, member_epoch integer, topics text[], partitions integer[], now bigint) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_variable
declare
    grp record;
    member record;
    due boolean;
begin
    select g.state, g.wake_at into strict grp from "public".groups_group g where g.id = pk;
    due := coalesce(grp.wake_at <= now, false);
    if member_epoch < 0 and grp.state = 'Empty' then
        perform kcoord.require_unheld(pk, now);
        return '';
    end if;
    select m.client_id, m.member_epoch, m.classic_session_timeout_ms is not null as is_classic,
           least(m.session_deadline, m.rebalance_deadline, m.join_deadline, m.sync_deadline) as deadline
    into member
    from "public".groups_consumermember m
    where m.group_id = pk and m.member_id = member_id;
    -- Without its last member of the consumer protocol the group becomes a classic one; without any it is Empty.
    if due and (member_epoch < 0 or coalesce(member.is_classic, false)) then
        perform kcoord.refuse('COORDINATOR_LOAD_IN_PROGRESS', 'timers of the group are due');
    elsif member.deadline <= now and not kcoord.may_expire(pk, now) then
        perform kcoord.refuse('COORDINATOR_LOAD_IN_PROGRESS', 'sessions of the group are being counted again');
    elsif member.member_epoch is null or member.deadline <= now then
        perform kcoord.refuse('UNKNOWN_MEMBER_ID', format('the group has no member %L', member_id));
    elsif member_epoch <> member.member_epoch
          and not kcoord.had_since(pk, member_id, member_epoch, member.member_epoch, topics, partitions) then
        perform kcoord.refuse(
            case when member.is_classic then 'ILLEGAL_GENERATION' else 'STALE_MEMBER_EPOCH' end,
            format('member %s is at epoch %s, not %s', member_id, member.member_epoch, member_epoch));
    end if;
    return member.client_id;
end
$$;


--
-- Name: check_identity(text, integer, text); Type: FUNCTION; Schema: kcoord; Owner: -
--

CREATE FUNCTION kcoord.check_identity(member_id text, generation_id integer, group_instance_id text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
begin
    if generation_id is null then
        perform kcoord.refuse('INVALID_REQUEST', 'generation_id is null; -1 stands for a consumer without a group');
    elsif length(member_id) > 300 then
        perform kcoord.refuse('INVALID_REQUEST', 'member_id has more than 300 characters');
    end if;
end
$$;


--
-- Name: check_metadata(text[]); Type: FUNCTION; Schema: kcoord; Owner: -
--

CREATE FUNCTION kcoord.check_metadata(metadata text[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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


--
-- Name: check_partitions(text[], integer[]); Type: FUNCTION; Schema: kcoord; Owner: -
--

CREATE FUNCTION kcoord.check_partitions(topics text[], partitions integer[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    stranger text;
begin
    select format('%s-%s', c.topic, c.partition) into stranger
    from unnest(topics, partitions) with ordinality as c (topic, partition, place)
    left join "public".groups_topic t on t.name = c.topic
    where t.name is null or c.partition < 0 or c.partition >= t.partitions
    order by c.place
    limit 1;
    if stranger is not null then
        perform kcoord.refuse('UNKNOWN_TOPIC_OR_PARTITION', 'there is no partition ' || stranger);
    end if;
end
$$;


--
-- Name: classic_member(bigint, text, text, bigint); Type: FUNCTION; Schema: kcoord; Owner: -
--

CREATE FUNCTION kcoord.classic_member(pk bigint, member_id text, group_instance_id text, now bigint, OUT client_id text, OUT rebalance_timeout_ms bigint) RETURNS record
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_variable
declare
    holder text;
    session_deadline bigint;
begin
    if group_instance_id is not null then
        select m.member_id into holder from "public".groups_member m
        where m.group_id = pk and m.instance_id = group_instance_id;
        if holder is null then
            perform kcoord.refuse('UNKNOWN_MEMBER_ID', format(
                'the group has no member with group_instance_id %L', group_instance_id));
        elsif holder <> member_id then
            perform kcoord.refuse('FENCED_INSTANCE_ID', format(
                'group_instance_id %L belongs to another member now', group_instance_id));
        end if;
    end if;
    select m.client_id, m.rebalance_timeout_ms, m.session_deadline
    into client_id, rebalance_timeout_ms, session_deadline
    from "public".groups_member m
    where m.group_id = pk and m.member_id = member_id;
    if session_deadline <= now and not kcoord.may_expire(pk, now) then
        perform kcoord.refuse('COORDINATOR_LOAD_IN_PROGRESS', 'sessions of the group are being counted again');
    elsif client_id is null or session_deadline <= now then
        perform kcoord.refuse('UNKNOWN_MEMBER_ID', format('the group has no member %L', member_id));
    end if;
end
$$;


--
-- Name: commit_offsets(text, text, integer, jsonb, text, bigint); Type: FUNCTION; Schema: kcoord; Owner: -
--

CREATE FUNCTION kcoord.commit_offsets(group_id text, member_id text, generation_id integer, offsets jsonb, group_instance_id text DEFAULT NULL::text, retention_time_ms bigint DEFAULT '-1'::integer) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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
    select g.type = 'consumer' into strict is_consumer from "public".groups_group g where g.id = pk;
    if is_consumer then
        client_id := kcoord.check_consumer_commit(pk, member_id, generation_id, wanted.topics, wanted.partitions, now);
    else
        client_id := kcoord.check_classic_commit(pk, member_id, generation_id, group_instance_id, now);
    end if;
    perform kcoord.check_metadata(wanted.metadata);
    return kcoord.write_offsets(pk, group_id, member_id, generation_id, client_id, wanted, retention_time_ms, now);
end
$$;


--
-- Name: fetch_offsets(text, text[], boolean); Type: FUNCTION; Schema: kcoord; Owner: -
--

CREATE FUNCTION kcoord.fetch_offsets(group_id text, topics text[] DEFAULT NULL::text[], require_stable boolean DEFAULT true) RETURNS TABLE(topic text, partition integer, committed_offset bigint, committed_leader_epoch integer, committed_metadata text, commit_timestamp bigint)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_variable
declare
    open_on text;
begin
    if require_stable then
        select format('%s-%s', p.topic, p.partition) into open_on
        from "public".groups_group g
        join "public".offsets_pendingoffset p on p.group_id = g.id
        where g.group_id = fetch_offsets.group_id and (topics is null or p.topic = any (topics))
        limit 1;
        if open_on is not null then
            perform kcoord.refuse('UNSTABLE_OFFSET_COMMIT', 'a transaction is open on partition ' || open_on);
        end if;
    end if;
    return query
        select o.topic::text, o.partition, o.committed_offset, o.leader_epoch, o.metadata, o.commit_timestamp
        from "public".groups_group g
        join "public".offsets_committedoffset o on o.group_id = g.id
        where g.group_id = fetch_offsets.group_id and (topics is null or o.topic = any (topics))
        order by 1, 2;
end
$$;


--
-- Name: had_since(bigint, text, integer, integer, text[], integer[]); Type: FUNCTION; Schema: kcoord; Owner: -
--

CREATE FUNCTION kcoord.had_since(pk bigint, member_id text, epoch integer, current_epoch integer, topics text[], partitions integer[]) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select 0 < epoch and epoch < current_epoch and not exists (
        select from unnest(topics, partitions) as c (topic, partition)
        where not exists (
            select from "public".groups_topic t
            join "public".groups_assignment a on a.topic_id = t.topic_id::text
            where t.name = c.topic and a.group_id = pk and a.partition = c.partition
              and a.member_id = had_since.member_id and a.generation_id <= epoch))
$$;


--
-- Name: integer_at(jsonb, text, bigint, bigint); Type: FUNCTION; Schema: kcoord; Owner: -
--

CREATE FUNCTION kcoord.integer_at(value jsonb, field text, smallest bigint, largest bigint) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
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
$_$;


--
-- Name: lock_group(text); Type: FUNCTION; Schema: kcoord; Owner: -
--

CREATE FUNCTION kcoord.lock_group(group_id text) RETURNS bigint
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$ select g.id from "public".groups_group g where g.group_id = lock_group.group_id for no key update $$;


--
-- Name: make_group(text); Type: FUNCTION; Schema: kcoord; Owner: -
--

CREATE FUNCTION kcoord.make_group(group_id text) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_column
declare
    now constant bigint := extract(epoch from clock_timestamp()) * 1000;
    pk bigint;
begin
    if length(group_id) > 255 or group_id ~ '[/\u0001-\u001f\u007f-\u009f]' then
        perform kcoord.refuse('INVALID_GROUP_ID',
            'a group id has at most 255 characters, none of them ''/'' or a control character');
    end if;
    insert into "public".groups_group (group_id, type, state, previous_state, state_since, generation_id,
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
    insert into "public".groups_event (group_name, at, kind, generation_id, detail)
    values (make_group.group_id, now, 'group_created', 0, '{}');
    perform pg_notify('kcoord_changed', group_id);
    return pk;
end
$$;


--
-- Name: may_expire(bigint, bigint); Type: FUNCTION; Schema: kcoord; Owner: -
--

CREATE FUNCTION kcoord.may_expire(pk bigint, now bigint) RETURNS boolean
    LANGUAGE sql STABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    select (p.partition is null
            or coalesce(p.state = 'ACTIVE' and n.ended_at is null and n.expires_at > may_expire.now
                        and g.armed_gap >= p.gap, false))
           and not exists (select from "public".groups_coordinatornode x
                           where x.ended_at is null and x.flushed_until < may_expire.now)
    from "public".groups_group g
    left join "public".groups_coordinatorpartition p on p.partition = g.partition
    left join "public".groups_coordinatornode n on n.id = p.owner_id
    where g.id = pk
$$;


--
-- Name: offset_at(jsonb, text); Type: FUNCTION; Schema: kcoord; Owner: -
--

CREATE FUNCTION kcoord.offset_at(entry jsonb, field text, OUT topic text, OUT partition integer, OUT committed_offset bigint, OUT leader_epoch integer, OUT metadata text) RETURNS record
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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


--
-- Name: offset_metadata_max_bytes(); Type: FUNCTION; Schema: kcoord; Owner: -
--

CREATE FUNCTION kcoord.offset_metadata_max_bytes() RETURNS integer
    LANGUAGE sql IMMUTABLE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$ select 4096 $$;


--
-- Name: read_offsets(jsonb); Type: FUNCTION; Schema: kcoord; Owner: -
--

CREATE FUNCTION kcoord.read_offsets(offsets jsonb) RETURNS kcoord.offsets_to_commit
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
declare
    most constant integer := 10000;
    wanted kcoord.offsets_to_commit;
begin
    if jsonb_typeof(offsets) is distinct from 'array' then
        perform kcoord.refuse('INVALID_REQUEST',
            'offsets: give a list of {"topic": …, "partition": …, "committed_offset": …}');
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


--
-- Name: refuse(text, text); Type: FUNCTION; Schema: kcoord; Owner: -
--

CREATE FUNCTION kcoord.refuse(error text, detail text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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


--
-- Name: require_unheld(bigint, bigint); Type: FUNCTION; Schema: kcoord; Owner: -
--

CREATE FUNCTION kcoord.require_unheld(pk bigint, now bigint) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
#variable_conflict use_variable
declare
    holder text;
begin
    select g.held_by into holder from "public".groups_group g where g.id = pk and g.held_until > now;
    if found then
        perform kcoord.refuse('COORDINATOR_LOAD_IN_PROGRESS', format(
            'the group is held by %L: only operators change its offsets until the hold ends', holder));
    end if;
end
$$;


--
-- Name: write_offsets(bigint, text, text, integer, text, kcoord.offsets_to_commit, bigint, bigint); Type: FUNCTION; Schema: kcoord; Owner: -
--

CREATE FUNCTION kcoord.write_offsets(pk bigint, group_id text, member_id text, generation_id integer, client_id text, wanted kcoord.offsets_to_commit, retention_time_ms bigint, now bigint) RETURNS integer
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    with last as (
        select distinct on (w.topic, w.partition) w.topic, w.partition, w.committed_offset, w.leader_epoch, w.metadata
        from unnest(wanted.topics, wanted.partitions, wanted.offsets, wanted.leader_epochs, wanted.metadata)
             with ordinality as w (topic, partition, committed_offset, leader_epoch, metadata, place)
        order by w.topic, w.partition, w.place desc
    ), journal as (
        insert into "public".offset_commit_log (at, kind, group_name, topic, partition, committed_offset, leader_epoch,
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
        insert into "public".offsets_committedoffset (group_id, topic, partition, committed_offset, leader_epoch,
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


--
-- Name: _belongs_to_pgmq(text); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq._belongs_to_pgmq(table_name text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
    sql TEXT;
    result BOOLEAN;
BEGIN
  SELECT EXISTS (
    SELECT 1
    FROM pg_depend
    WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pgmq')
    AND objid = (
        SELECT oid
        FROM pg_class
        WHERE relname = table_name
    )
  ) INTO result;
  RETURN result;
END;
$$;


--
-- Name: _create_fifo_index_if_not_exists(text); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq._create_fifo_index_if_not_exists(queue_name text) RETURNS void
    LANGUAGE plpgsql
    AS $_$
DECLARE
    qtable TEXT := pgmq.format_table_name(queue_name, 'q');
    index_name TEXT := qtable || '_fifo_idx';
BEGIN
    -- Create GIN index on headers for efficient FIFO key lookups
    EXECUTE FORMAT(
        $QUERY$
        CREATE INDEX IF NOT EXISTS %I ON pgmq.%I USING GIN (headers);
        $QUERY$,
        index_name, qtable
    );
END;
$_$;


--
-- Name: _ensure_pg_partman_installed(); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq._ensure_pg_partman_installed() RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF NOT pgmq._extension_exists('pg_partman') THEN
    RAISE EXCEPTION 'pg_partman is required for partitioned queues';
  END IF;
END;
$$;


--
-- Name: _extension_exists(text); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq._extension_exists(extension_name text) RETURNS boolean
    LANGUAGE sql
    AS $$
SELECT EXISTS (
    SELECT 1
    FROM pg_extension
    WHERE extname = extension_name
)
$$;


--
-- Name: _get_partition_col(text); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq._get_partition_col(partition_interval text) RETURNS text
    LANGUAGE plpgsql
    AS $$
DECLARE
  num INTEGER;
BEGIN
    BEGIN
        num := partition_interval::INTEGER;
        RETURN 'msg_id';
    EXCEPTION
        WHEN others THEN
            RETURN 'enqueued_at';
    END;
END;
$$;


--
-- Name: _get_pg_partman_major_version(); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq._get_pg_partman_major_version() RETURNS integer
    LANGUAGE sql
    AS $$
  SELECT split_part(extversion, '.', 1)::INT
  FROM pg_extension
  WHERE extname = 'pg_partman'
$$;


--
-- Name: _get_pg_partman_schema(); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq._get_pg_partman_schema() RETURNS text
    LANGUAGE sql
    AS $$
  SELECT
    extnamespace::regnamespace::text
  FROM
    pg_extension
  WHERE
    extname = 'pg_partman';
$$;


--
-- Name: _send_batch(text, jsonb[], jsonb[], timestamp with time zone); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq._send_batch(queue_name text, msgs jsonb[], headers jsonb[], delay timestamp with time zone) RETURNS SETOF bigint
    LANGUAGE plpgsql
    AS $_$
DECLARE
    sql TEXT;
    qtable TEXT := pgmq.format_table_name(queue_name, 'q');
BEGIN
    sql := FORMAT(
            $QUERY$
        INSERT INTO pgmq.%I (vt, message, headers)
        SELECT $2, unnest($1), unnest(coalesce($3, ARRAY[]::jsonb[]))
        RETURNING msg_id;
        $QUERY$,
            qtable
           );
    RETURN QUERY EXECUTE sql USING msgs, delay, headers;
END;
$_$;


--
-- Name: _validate_batch_params(jsonb[], jsonb[]); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq._validate_batch_params(msgs jsonb[], headers jsonb[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    -- Validate that msgs is not NULL or empty
    IF msgs IS NULL OR array_length(msgs, 1) IS NULL THEN
        RAISE EXCEPTION 'msgs cannot be NULL or empty';
    END IF;

    -- Validate that headers array length matches msgs array length if headers is provided
    -- Note: array_length returns NULL for empty arrays, so we use COALESCE to treat empty arrays as length 0
    IF headers IS NOT NULL AND COALESCE(array_length(headers, 1), 0) != COALESCE(array_length(msgs, 1), 0) THEN
        RAISE EXCEPTION 'headers array length (%) must match msgs array length (%)',
            COALESCE(array_length(headers, 1), 0), COALESCE(array_length(msgs, 1), 0);
    END IF;
END;
$$;


--
-- Name: acquire_queue_lock(text); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.acquire_queue_lock(queue_name text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('pgmq.queue_' || queue_name));
END;
$$;


--
-- Name: archive(text, bigint[]); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.archive(queue_name text, msg_ids bigint[]) RETURNS SETOF bigint
    LANGUAGE plpgsql
    AS $_$
DECLARE
    sql TEXT;
    qtable TEXT := pgmq.format_table_name(queue_name, 'q');
    atable TEXT := pgmq.format_table_name(queue_name, 'a');
BEGIN
    sql := FORMAT(
        $QUERY$
        WITH archived AS (
            DELETE FROM pgmq.%I
            WHERE msg_id = ANY($1)
            RETURNING msg_id, vt, read_ct, enqueued_at, last_read_at, message, headers
        )
        INSERT INTO pgmq.%I (msg_id, vt, read_ct, enqueued_at, last_read_at, message, headers)
        SELECT msg_id, vt, read_ct, enqueued_at, last_read_at, message, headers
        FROM archived
        RETURNING msg_id;
        $QUERY$,
        qtable, atable
    );
    RETURN QUERY EXECUTE sql USING msg_ids;
END;
$_$;


--
-- Name: archive(text, bigint); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.archive(queue_name text, msg_id bigint) RETURNS boolean
    LANGUAGE plpgsql
    AS $_$
DECLARE
    sql TEXT;
    result BIGINT;
    qtable TEXT := pgmq.format_table_name(queue_name, 'q');
    atable TEXT := pgmq.format_table_name(queue_name, 'a');
BEGIN
    sql := FORMAT(
        $QUERY$
        WITH archived AS (
            DELETE FROM pgmq.%I
            WHERE msg_id = $1
            RETURNING msg_id, vt, read_ct, enqueued_at, last_read_at, message, headers
        )
        INSERT INTO pgmq.%I (msg_id, vt, read_ct, enqueued_at, last_read_at, message, headers)
        SELECT msg_id, vt, read_ct, enqueued_at, last_read_at, message, headers
        FROM archived
        RETURNING msg_id;
        $QUERY$,
        qtable, atable
    );
    EXECUTE sql USING msg_id INTO result;
    RETURN NOT (result IS NULL);
END;
$_$;


--
-- Name: bind_topic(text, text); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.bind_topic(pattern text, queue_name text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM pgmq.validate_topic_pattern(pattern);
    IF queue_name IS NULL OR queue_name = '' THEN
        RAISE EXCEPTION 'queue_name cannot be NULL or empty';
    END IF;

    IF NOT EXISTS (SELECT 1 FROM pgmq.meta WHERE meta.queue_name = bind_topic.queue_name) THEN
        RAISE EXCEPTION 'Queue "%" does not exist. Create the queue first using pgmq.create()', queue_name;
    END IF;

    INSERT INTO pgmq.topic_bindings (pattern, queue_name)
    VALUES (pattern, queue_name)
    ON CONFLICT ON CONSTRAINT topic_bindings_unique_pattern_queue DO NOTHING;
END;
$$;


--
-- Name: convert_archive_partitioned(text, text, text, integer); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.convert_archive_partitioned(table_name text, partition_interval text DEFAULT '10000'::text, retention_interval text DEFAULT '100000'::text, leading_partition integer DEFAULT 10) RETURNS void
    LANGUAGE plpgsql
    AS $_$
DECLARE
  a_table_name TEXT := pgmq.format_table_name(table_name, 'a');
  a_table_name_old TEXT := pgmq.format_table_name(table_name, 'a') || '_old';
  qualified_a_table_name TEXT := format('pgmq.%I', a_table_name);
  partition_col TEXT;
  a_partition_col TEXT;
BEGIN

  PERFORM c.relkind
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relname = a_table_name
    AND c.relkind = 'p';

  IF FOUND THEN
    RAISE NOTICE 'Table %s is already partitioned', a_table_name;
    RETURN;
  END IF;

  PERFORM c.relkind
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relname = a_table_name
    AND c.relkind = 'r';

  IF NOT FOUND THEN
    RAISE NOTICE 'Table %s does not exists', a_table_name;
    RETURN;
  END IF;

  SELECT pgmq._get_partition_col(partition_interval) INTO partition_col;

  -- For archive tables, use archived_at for time-based partitioning
  IF partition_col = 'enqueued_at' THEN
    a_partition_col := 'archived_at';
  ELSE
    a_partition_col := partition_col;
  END IF;

  EXECUTE 'ALTER TABLE ' || qualified_a_table_name || ' RENAME TO ' || a_table_name_old;

  -- When partitioning by time (archived_at), we need to exclude constraints and indexes
  -- because the existing PRIMARY KEY on msg_id alone is incompatible with partitioning by archived_at.
  -- When partitioning by msg_id, we can keep all constraints including PRIMARY KEY.
  IF a_partition_col = 'archived_at' THEN
    EXECUTE format( 'CREATE TABLE pgmq.%I (LIKE pgmq.%I including defaults including generated including storage including comments) PARTITION BY RANGE (%I)', a_table_name, a_table_name_old, a_partition_col );
  ELSE
    EXECUTE format( 'CREATE TABLE pgmq.%I (LIKE pgmq.%I including all) PARTITION BY RANGE (%I)', a_table_name, a_table_name_old, a_partition_col );
  END IF;

  EXECUTE 'ALTER INDEX pgmq.archived_at_idx_' || table_name || ' RENAME TO archived_at_idx_' || table_name || '_old';
  EXECUTE 'CREATE INDEX archived_at_idx_'|| table_name || ' ON ' || qualified_a_table_name ||'(archived_at)';

  -- https://github.com/pgpartman/pg_partman/blob/master/doc/pg_partman.md
  -- p_parent_table - the existing parent table. MUST be schema qualified, even if in public schema.
  EXECUTE FORMAT(
    $QUERY$
    SELECT %I.create_parent(
      p_parent_table := %L,
      p_control := %L,
      p_interval := %L,
      p_type := case
        when pgmq._get_pg_partman_major_version() = 5 then 'range'
        else 'native'
      end
    )
    $QUERY$,
    pgmq._get_pg_partman_schema(),
    qualified_a_table_name,
    a_partition_col,
    partition_interval
  );

  EXECUTE FORMAT(
    $QUERY$
    UPDATE %I.part_config
    SET
      retention = %L,
      retention_keep_table = false,
      retention_keep_index = false,
      infinite_time_partitions = true
    WHERE
      parent_table = %L;
    $QUERY$,
    pgmq._get_pg_partman_schema(),
    retention_interval,
    qualified_a_table_name
  );
END;
$_$;


--
-- Name: create(text); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq."create"(queue_name text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM pgmq.create_non_partitioned(queue_name);
END;
$$;


--
-- Name: create_fifo_index(text); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.create_fifo_index(queue_name text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM pgmq._create_fifo_index_if_not_exists(queue_name);
END;
$$;


--
-- Name: create_fifo_indexes_all(); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.create_fifo_indexes_all() RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    queue_record RECORD;
BEGIN
    FOR queue_record IN SELECT queue_name FROM pgmq.meta LOOP
        PERFORM pgmq.create_fifo_index(queue_record.queue_name);
    END LOOP;
END;
$$;


--
-- Name: create_non_partitioned(text); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.create_non_partitioned(queue_name text) RETURNS void
    LANGUAGE plpgsql
    AS $_$
DECLARE
  qtable TEXT := pgmq.format_table_name(queue_name, 'q');
  qtable_seq TEXT := qtable || '_msg_id_seq';
  atable TEXT := pgmq.format_table_name(queue_name, 'a');
BEGIN
  PERFORM pgmq.validate_queue_name(queue_name);
  PERFORM pgmq.acquire_queue_lock(queue_name);

  EXECUTE FORMAT(
    $QUERY$
    CREATE TABLE IF NOT EXISTS pgmq.%I (
        msg_id BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
        read_ct INT DEFAULT 0 NOT NULL,
        enqueued_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        last_read_at TIMESTAMP WITH TIME ZONE,
        vt TIMESTAMP WITH TIME ZONE NOT NULL,
        message JSONB,
        headers JSONB
    )
    $QUERY$,
    qtable
  );

  EXECUTE FORMAT(
    $QUERY$
    CREATE TABLE IF NOT EXISTS pgmq.%I (
      msg_id BIGINT PRIMARY KEY,
      read_ct INT DEFAULT 0 NOT NULL,
      enqueued_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
      last_read_at TIMESTAMP WITH TIME ZONE,
      archived_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
      vt TIMESTAMP WITH TIME ZONE NOT NULL,
      message JSONB,
      headers JSONB
    );
    $QUERY$,
    atable
  );

  EXECUTE FORMAT(
    $QUERY$
    CREATE INDEX IF NOT EXISTS %I ON pgmq.%I (vt ASC);
    $QUERY$,
    qtable || '_vt_idx', qtable
  );

  EXECUTE FORMAT(
    $QUERY$
    CREATE INDEX IF NOT EXISTS %I ON pgmq.%I (archived_at);
    $QUERY$,
    'archived_at_idx_' || queue_name, atable
  );

  EXECUTE FORMAT(
    $QUERY$
    INSERT INTO pgmq.meta (queue_name, is_partitioned, is_unlogged)
    VALUES (%L, false, false)
    ON CONFLICT
    DO NOTHING;
    $QUERY$,
    queue_name
  );

END;
$_$;


--
-- Name: create_partitioned(text, text, text, integer); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.create_partitioned(queue_name text, partition_interval text DEFAULT '10000'::text, retention_interval text DEFAULT '100000'::text, premake integer DEFAULT 4) RETURNS void
    LANGUAGE plpgsql
    AS $_$
DECLARE
  partition_col TEXT;
  a_partition_col TEXT;
  qtable TEXT := pgmq.format_table_name(queue_name, 'q');
  qtable_seq TEXT := qtable || '_msg_id_seq';
  atable TEXT := pgmq.format_table_name(queue_name, 'a');
  fq_qtable TEXT := 'pgmq.' || qtable;
  fq_atable TEXT := 'pgmq.' || atable;
BEGIN
  PERFORM pgmq.validate_queue_name(queue_name);
  PERFORM pgmq.acquire_queue_lock(queue_name);
  PERFORM pgmq._ensure_pg_partman_installed();
  IF premake < 1 THEN
    RAISE EXCEPTION 'premake must be at least 1, got %', premake;
  END IF;
  SELECT pgmq._get_partition_col(partition_interval) INTO partition_col;

  EXECUTE FORMAT(
    $QUERY$
    CREATE TABLE IF NOT EXISTS pgmq.%I (
        msg_id BIGINT GENERATED BY DEFAULT AS IDENTITY,
        read_ct INT DEFAULT 0 NOT NULL,
        enqueued_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        last_read_at TIMESTAMP WITH TIME ZONE,
        vt TIMESTAMP WITH TIME ZONE NOT NULL,
        message JSONB,
        headers JSONB
    ) PARTITION BY RANGE (%I)
    $QUERY$,
    qtable, partition_col
  );

  -- https://github.com/pgpartman/pg_partman/blob/master/doc/pg_partman.md
  -- p_parent_table - the existing parent table. MUST be schema qualified, even if in public schema.
  EXECUTE FORMAT(
    $QUERY$
    SELECT %I.create_parent(
      p_parent_table := %L,
      p_control := %L,
      p_interval := %L,
      p_premake := %s,
      p_type := case
        when pgmq._get_pg_partman_major_version() = 5 then 'range'
        else 'native'
      end
    )
    $QUERY$,
    pgmq._get_pg_partman_schema(),
    fq_qtable,
    partition_col,
    partition_interval,
    premake
  );

  EXECUTE FORMAT(
    $QUERY$
    CREATE INDEX IF NOT EXISTS %I ON pgmq.%I (%I);
    $QUERY$,
    qtable || '_part_idx', qtable, partition_col
  );

  EXECUTE FORMAT(
    $QUERY$
    UPDATE %I.part_config
    SET
        retention = %L,
        retention_keep_table = false,
        retention_keep_index = true,
        automatic_maintenance = 'on'
    WHERE parent_table = %L;
    $QUERY$,
    pgmq._get_pg_partman_schema(),
    retention_interval,
    'pgmq.' || qtable
  );

  EXECUTE FORMAT(
    $QUERY$
    INSERT INTO pgmq.meta (queue_name, is_partitioned, is_unlogged)
    VALUES (%L, true, false)
    ON CONFLICT
    DO NOTHING;
    $QUERY$,
    queue_name
  );

  IF partition_col = 'enqueued_at' THEN
    a_partition_col := 'archived_at';
  ELSE
    a_partition_col := partition_col;
  END IF;

  EXECUTE FORMAT(
    $QUERY$
    CREATE TABLE IF NOT EXISTS pgmq.%I (
      msg_id BIGINT NOT NULL,
      read_ct INT DEFAULT 0 NOT NULL,
      enqueued_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
      last_read_at TIMESTAMP WITH TIME ZONE,
      archived_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
      vt TIMESTAMP WITH TIME ZONE NOT NULL,
      message JSONB,
      headers JSONB
    ) PARTITION BY RANGE (%I);
    $QUERY$,
    atable, a_partition_col
  );

  -- https://github.com/pgpartman/pg_partman/blob/master/doc/pg_partman.md
  -- p_parent_table - the existing parent table. MUST be schema qualified, even if in public schema.
  EXECUTE FORMAT(
    $QUERY$
    SELECT %I.create_parent(
      p_parent_table := %L,
      p_control := %L,
      p_interval := %L,
      p_premake := %s,
      p_type := case
        when pgmq._get_pg_partman_major_version() = 5 then 'range'
        else 'native'
      end
    )
    $QUERY$,
    pgmq._get_pg_partman_schema(),
    fq_atable,
    a_partition_col,
    partition_interval,
    premake
  );

  EXECUTE FORMAT(
    $QUERY$
    UPDATE %I.part_config
    SET
        retention = %L,
        retention_keep_table = false,
        retention_keep_index = true,
        automatic_maintenance = 'on'
    WHERE parent_table = %L;
    $QUERY$,
    pgmq._get_pg_partman_schema(),
    retention_interval,
    'pgmq.' || atable
  );

  EXECUTE FORMAT(
    $QUERY$
    CREATE INDEX IF NOT EXISTS %I ON pgmq.%I (archived_at);
    $QUERY$,
    'archived_at_idx_' || queue_name, atable
  );

END;
$_$;


--
-- Name: create_unlogged(text); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.create_unlogged(queue_name text) RETURNS void
    LANGUAGE plpgsql
    AS $_$
DECLARE
  qtable TEXT := pgmq.format_table_name(queue_name, 'q');
  qtable_seq TEXT := qtable || '_msg_id_seq';
  atable TEXT := pgmq.format_table_name(queue_name, 'a');
BEGIN
  PERFORM pgmq.validate_queue_name(queue_name);
  PERFORM pgmq.acquire_queue_lock(queue_name);

  EXECUTE FORMAT(
    $QUERY$
    CREATE UNLOGGED TABLE IF NOT EXISTS pgmq.%I (
        msg_id BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
        read_ct INT DEFAULT 0 NOT NULL,
        enqueued_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        last_read_at TIMESTAMP WITH TIME ZONE,
        vt TIMESTAMP WITH TIME ZONE NOT NULL,
        message JSONB,
        headers JSONB
    )
    $QUERY$,
    qtable
  );

  EXECUTE FORMAT(
    $QUERY$
    CREATE TABLE IF NOT EXISTS pgmq.%I (
      msg_id BIGINT PRIMARY KEY,
      read_ct INT DEFAULT 0 NOT NULL,
      enqueued_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
      last_read_at TIMESTAMP WITH TIME ZONE,
      archived_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
      vt TIMESTAMP WITH TIME ZONE NOT NULL,
      message JSONB,
      headers JSONB
    );
    $QUERY$,
    atable
  );

  EXECUTE FORMAT(
    $QUERY$
    CREATE INDEX IF NOT EXISTS %I ON pgmq.%I (vt ASC);
    $QUERY$,
    qtable || '_vt_idx', qtable
  );

  EXECUTE FORMAT(
    $QUERY$
    CREATE INDEX IF NOT EXISTS %I ON pgmq.%I (archived_at);
    $QUERY$,
    'archived_at_idx_' || queue_name, atable
  );

  EXECUTE FORMAT(
    $QUERY$
    INSERT INTO pgmq.meta (queue_name, is_partitioned, is_unlogged)
    VALUES (%L, false, true)
    ON CONFLICT
    DO NOTHING;
    $QUERY$,
    queue_name
  );
END;
$_$;


--
-- Name: delete(text, bigint[]); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.delete(queue_name text, msg_ids bigint[]) RETURNS SETOF bigint
    LANGUAGE plpgsql
    AS $_$
DECLARE
    sql TEXT;
    qtable TEXT := pgmq.format_table_name(queue_name, 'q');
BEGIN
    sql := FORMAT(
        $QUERY$
        DELETE FROM pgmq.%I
        WHERE msg_id = ANY($1)
        RETURNING msg_id
        $QUERY$,
        qtable
    );
    RETURN QUERY EXECUTE sql USING msg_ids;
END;
$_$;


--
-- Name: delete(text, bigint); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.delete(queue_name text, msg_id bigint) RETURNS boolean
    LANGUAGE plpgsql
    AS $_$
DECLARE
    sql TEXT;
    result BIGINT;
    qtable TEXT := pgmq.format_table_name(queue_name, 'q');
BEGIN
    sql := FORMAT(
        $QUERY$
        DELETE FROM pgmq.%I
        WHERE msg_id = $1
        RETURNING msg_id
        $QUERY$,
        qtable
    );
    EXECUTE sql USING msg_id INTO result;
    RETURN NOT (result IS NULL);
END;
$_$;


--
-- Name: detach_archive(text); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.detach_archive(queue_name text) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
  atable TEXT := pgmq.format_table_name(queue_name, 'a');
BEGIN
  RAISE WARNING 'detach_archive(queue_name) is deprecated and is a no-op. It will be removed in PGMQ v2.0. Archive tables are no longer member objects.';
END
$$;


--
-- Name: disable_notify_insert(text); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.disable_notify_insert(queue_name text) RETURNS void
    LANGUAGE plpgsql
    AS $_$
DECLARE
  qtable TEXT := pgmq.format_table_name(queue_name, 'q');
  v_queue_name TEXT := queue_name;
BEGIN
  EXECUTE FORMAT(
    $QUERY$
    DROP TRIGGER IF EXISTS trigger_notify_queue_insert_listeners ON pgmq.%I;
    $QUERY$,
    qtable
  );

  DELETE FROM pgmq.notify_insert_throttle nit WHERE nit.queue_name = v_queue_name;
END;
$_$;


--
-- Name: drop_queue(text); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.drop_queue(queue_name text) RETURNS boolean
    LANGUAGE plpgsql
    AS $_$
DECLARE
    qtable TEXT := pgmq.format_table_name(queue_name, 'q');
    qtable_seq TEXT := qtable || '_msg_id_seq';
    fq_qtable TEXT := 'pgmq.' || qtable;
    atable TEXT := pgmq.format_table_name(queue_name, 'a');
    fq_atable TEXT := 'pgmq.' || atable;
    partitioned BOOLEAN;
BEGIN
    PERFORM pgmq.acquire_queue_lock(queue_name);
    EXECUTE FORMAT(
        $QUERY$
        SELECT is_partitioned FROM pgmq.meta WHERE queue_name = %L
        $QUERY$,
        queue_name
    ) INTO partitioned;

    -- check if the queue exists
    IF NOT EXISTS (
        SELECT 1
        FROM information_schema.tables
        WHERE table_name = qtable and table_schema = 'pgmq'
    ) THEN
        RAISE NOTICE 'pgmq queue `%` does not exist', queue_name;
        RETURN FALSE;
    END IF;

    EXECUTE FORMAT(
        $QUERY$
        DROP TABLE IF EXISTS pgmq.%I
        $QUERY$,
        qtable
    );

    EXECUTE FORMAT(
        $QUERY$
        DROP TABLE IF EXISTS pgmq.%I
        $QUERY$,
        atable
    );

     IF EXISTS (
          SELECT 1
          FROM information_schema.tables
          WHERE table_name = 'meta' and table_schema = 'pgmq'
     ) THEN
        EXECUTE FORMAT(
            $QUERY$
            DELETE FROM pgmq.meta WHERE queue_name = %L
            $QUERY$,
            queue_name
        );
     END IF;

     IF partitioned THEN
        EXECUTE FORMAT(
          $QUERY$
          DELETE FROM %I.part_config where parent_table in (%L, %L)
          $QUERY$,
          pgmq._get_pg_partman_schema(), fq_qtable, fq_atable
        );
     END IF;

    RETURN TRUE;
END;
$_$;


--
-- Name: drop_queue(text, boolean); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.drop_queue(queue_name text, partitioned boolean) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
    qtable TEXT := pgmq.format_table_name(queue_name, 'q');
    fq_qtable TEXT := 'pgmq.' || qtable;
    atable TEXT := pgmq.format_table_name(queue_name, 'a');
    fq_atable TEXT := 'pgmq.' || atable;
BEGIN
    RAISE WARNING 'drop_queue(queue_name, partitioned) is deprecated and will be removed in PGMQ v2.0. Use drop_queue(queue_name) instead';

    PERFORM pgmq.drop_queue(queue_name);

    RETURN TRUE;
END;
$$;


--
-- Name: enable_notify_insert(text, integer); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.enable_notify_insert(queue_name text, throttle_interval_ms integer DEFAULT 250) RETURNS void
    LANGUAGE plpgsql
    AS $_$
DECLARE
  qtable TEXT := pgmq.format_table_name(queue_name, 'q');
  v_queue_name TEXT := queue_name;
  v_throttle_interval_ms INTEGER := throttle_interval_ms;
BEGIN
  -- Validate that throttle_interval_ms is non-negative
  IF v_throttle_interval_ms < 0 THEN
    RAISE EXCEPTION 'throttle_interval_ms must be non-negative';
  END IF;

  -- Validate that the queue table exists
  IF NOT EXISTS (SELECT 1 FROM information_schema.tables WHERE table_schema = 'pgmq' AND table_name = qtable) THEN
    RAISE EXCEPTION 'Queue "%" does not exist. Create it first using pgmq.create()', v_queue_name;
  END IF;

  PERFORM pgmq.disable_notify_insert(v_queue_name);

  INSERT INTO pgmq.notify_insert_throttle (queue_name, throttle_interval_ms)
  VALUES (v_queue_name, v_throttle_interval_ms)
  ON CONFLICT ON CONSTRAINT notify_insert_throttle_queue_name_key DO UPDATE
      SET throttle_interval_ms = EXCLUDED.throttle_interval_ms,
          last_notified_at = to_timestamp(0);

  EXECUTE FORMAT(
    $QUERY$
    CREATE CONSTRAINT TRIGGER trigger_notify_queue_insert_listeners
    AFTER INSERT ON pgmq.%I
    DEFERRABLE FOR EACH ROW
    EXECUTE PROCEDURE pgmq.notify_queue_listeners()
    $QUERY$,
    qtable
  );
END;
$_$;


--
-- Name: format_table_name(text, text); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.format_table_name(queue_name text, prefix text) RETURNS text
    LANGUAGE plpgsql
    AS $_$
BEGIN
    IF queue_name ~ '\$|;|--|'''
    THEN
        RAISE EXCEPTION 'queue name contains invalid characters: $, ;, --, or \''';
    END IF;
    RETURN lower(prefix || '_' || queue_name);
END;
$_$;


--
-- Name: list_notify_insert_throttles(); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.list_notify_insert_throttles() RETURNS TABLE(queue_name text, throttle_interval_ms integer, last_notified_at timestamp with time zone)
    LANGUAGE sql STABLE
    AS $$
    SELECT queue_name, throttle_interval_ms, last_notified_at
    FROM pgmq.notify_insert_throttle
    ORDER BY queue_name;
$$;


--
-- Name: list_queues(); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.list_queues() RETURNS SETOF pgmq.queue_record
    LANGUAGE plpgsql
    AS $$
BEGIN
  RETURN QUERY SELECT * FROM pgmq.meta;
END
$$;


--
-- Name: list_topic_bindings(); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.list_topic_bindings() RETURNS TABLE(pattern text, queue_name text, bound_at timestamp with time zone, compiled_regex text)
    LANGUAGE sql STABLE
    AS $$
    SELECT pattern, queue_name, bound_at, compiled_regex
    FROM pgmq.topic_bindings
    ORDER BY bound_at DESC, pattern, queue_name;
$$;


--
-- Name: list_topic_bindings(text); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.list_topic_bindings(queue_name text) RETURNS TABLE(pattern text, queue_name text, bound_at timestamp with time zone, compiled_regex text)
    LANGUAGE sql STABLE
    AS $$
    SELECT pattern, tb.queue_name, bound_at, compiled_regex
    FROM pgmq.topic_bindings tb
    WHERE tb.queue_name = list_topic_bindings.queue_name
    ORDER BY bound_at DESC, pattern;
$$;


--
-- Name: metrics(text); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.metrics(queue_name text) RETURNS pgmq.metrics_result
    LANGUAGE plpgsql
    AS $_$
DECLARE
    result_row pgmq.metrics_result;
    query TEXT;
    qtable TEXT := pgmq.format_table_name(queue_name, 'q');
    q_default_partition TEXT := qtable || '_default';
    a_default_partition TEXT := pgmq.format_table_name(queue_name, 'a') || '_default';
    default_partition_length BIGINT;
BEGIN
    -- Only partitioned queues have default partitions. Messages in them have no
    -- partition of their own, which means pg_partman maintenance is failing for
    -- this queue; a non-zero value here is the signal to act on. The planner's
    -- estimate is used so that a large spill does not slow down every scrape.
    IF to_regclass(FORMAT('pgmq.%I', q_default_partition)) IS NOT NULL THEN
        SELECT COALESCE(SUM(GREATEST(c.reltuples, 0))::bigint, 0)
        INTO default_partition_length
        FROM pg_class c
        WHERE c.oid IN (
            to_regclass(FORMAT('pgmq.%I', q_default_partition)),
            to_regclass(FORMAT('pgmq.%I', a_default_partition))
        );
    END IF;

    query := FORMAT(
        $QUERY$
        WITH q_summary AS (
            SELECT
                count(*) as queue_length,
                count(CASE WHEN vt <= NOW() THEN 1 END) as queue_visible_length,
                EXTRACT(epoch FROM (NOW() - max(enqueued_at)))::int as newest_msg_age_sec,
                EXTRACT(epoch FROM (NOW() - min(enqueued_at)))::int as oldest_msg_age_sec,
                NOW() as scrape_time
            FROM pgmq.%I
        ),
        all_metrics AS (
            SELECT CASE
                WHEN is_called THEN last_value ELSE 0
                END as total_messages
            FROM pgmq.%I
        )
        SELECT
            %L as queue_name,
            q_summary.queue_length,
            q_summary.newest_msg_age_sec,
            q_summary.oldest_msg_age_sec,
            all_metrics.total_messages,
            q_summary.scrape_time,
            q_summary.queue_visible_length,
            %L::bigint as default_partition_length
        FROM q_summary, all_metrics
        $QUERY$,
        qtable, qtable || '_msg_id_seq', queue_name, default_partition_length
    );
    EXECUTE query INTO result_row;
    RETURN result_row;
END;
$_$;


--
-- Name: metrics_all(); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.metrics_all() RETURNS SETOF pgmq.metrics_result
    LANGUAGE plpgsql
    AS $$
DECLARE
    row_name RECORD;
    result_row pgmq.metrics_result;
BEGIN
    FOR row_name IN SELECT queue_name FROM pgmq.meta LOOP
        result_row := pgmq.metrics(row_name.queue_name);
        RETURN NEXT result_row;
    END LOOP;
END;
$$;


--
-- Name: notify_queue_listeners(); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.notify_queue_listeners() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
  queue_name_extracted TEXT; -- Queue name extracted from trigger table name
  updated_count        INTEGER; -- Number of rows updated (0 or 1)
BEGIN
  queue_name_extracted := substring(TG_TABLE_NAME from 3);

  UPDATE pgmq.notify_insert_throttle
  SET last_notified_at = clock_timestamp()
  WHERE queue_name = queue_name_extracted
    AND (
      throttle_interval_ms = 0 -- No throttling configured
          OR clock_timestamp() - last_notified_at >=
             (throttle_interval_ms * INTERVAL '1 millisecond') -- Throttle interval has elapsed
    );

  -- Check how many rows were updated (will be 0 or 1)
  GET DIAGNOSTICS updated_count = ROW_COUNT;

  IF updated_count > 0 THEN
    PERFORM PG_NOTIFY('pgmq.' || TG_TABLE_NAME || '.' || TG_OP, NULL);
  END IF;

RETURN NEW;
END;
$$;


--
-- Name: pop(text, integer); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.pop(queue_name text, qty integer DEFAULT 1) RETURNS SETOF pgmq.message_record
    LANGUAGE plpgsql
    AS $_$
DECLARE
    sql TEXT;
    result pgmq.message_record;
    qtable TEXT := pgmq.format_table_name(queue_name, 'q');
BEGIN
    sql := FORMAT(
        $QUERY$
        WITH cte AS
            (
                SELECT msg_id
                FROM pgmq.%I
                WHERE vt <= clock_timestamp()
                ORDER BY msg_id ASC
                LIMIT $1
                FOR UPDATE SKIP LOCKED
            )
        DELETE from pgmq.%I
        WHERE msg_id IN (select msg_id from cte)
        RETURNING msg_id, read_ct, enqueued_at, last_read_at, vt, message, headers;
        $QUERY$,
        qtable, qtable
    );
    RETURN QUERY EXECUTE sql USING qty;
END;
$_$;


--
-- Name: purge_queue(text); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.purge_queue(queue_name text) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
DECLARE
  deleted_count INTEGER;
  qtable TEXT := pgmq.format_table_name(queue_name, 'q');
BEGIN
  -- Get the row count before truncating
  EXECUTE format('SELECT count(*) FROM pgmq.%I', qtable) INTO deleted_count;

  -- Use TRUNCATE for better performance on large tables
  EXECUTE format('TRUNCATE TABLE pgmq.%I', qtable);

  -- Return the number of purged rows
  RETURN deleted_count;
END
$$;


--
-- Name: read(text, integer, integer, jsonb); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.read(queue_name text, vt integer, qty integer, conditional jsonb DEFAULT '{}'::jsonb) RETURNS SETOF pgmq.message_record
    LANGUAGE plpgsql
    AS $_$
DECLARE
    sql TEXT;
    qtable TEXT := pgmq.format_table_name(queue_name, 'q');
BEGIN
    sql := FORMAT(
        $QUERY$
        WITH cte AS
        (
            SELECT msg_id
            FROM pgmq.%I
            WHERE vt <= clock_timestamp() AND CASE
                WHEN %L != '{}'::jsonb THEN (message @> %2$L)::integer
                ELSE 1
            END = 1
            ORDER BY msg_id ASC
            LIMIT $1
            FOR UPDATE SKIP LOCKED
        )
        UPDATE pgmq.%I m
        SET
            last_read_at = clock_timestamp(),
            vt = clock_timestamp() + %L,
            read_ct = read_ct + 1
        FROM cte
        WHERE m.msg_id = cte.msg_id
        RETURNING m.msg_id, m.read_ct, m.enqueued_at, m.last_read_at, m.vt, m.message, m.headers;
        $QUERY$,
        qtable, conditional, qtable, make_interval(secs => vt)
    );
    RETURN QUERY EXECUTE sql USING qty;
END;
$_$;


--
-- Name: read_grouped(text, integer, integer); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.read_grouped(queue_name text, vt integer, qty integer) RETURNS SETOF pgmq.message_record
    LANGUAGE plpgsql
    AS $_$
DECLARE
    sql TEXT;
    qtable TEXT := pgmq.format_table_name(queue_name, 'q');
BEGIN
    sql := FORMAT(
        $QUERY$
        WITH fifo_groups AS (
            -- Find the minimum msg_id for each FIFO group that's ready to be processed
            SELECT
                COALESCE(headers->>'x-pgmq-group', '_default_fifo_group') as fifo_key,
                MIN(msg_id) as min_msg_id
            FROM pgmq.%I
            WHERE vt <= clock_timestamp()
            GROUP BY COALESCE(headers->>'x-pgmq-group', '_default_fifo_group')
        ),
        locked_groups AS (
            -- Lock the first available message in each FIFO group
            SELECT
                m.msg_id,
                fg.fifo_key
            FROM pgmq.%I m
            INNER JOIN fifo_groups fg ON
                COALESCE(m.headers->>'x-pgmq-group', '_default_fifo_group') = fg.fifo_key
                AND m.msg_id = fg.min_msg_id
            WHERE m.vt <= clock_timestamp()
            ORDER BY m.msg_id ASC
            FOR UPDATE SKIP LOCKED
        ),
        group_priorities AS (
            -- Assign priority to groups based on their oldest message
            SELECT
                fifo_key,
                msg_id as min_msg_id,
                ROW_NUMBER() OVER (ORDER BY msg_id) as group_priority
            FROM locked_groups
        ),
        filtered_groups as (
            SELECT * FROM group_priorities gp
            WHERE NOT EXISTS (
                -- Ensure no earlier message in this group is currently being processed
                SELECT 1
                FROM pgmq.%I m2
                WHERE COALESCE(m2.headers->>'x-pgmq-group', '_default_fifo_group') = gp.fifo_key
                AND m2.vt > clock_timestamp()
                AND m2.msg_id < gp.min_msg_id
            )
        ),
        available_messages as (
            SELECT gp.fifo_key, t.msg_id,gp.group_priority,
                ROW_NUMBER() OVER (PARTITION BY gp.fifo_key ORDER BY t.msg_id) as msg_rank_in_group
            FROM filtered_groups gp
            CROSS JOIN LATERAL (
                SELECT *
                FROM pgmq.%I t
                WHERE COALESCE(t.headers->>'x-pgmq-group', '_default_fifo_group') = gp.fifo_key
                AND t.vt <= clock_timestamp()
                ORDER BY msg_id
                LIMIT $1  -- tip to limit query impact, we know we need at most qty in each group
            ) t
            ORDER BY gp.group_priority
        ),
        batch_selection AS (
            -- Select messages to fill batch, prioritizing earliest group
            SELECT
                msg_id,
                ROW_NUMBER() OVER (ORDER BY group_priority, msg_rank_in_group) as overall_rank
            FROM available_messages
        ),
        selected_messages AS (
            -- Limit to requested quantity
            SELECT msg_id
            FROM batch_selection
            WHERE overall_rank <= $1
            ORDER BY msg_id
            FOR UPDATE SKIP LOCKED
        )
        UPDATE pgmq.%I m
        SET
            vt = clock_timestamp() + %L,
            read_ct = read_ct + 1,
            last_read_at = clock_timestamp()
        FROM selected_messages sm
        WHERE m.msg_id = sm.msg_id
        RETURNING m.msg_id, m.read_ct, m.enqueued_at, m.last_read_at, m.vt, m.message, m.headers;
        $QUERY$,
        qtable, qtable, qtable, qtable, qtable, make_interval(secs => vt)
    );
    RETURN QUERY EXECUTE sql USING qty;
END;
$_$;


--
-- Name: read_grouped_head(text, integer, integer); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.read_grouped_head(queue_name text, vt integer, qty integer) RETURNS SETOF pgmq.message_record
    LANGUAGE plpgsql
    AS $_$
DECLARE
    sql TEXT;
    qtable TEXT := pgmq.format_table_name(queue_name, 'q');
BEGIN
    sql := FORMAT(
        $QUERY$
        WITH fifo_groups AS (
            -- Determine the absolute head (oldest) message id per FIFO group, regardless of visibility
            SELECT
                COALESCE(headers->>'x-pgmq-group', '_default_fifo_group') AS fifo_key,
                MIN(msg_id) AS head_msg_id
            FROM pgmq.%1$I
            GROUP BY COALESCE(headers->>'x-pgmq-group', '_default_fifo_group')
        ),
        selected_messages AS (
            -- Take at most 1 message per group
            SELECT g.head_msg_id msg_id
            FROM fifo_groups g
            JOIN pgmq.%1$I q ON q.msg_id = g.head_msg_id
	        WHERE q.vt <= clock_timestamp()
            ORDER BY q.msg_id
            LIMIT $1
            FOR UPDATE SKIP LOCKED
        )
        UPDATE pgmq.%1$I m
        SET
            vt = clock_timestamp() + %2$L,
            read_ct = read_ct + 1,
            last_read_at = clock_timestamp()
        FROM selected_messages sm
        WHERE m.msg_id = sm.msg_id
        RETURNING m.msg_id, m.read_ct, m.enqueued_at, m.last_read_at, m.vt, m.message, m.headers;
        $QUERY$,
        qtable, make_interval(secs => vt)
    );
    RETURN QUERY EXECUTE sql USING qty;
END;
$_$;


--
-- Name: read_grouped_head_with_poll(text, integer, integer, integer, integer); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.read_grouped_head_with_poll(queue_name text, vt integer, qty integer, max_poll_seconds integer DEFAULT 5, poll_interval_ms integer DEFAULT 100) RETURNS SETOF pgmq.message_record
    LANGUAGE plpgsql
    AS $$
DECLARE
    r pgmq.message_record;
    stop_at TIMESTAMPTZ;
BEGIN
    stop_at := clock_timestamp() + make_interval(secs => max_poll_seconds);
    LOOP
      IF clock_timestamp() >= stop_at THEN
        RETURN;
      END IF;

      FOR r IN
        SELECT * FROM pgmq.read_grouped_head(queue_name, vt, qty)
      LOOP
        RETURN NEXT r;
      END LOOP;
      IF FOUND THEN
        RETURN;
      ELSE
        PERFORM pg_sleep(poll_interval_ms::numeric / 1000);
      END IF;
    END LOOP;
END;
$$;


--
-- Name: read_grouped_rr(text, integer, integer); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.read_grouped_rr(queue_name text, vt integer, qty integer) RETURNS SETOF pgmq.message_record
    LANGUAGE plpgsql
    AS $_$
DECLARE
    sql TEXT;
    qtable TEXT := pgmq.format_table_name(queue_name, 'q');
BEGIN
    sql := FORMAT(
        $QUERY$
        WITH fifo_groups AS (
            -- Determine the absolute head (oldest) message id per FIFO group, regardless of visibility
            SELECT
                COALESCE(headers->>'x-pgmq-group', '_default_fifo_group') AS fifo_key,
                MIN(msg_id) AS head_msg_id
            FROM pgmq.%1$I
            GROUP BY COALESCE(headers->>'x-pgmq-group', '_default_fifo_group')
        ),
        eligible_groups AS (
            -- Only groups whose head message is currently visible
            -- Acquire a transaction-level advisory lock per group to prevent concurrent selection
            SELECT
                g.fifo_key,
                g.head_msg_id,
                ROW_NUMBER() OVER (ORDER BY g.head_msg_id) AS group_priority
            FROM fifo_groups g
            JOIN pgmq.%2$I h ON h.msg_id = g.head_msg_id
            WHERE h.vt <= clock_timestamp()
              AND pg_try_advisory_xact_lock(pg_catalog.hashtextextended(g.fifo_key, 0))
        ),
        available_messages AS (
            -- All currently visible messages starting at the head for each eligible group
            SELECT
                m.msg_id,
                eg.group_priority,
                ROW_NUMBER() OVER (
                    PARTITION BY eg.fifo_key
                    ORDER BY m.msg_id
                ) AS msg_rank_in_group
            FROM pgmq.%3$I m
            JOIN eligible_groups eg
              ON COALESCE(m.headers->>'x-pgmq-group', '_default_fifo_group') = eg.fifo_key
            WHERE m.vt <= clock_timestamp()
              AND m.msg_id >= eg.head_msg_id
        ),
        ordered_messages AS (
            -- Layered round-robin: take rank 1 of all groups by group_priority, then rank 2, etc.
            -- Assign selection order before locking
            SELECT msg_id, ROW_NUMBER() OVER (ORDER BY msg_rank_in_group, group_priority) as selection_order
            FROM available_messages
        ),
        selected_messages AS (
            -- Lock the messages in the correct order, preserving selection_order
            SELECT om.msg_id, om.selection_order
            FROM ordered_messages om
            JOIN pgmq.%4$I m ON m.msg_id = om.msg_id
            WHERE om.selection_order <= $1
            ORDER BY om.selection_order
            FOR UPDATE OF m SKIP LOCKED
        ),
        updated_messages AS (
            UPDATE pgmq.%5$I m
            SET
                vt = clock_timestamp() + %6$L,
                read_ct = read_ct + 1,
                last_read_at = clock_timestamp()
            FROM selected_messages sm
            WHERE m.msg_id = sm.msg_id
              AND m.vt <= clock_timestamp() -- final guard to avoid duplicate reads under races
            RETURNING m.msg_id, m.read_ct, m.enqueued_at, m.last_read_at, m.vt, m.message, m.headers, sm.selection_order
        )
        SELECT msg_id, read_ct, enqueued_at, last_read_at, vt, message, headers
        FROM updated_messages
        ORDER BY selection_order;
        $QUERY$,
        qtable, qtable, qtable, qtable, qtable, make_interval(secs => vt)
    );
    RETURN QUERY EXECUTE sql USING qty;
END;
$_$;


--
-- Name: read_grouped_rr_with_poll(text, integer, integer, integer, integer); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.read_grouped_rr_with_poll(queue_name text, vt integer, qty integer, max_poll_seconds integer DEFAULT 5, poll_interval_ms integer DEFAULT 100) RETURNS SETOF pgmq.message_record
    LANGUAGE plpgsql
    AS $$
DECLARE
    r pgmq.message_record;
    stop_at TIMESTAMP;
BEGIN
    stop_at := clock_timestamp() + make_interval(secs => max_poll_seconds);
    LOOP
      IF (SELECT clock_timestamp() >= stop_at) THEN
        RETURN;
      END IF;

      FOR r IN
        SELECT * FROM pgmq.read_grouped_rr(queue_name, vt, qty)
      LOOP
        RETURN NEXT r;
      END LOOP;
      IF FOUND THEN
        RETURN;
      ELSE
        PERFORM pg_sleep(poll_interval_ms::numeric / 1000);
      END IF;
    END LOOP;
END;
$$;


--
-- Name: read_grouped_with_poll(text, integer, integer, integer, integer); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.read_grouped_with_poll(queue_name text, vt integer, qty integer, max_poll_seconds integer DEFAULT 5, poll_interval_ms integer DEFAULT 100) RETURNS SETOF pgmq.message_record
    LANGUAGE plpgsql
    AS $$
DECLARE
    r pgmq.message_record;
    stop_at TIMESTAMP;
BEGIN
    stop_at := clock_timestamp() + make_interval(secs => max_poll_seconds);
    LOOP
      IF (SELECT clock_timestamp() >= stop_at) THEN
        RETURN;
      END IF;

      FOR r IN
        SELECT * FROM pgmq.read_grouped(queue_name, vt, qty)
      LOOP
        RETURN NEXT r;
      END LOOP;
      IF FOUND THEN
        RETURN;
      ELSE
        PERFORM pg_sleep(poll_interval_ms::numeric / 1000);
      END IF;
    END LOOP;
END;
$$;


--
-- Name: read_with_poll(text, integer, integer, integer, integer, jsonb); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.read_with_poll(queue_name text, vt integer, qty integer, max_poll_seconds integer DEFAULT 5, poll_interval_ms integer DEFAULT 100, conditional jsonb DEFAULT '{}'::jsonb) RETURNS SETOF pgmq.message_record
    LANGUAGE plpgsql
    AS $_$
DECLARE
    r pgmq.message_record;
    stop_at TIMESTAMP;
    sql TEXT;
    qtable TEXT := pgmq.format_table_name(queue_name, 'q');
BEGIN
    stop_at := clock_timestamp() + make_interval(secs => max_poll_seconds);
    LOOP
      IF (SELECT clock_timestamp() >= stop_at) THEN
        RETURN;
      END IF;

      sql := FORMAT(
          $QUERY$
          WITH cte AS
          (
              SELECT msg_id
              FROM pgmq.%I
              WHERE vt <= clock_timestamp() AND CASE
                  WHEN %L != '{}'::jsonb THEN (message @> %2$L)::integer
                  ELSE 1
              END = 1
              ORDER BY msg_id ASC
              LIMIT $1
              FOR UPDATE SKIP LOCKED
          )
          UPDATE pgmq.%I m
          SET
              last_read_at = clock_timestamp(),
              vt = clock_timestamp() + %L,
              read_ct = read_ct + 1
          FROM cte
          WHERE m.msg_id = cte.msg_id
          RETURNING m.msg_id, m.read_ct, m.enqueued_at, m.last_read_at, m.vt, m.message, m.headers;
          $QUERY$,
          qtable, conditional, qtable, make_interval(secs => vt)
      );

      FOR r IN
        EXECUTE sql USING qty
      LOOP
        RETURN NEXT r;
      END LOOP;
      IF FOUND THEN
        RETURN;
      ELSE
        PERFORM pg_sleep(poll_interval_ms::numeric / 1000);
      END IF;
    END LOOP;
END;
$_$;


--
-- Name: send(text, jsonb); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.send(queue_name text, msg jsonb) RETURNS SETOF bigint
    LANGUAGE sql
    AS $$
    SELECT * FROM pgmq.send(queue_name, msg, NULL, clock_timestamp());
$$;


--
-- Name: send(text, jsonb, integer); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.send(queue_name text, msg jsonb, delay integer) RETURNS SETOF bigint
    LANGUAGE sql
    AS $$
    SELECT * FROM pgmq.send(queue_name, msg, NULL, clock_timestamp() + make_interval(secs => delay));
$$;


--
-- Name: send(text, jsonb, jsonb); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.send(queue_name text, msg jsonb, headers jsonb) RETURNS SETOF bigint
    LANGUAGE sql
    AS $$
    SELECT * FROM pgmq.send(queue_name, msg, headers, clock_timestamp());
$$;


--
-- Name: send(text, jsonb, timestamp with time zone); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.send(queue_name text, msg jsonb, delay timestamp with time zone) RETURNS SETOF bigint
    LANGUAGE sql
    AS $$
    SELECT * FROM pgmq.send(queue_name, msg, NULL, delay);
$$;


--
-- Name: send(text, jsonb, jsonb, integer); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.send(queue_name text, msg jsonb, headers jsonb, delay integer) RETURNS SETOF bigint
    LANGUAGE sql
    AS $$
    SELECT * FROM pgmq.send(queue_name, msg, headers, clock_timestamp() + make_interval(secs => delay));
$$;


--
-- Name: send(text, jsonb, jsonb, timestamp with time zone); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.send(queue_name text, msg jsonb, headers jsonb, delay timestamp with time zone) RETURNS SETOF bigint
    LANGUAGE plpgsql
    AS $_$
DECLARE
    sql TEXT;
    qtable TEXT := pgmq.format_table_name(queue_name, 'q');
BEGIN
    sql := FORMAT(
            $QUERY$
        INSERT INTO pgmq.%I (vt, message, headers)
        VALUES ($2, $1, $3)
        RETURNING msg_id;
        $QUERY$,
            qtable
           );
    RETURN QUERY EXECUTE sql USING msg, delay, headers;
END;
$_$;


--
-- Name: send_batch(text, jsonb[]); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.send_batch(queue_name text, msgs jsonb[]) RETURNS SETOF bigint
    LANGUAGE sql
    AS $$
    SELECT * FROM pgmq.send_batch(queue_name, msgs, NULL, clock_timestamp());
$$;


--
-- Name: send_batch(text, jsonb[], jsonb[]); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.send_batch(queue_name text, msgs jsonb[], headers jsonb[]) RETURNS SETOF bigint
    LANGUAGE sql
    AS $$
    SELECT * FROM pgmq.send_batch(queue_name, msgs, headers, clock_timestamp());
$$;


--
-- Name: send_batch(text, jsonb[], integer); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.send_batch(queue_name text, msgs jsonb[], delay integer) RETURNS SETOF bigint
    LANGUAGE sql
    AS $$
    SELECT * FROM pgmq.send_batch(queue_name, msgs, NULL, clock_timestamp() + make_interval(secs => delay));
$$;


--
-- Name: send_batch(text, jsonb[], timestamp with time zone); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.send_batch(queue_name text, msgs jsonb[], delay timestamp with time zone) RETURNS SETOF bigint
    LANGUAGE sql
    AS $$
    SELECT * FROM pgmq.send_batch(queue_name, msgs, NULL, delay);
$$;


--
-- Name: send_batch(text, jsonb[], jsonb[], integer); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.send_batch(queue_name text, msgs jsonb[], headers jsonb[], delay integer) RETURNS SETOF bigint
    LANGUAGE sql
    AS $$
    SELECT * FROM pgmq.send_batch(queue_name, msgs, headers, clock_timestamp() + make_interval(secs => delay));
$$;


--
-- Name: send_batch(text, jsonb[], jsonb[], timestamp with time zone); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.send_batch(queue_name text, msgs jsonb[], headers jsonb[], delay timestamp with time zone) RETURNS SETOF bigint
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM pgmq._validate_batch_params(msgs, headers);
    RETURN QUERY SELECT * FROM pgmq._send_batch(queue_name, msgs, headers, delay);
END;
$$;


--
-- Name: send_batch_topic(text, jsonb[]); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.send_batch_topic(routing_key text, msgs jsonb[]) RETURNS TABLE(queue_name text, msg_id bigint)
    LANGUAGE sql
    AS $$
    SELECT * FROM pgmq.send_batch_topic(routing_key, msgs, NULL, clock_timestamp());
$$;


--
-- Name: send_batch_topic(text, jsonb[], jsonb[]); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.send_batch_topic(routing_key text, msgs jsonb[], headers jsonb[]) RETURNS TABLE(queue_name text, msg_id bigint)
    LANGUAGE sql
    AS $$
    SELECT * FROM pgmq.send_batch_topic(routing_key, msgs, headers, clock_timestamp());
$$;


--
-- Name: send_batch_topic(text, jsonb[], integer); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.send_batch_topic(routing_key text, msgs jsonb[], delay integer) RETURNS TABLE(queue_name text, msg_id bigint)
    LANGUAGE sql
    AS $$
    SELECT * FROM pgmq.send_batch_topic(routing_key, msgs, NULL, clock_timestamp() + make_interval(secs => delay));
$$;


--
-- Name: send_batch_topic(text, jsonb[], timestamp with time zone); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.send_batch_topic(routing_key text, msgs jsonb[], delay timestamp with time zone) RETURNS TABLE(queue_name text, msg_id bigint)
    LANGUAGE sql
    AS $$
    SELECT * FROM pgmq.send_batch_topic(routing_key, msgs, NULL, delay);
$$;


--
-- Name: send_batch_topic(text, jsonb[], jsonb[], integer); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.send_batch_topic(routing_key text, msgs jsonb[], headers jsonb[], delay integer) RETURNS TABLE(queue_name text, msg_id bigint)
    LANGUAGE sql
    AS $$
    SELECT * FROM pgmq.send_batch_topic(routing_key, msgs, headers, clock_timestamp() + make_interval(secs => delay));
$$;


--
-- Name: send_batch_topic(text, jsonb[], jsonb[], timestamp with time zone); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.send_batch_topic(routing_key text, msgs jsonb[], headers jsonb[], delay timestamp with time zone) RETURNS TABLE(queue_name text, msg_id bigint)
    LANGUAGE plpgsql
    AS $$
DECLARE
    b RECORD;
BEGIN
    PERFORM pgmq.validate_routing_key(routing_key);

    -- Validate batch parameters once (not per queue)
    PERFORM pgmq._validate_batch_params(msgs, headers);

    -- Filter matching patterns in SQL for better performance (uses index)
    -- Any failure will rollback the entire transaction
    FOR b IN
        SELECT DISTINCT tb.queue_name
        FROM pgmq.topic_bindings tb
        WHERE routing_key ~ tb.compiled_regex
        ORDER BY tb.queue_name -- Deterministic ordering, deduplicated by queue_name
        LOOP
            -- Use private _send_batch to avoid redundant validation
            RETURN QUERY
            SELECT b.queue_name, batch_result.msg_id
            FROM pgmq._send_batch(b.queue_name, msgs, headers, delay) AS batch_result(msg_id);
        END LOOP;

    RETURN;
END;
$$;


--
-- Name: send_topic(text, jsonb); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.send_topic(routing_key text, msg jsonb) RETURNS integer
    LANGUAGE plpgsql
    AS $$
BEGIN
    RETURN pgmq.send_topic(routing_key, msg, NULL, 0);
END;
$$;


--
-- Name: send_topic(text, jsonb, integer); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.send_topic(routing_key text, msg jsonb, delay integer) RETURNS integer
    LANGUAGE plpgsql
    AS $$
BEGIN
    RETURN pgmq.send_topic(routing_key, msg, NULL, delay);
END;
$$;


--
-- Name: send_topic(text, jsonb, jsonb, integer); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.send_topic(routing_key text, msg jsonb, headers jsonb, delay integer) RETURNS integer
    LANGUAGE plpgsql
    AS $$
DECLARE
    b             RECORD;
    matched_count integer := 0;
BEGIN
    PERFORM pgmq.validate_routing_key(routing_key);

    IF msg IS NULL THEN
        RAISE EXCEPTION 'msg cannot be NULL';
    END IF;

    IF delay < 0 THEN
        RAISE EXCEPTION 'delay cannot be negative, got: %', delay;
    END IF;

    -- Filter matching patterns in SQL for better performance (uses index)
    -- Any failure will rollback the entire transaction
    FOR b IN
        SELECT DISTINCT tb.queue_name
        FROM pgmq.topic_bindings tb
        WHERE routing_key ~ tb.compiled_regex
        ORDER BY tb.queue_name -- Deterministic ordering, deduplicated by queue_name
        LOOP
            PERFORM pgmq.send(b.queue_name, msg, headers, delay);
            matched_count := matched_count + 1;
        END LOOP;

    RETURN matched_count;
END;
$$;


--
-- Name: set_vt(text, bigint[], integer); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.set_vt(queue_name text, msg_ids bigint[], vt integer) RETURNS SETOF pgmq.message_record
    LANGUAGE sql
    AS $$
    SELECT * FROM pgmq.set_vt(queue_name, msg_ids, clock_timestamp() + make_interval(secs => vt));
$$;


--
-- Name: set_vt(text, bigint[], timestamp with time zone); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.set_vt(queue_name text, msg_ids bigint[], vt timestamp with time zone) RETURNS SETOF pgmq.message_record
    LANGUAGE plpgsql
    AS $_$
DECLARE
    sql TEXT;
    qtable TEXT := pgmq.format_table_name(queue_name, 'q');
BEGIN
    sql := FORMAT(
        $QUERY$
        UPDATE pgmq.%I
        SET vt = $1
        WHERE msg_id = ANY($2)
        RETURNING msg_id, read_ct, enqueued_at, last_read_at, vt, message, headers;
        $QUERY$,
        qtable
    );
    RETURN QUERY EXECUTE sql USING vt, msg_ids;
END;
$_$;


--
-- Name: set_vt(text, bigint, integer); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.set_vt(queue_name text, msg_id bigint, vt integer) RETURNS SETOF pgmq.message_record
    LANGUAGE sql
    AS $$
    SELECT * FROM pgmq.set_vt(queue_name, msg_id, clock_timestamp() + make_interval(secs => vt));
$$;


--
-- Name: set_vt(text, bigint, timestamp with time zone); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.set_vt(queue_name text, msg_id bigint, vt timestamp with time zone) RETURNS SETOF pgmq.message_record
    LANGUAGE plpgsql
    AS $_$
DECLARE
    sql TEXT;
    result pgmq.message_record;
    qtable TEXT := pgmq.format_table_name(queue_name, 'q');
BEGIN
    sql := FORMAT(
        $QUERY$
        UPDATE pgmq.%I
        SET vt = $1
        WHERE msg_id = $2
        RETURNING msg_id, read_ct, enqueued_at, last_read_at, vt, message, headers;
        $QUERY$, 
        qtable
    );
    RETURN QUERY EXECUTE sql USING vt, msg_id;
END;
$_$;


--
-- Name: test_routing(text); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.test_routing(routing_key text) RETURNS TABLE(pattern text, queue_name text, compiled_regex text)
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
    PERFORM pgmq.validate_routing_key(routing_key);
    RETURN QUERY
        SELECT b.pattern,
               b.queue_name,
               b.compiled_regex
        FROM pgmq.topic_bindings b
        WHERE routing_key ~ b.compiled_regex
        ORDER BY b.pattern;
END;
$$;


--
-- Name: unbind_topic(text, text); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.unbind_topic(pattern text, queue_name text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
    rows_deleted integer;
BEGIN
    IF pattern IS NULL OR pattern = '' THEN
        RAISE EXCEPTION 'pattern cannot be NULL or empty';
    END IF;

    IF queue_name IS NULL OR queue_name = '' THEN
        RAISE EXCEPTION 'queue_name cannot be NULL or empty';
    END IF;

    DELETE
    FROM pgmq.topic_bindings
    WHERE topic_bindings.pattern = unbind_topic.pattern
      AND topic_bindings.queue_name = unbind_topic.queue_name;

    GET DIAGNOSTICS rows_deleted = ROW_COUNT;

    IF rows_deleted > 0 THEN
        RETURN true;
    ELSE
        RETURN false;
    END IF;
END;
$$;


--
-- Name: update_notify_insert(text, integer); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.update_notify_insert(queue_name text, throttle_interval_ms integer) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF throttle_interval_ms < 0 THEN
        RAISE EXCEPTION 'throttle_interval_ms must be non-negative, got: %', throttle_interval_ms;
    END IF;

    IF NOT EXISTS (SELECT 1 FROM pgmq.meta WHERE meta.queue_name = update_notify_insert.queue_name) THEN
        RAISE EXCEPTION 'Queue "%" does not exist. Create the queue first using pgmq.create()', queue_name;
    END IF;

    IF NOT EXISTS (SELECT 1 FROM pgmq.notify_insert_throttle WHERE notify_insert_throttle.queue_name = update_notify_insert.queue_name) THEN
        RAISE EXCEPTION 'Queue "%" does not have notify_insert enabled. Enable it first using pgmq.enable_notify_insert()', queue_name;
    END IF;

    UPDATE pgmq.notify_insert_throttle
    SET throttle_interval_ms = update_notify_insert.throttle_interval_ms,
        last_notified_at = to_timestamp(0)
    WHERE notify_insert_throttle.queue_name = update_notify_insert.queue_name;
END;
$$;


--
-- Name: validate_queue_name(text); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.validate_queue_name(queue_name text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF length(queue_name) > 47 THEN
    -- complete table identifier must be <= 63
    -- https://www.postgresql.org/docs/17/sql-syntax-lexical.html#SQL-SYNTAX-IDENTIFIERS
    -- e.g. template_pgmq_q_my_queue is an identifier for my_queue when partitioned
    -- template_pgmq_q_ (16) + <a max length queue name> (47) = 63 
    RAISE EXCEPTION 'queue name is too long, maximum length is 47 characters';
  END IF;
END;
$$;


--
-- Name: validate_routing_key(text); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.validate_routing_key(routing_key text) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
BEGIN
    -- Valid routing key examples:
    --   "logs.error"
    --   "app.user-service.auth"
    --   "system_events.db.connection_failed"
    --
    -- Invalid routing key examples:
    --   ""                     - empty
    --   ".logs.error"          - starts with dot
    --   "logs.error."          - ends with dot
    --   "logs..error"          - consecutive dots
    --   "logs.error!"          - invalid character
    --   "logs error"           - space not allowed
    --   "logs.*"               - wildcards not allowed in routing keys

    IF routing_key IS NULL OR routing_key = '' THEN
        RAISE EXCEPTION 'routing_key cannot be NULL or empty';
    END IF;

    IF length(routing_key) > 255 THEN
        RAISE EXCEPTION 'routing_key length cannot exceed 255 characters, got % characters', length(routing_key);
    END IF;

    IF routing_key !~ '^[a-zA-Z0-9._-]+$' THEN
        RAISE EXCEPTION 'routing_key contains invalid characters. Only alphanumeric, dots, hyphens, and underscores are allowed. Got: %', routing_key;
    END IF;

    IF routing_key ~ '^\.' THEN
        RAISE EXCEPTION 'routing_key cannot start with a dot. Got: %', routing_key;
    END IF;

    IF routing_key ~ '\.$' THEN
        RAISE EXCEPTION 'routing_key cannot end with a dot. Got: %', routing_key;
    END IF;

    IF routing_key ~ '\.\.' THEN
        RAISE EXCEPTION 'routing_key cannot contain consecutive dots. Got: %', routing_key;
    END IF;

    RETURN true;
END;
$_$;


--
-- Name: validate_topic_pattern(text); Type: FUNCTION; Schema: pgmq; Owner: -
--

CREATE FUNCTION pgmq.validate_topic_pattern(pattern text) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
BEGIN
    -- Valid pattern examples:
    --   "logs.*"           - matches one segment after logs. (e.g., logs.error, logs.info)
    --   "logs.#"           - matches one or more segments after logs. (e.g., logs.error, logs.api.error)
    --   "*.error"          - matches one segment before .error (e.g., app.error, db.error)
    --   "#.error"          - matches one or more segments before .error (e.g., app.error, x.y.error)
    --   "app.*.#"          - mixed wildcards (one segment then one or more)
    --   "#"                - catch-all pattern, matches any routing key
    --
    -- Invalid pattern examples:
    --   ".logs.*"          - starts with dot
    --   "logs.*."          - ends with dot
    --   "logs..error"      - consecutive dots
    --   "logs.**"          - consecutive stars
    --   "logs.##"          - consecutive hashes
    --   "logs.*#"          - adjacent wildcards
    --   "logs.error!"      - invalid character

    IF pattern IS NULL OR pattern = '' THEN
        RAISE EXCEPTION 'pattern cannot be NULL or empty';
    END IF;

    IF length(pattern) > 255 THEN
        RAISE EXCEPTION 'pattern length cannot exceed 255 characters, got % characters', length(pattern);
    END IF;

    IF pattern !~ '^[a-zA-Z0-9._\-*#]+$' THEN
        RAISE EXCEPTION 'pattern contains invalid characters. Only alphanumeric, dots, hyphens, underscores, *, and # are allowed. Got: %', pattern;
    END IF;

    IF pattern ~ '^\.' THEN
        RAISE EXCEPTION 'pattern cannot start with a dot. Got: %', pattern;
    END IF;

    IF pattern ~ '\.$' THEN
        RAISE EXCEPTION 'pattern cannot end with a dot. Got: %', pattern;
    END IF;

    IF pattern ~ '\.\.' THEN
        RAISE EXCEPTION 'pattern cannot contain consecutive dots. Got: %', pattern;
    END IF;

    IF pattern ~ '\*\*' THEN
        RAISE EXCEPTION 'pattern cannot contain consecutive stars (**). Use # for multi-segment matching. Got: %', pattern;
    END IF;

    IF pattern ~ '##' THEN
        RAISE EXCEPTION 'pattern cannot contain consecutive hashes (##). A single # already matches zero or more segments. Got: %', pattern;
    END IF;

    IF pattern ~ '\*#' OR pattern ~ '#\*' THEN
        RAISE EXCEPTION 'pattern cannot contain adjacent wildcards (*# or #*). Separate wildcards with dots. Got: %', pattern;
    END IF;

    RETURN true;
END;
$_$;


--
-- Name: frontend_account_changed(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.frontend_account_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    perform pg_notify('kcoord_sessions', 'account:' || old.id);
    return null;
end $$;


--
-- Name: frontend_session_ended(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.frontend_session_ended() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    perform pg_notify('kcoord_sessions', 'session:' || encode(sha256(convert_to(old.session_key, 'UTF8')), 'hex'));
    return null;
end $$;


--
-- Name: kcoord_audit_append(bigint, text, text, text, text, text, text, text, text, text, text, text, text, text, text, integer); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.kcoord_audit_append(clock bigint, kind text, principal text, principal_id text, address text, request_id text, door text, act text, resource text, name text, before text, after text, reason text, result text, error text, count integer) RETURNS void
    LANGUAGE sql
    AS $$
    insert into kcoord_auditpending (at, kind, principal, principal_id, address, request_id, door, act, resource, name,
                                     before, after, reason, result, error, count)
    values (coalesce(clock, (extract(epoch from clock_timestamp()) * 1000)::bigint), kind, principal, principal_id,
            address, request_id, door, act, resource, name, before, after, reason, result, error, count)
$$;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: kcoord_auditrecord; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.kcoord_auditrecord (
    seq bigint NOT NULL,
    prev bytea NOT NULL,
    hash bytea NOT NULL,
    at bigint NOT NULL,
    kind text NOT NULL,
    principal text NOT NULL,
    principal_id text NOT NULL,
    address text NOT NULL,
    request_id text NOT NULL,
    door text NOT NULL,
    act text NOT NULL,
    resource text NOT NULL,
    name text NOT NULL,
    before text,
    after text,
    reason text NOT NULL,
    result text NOT NULL,
    error text NOT NULL,
    count integer NOT NULL
);


--
-- Name: kcoord_audit_digest(public.kcoord_auditrecord); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.kcoord_audit_digest(r public.kcoord_auditrecord) RETURNS bytea
    LANGUAGE sql IMMUTABLE
    AS $$
    select sha256(convert_to(
        E'kcoord audit 1\n'
        || kcoord_audit_field('seq', r.seq::text)
        || kcoord_audit_field('prev', encode(r.prev, 'hex'))
        || kcoord_audit_field('at', r.at::text)
        || kcoord_audit_field('kind', r.kind)
        || kcoord_audit_field('principal', r.principal)
        || kcoord_audit_field('principal_id', r.principal_id)
        || kcoord_audit_field('address', r.address)
        || kcoord_audit_field('request_id', r.request_id)
        || kcoord_audit_field('door', r.door)
        || kcoord_audit_field('act', r.act)
        || kcoord_audit_field('resource', r.resource)
        || kcoord_audit_field('name', r.name)
        || kcoord_audit_field('before', r.before)
        || kcoord_audit_field('after', r.after)
        || kcoord_audit_field('reason', r.reason)
        || kcoord_audit_field('result', r.result)
        || kcoord_audit_field('error', r.error)
        || kcoord_audit_field('count', r.count::text),
        'UTF8'))
$$;


--
-- Name: kcoord_audit_field(text, text); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.kcoord_audit_field(name text, value text) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
    select name || ' ' || coalesce(octet_length(convert_to(value, 'UTF8')) || ':' || value, '-') || E'\n'
$$;


--
-- Name: kcoord_audit_guard(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.kcoord_audit_guard() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    if tg_op = 'DELETE' and current_setting('kcoord.audit_trim', true) = 'on' then
        return old;
    end if;
    raise exception 'the audit is append-only: % of kcoord_auditrecord is refused', tg_op
        using errcode = 'insufficient_privilege',
              hint = 'The setting audit.retention.ms says how long records are kept.';
end $$;


--
-- Name: kcoord_audit_seal(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.kcoord_audit_seal() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    head kcoord_auditchain;
    sealed kcoord_auditrecord;
begin
    select * into strict head from kcoord_auditchain where id = 1 for update;
    sealed.seq := head.seq + 1;
    sealed.prev := head.hash;
    sealed.at := new.at;
    sealed.kind := new.kind;
    sealed.principal := new.principal;
    sealed.principal_id := new.principal_id;
    sealed.address := new.address;
    sealed.request_id := new.request_id;
    sealed.door := new.door;
    sealed.act := new.act;
    sealed.resource := new.resource;
    sealed.name := new.name;
    sealed.before := new.before;
    sealed.after := new.after;
    sealed.reason := new.reason;
    sealed.result := new.result;
    sealed.error := new.error;
    sealed.count := new.count;
    sealed.hash := kcoord_audit_digest(sealed);
    insert into kcoord_auditrecord values (sealed.*);
    update kcoord_auditchain set seq = sealed.seq, hash = sealed.hash where id = 1;
    delete from kcoord_auditpending where id = new.id;
    return null;
end $$;


--
-- Name: kcoord_audit_trim(bigint, bigint); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.kcoord_audit_trim(before bigint, most bigint, OUT gone bigint, OUT through bigint, OUT head bytea) RETURNS record
    LANGUAGE plpgsql
    AS $$
declare
    oldest bigint;
begin
    perform 1 from kcoord_auditchain where id = 1 for update;
    select min(r.seq) into oldest from kcoord_auditrecord r;
    select coalesce(min(r.seq) - 1, (select max(r.seq) from kcoord_auditrecord r)) into through
    from kcoord_auditrecord r
    where r.at >= kcoord_audit_trim.before;
    through := least(through, oldest + most - 1);
    select r.hash into head from kcoord_auditrecord r where r.seq = through;
    if head is null then
        gone := 0;
        return;
    end if;
    perform set_config('kcoord.audit_trim', 'on', true);
    delete from kcoord_auditrecord r where r.seq <= through;
    get diagnostics gone = row_count;
    perform set_config('kcoord.audit_trim', '', true);
    update kcoord_auditchain
    set removed_through = through, removed_hash = head, removed = removed + gone,
        removed_at = (extract(epoch from clock_timestamp()) * 1000)::bigint
    where id = 1;
end $$;


--
-- Name: kcoord_quotas_changed(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.kcoord_quotas_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    perform pg_notify('kcoord_quotas', '');
    return null;
end $$;


--
-- Name: kcoord_sees(text, text[], text[], text[], text[]); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.kcoord_sees(name text, names text[], prefixes text[], denied text[], denied_prefixes text[]) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    select ('' = any(prefixes) or name = any(names) or name ^@ any(prefixes))
           and not (name = any(denied) or name ^@ any(denied_prefixes))
$$;


--
-- Name: kcoord_tokens_changed(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.kcoord_tokens_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    perform pg_notify('kcoord_tokens', '');
    return null;
end $$;


--
-- Name: meta; Type: TABLE; Schema: pgmq; Owner: -
--

CREATE TABLE pgmq.meta (
    queue_name character varying NOT NULL,
    is_partitioned boolean NOT NULL,
    is_unlogged boolean NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);


--
-- Name: notify_insert_throttle; Type: TABLE; Schema: pgmq; Owner: -
--

CREATE UNLOGGED TABLE pgmq.notify_insert_throttle (
    queue_name character varying NOT NULL,
    throttle_interval_ms integer DEFAULT 0 NOT NULL,
    last_notified_at timestamp with time zone DEFAULT to_timestamp((0)::double precision) NOT NULL
);


--
-- Name: topic_bindings; Type: TABLE; Schema: pgmq; Owner: -
--

CREATE TABLE pgmq.topic_bindings (
    pattern text NOT NULL,
    queue_name text NOT NULL,
    bound_at timestamp with time zone DEFAULT now() NOT NULL,
    compiled_regex text GENERATED ALWAYS AS ((('^'::text || replace(replace(regexp_replace(pattern, '([.+?{}()|\[\]\\^$])'::text, '\\\1'::text, 'g'::text), '*'::text, '[^.]+'::text), '#'::text, '.*'::text)) || '$'::text)) STORED
);


--
-- Name: auth_group; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.auth_group (
    id integer NOT NULL,
    name character varying(150) NOT NULL
);


--
-- Name: auth_group_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.auth_group ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_group_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: auth_group_permissions; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.auth_group_permissions (
    id bigint NOT NULL,
    group_id integer NOT NULL,
    permission_id integer NOT NULL
);


--
-- Name: auth_group_permissions_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.auth_group_permissions ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_group_permissions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: auth_permission; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.auth_permission (
    id integer NOT NULL,
    name character varying(255) NOT NULL,
    content_type_id integer NOT NULL,
    codename character varying(100) NOT NULL
);


--
-- Name: auth_permission_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.auth_permission ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_permission_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: auth_user; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.auth_user (
    id integer NOT NULL,
    password character varying(128) NOT NULL,
    last_login timestamp with time zone,
    is_superuser boolean NOT NULL,
    username character varying(150) NOT NULL,
    first_name character varying(150) NOT NULL,
    last_name character varying(150) NOT NULL,
    email character varying(254) NOT NULL,
    is_staff boolean NOT NULL,
    is_active boolean NOT NULL,
    date_joined timestamp with time zone NOT NULL
);


--
-- Name: auth_user_groups; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.auth_user_groups (
    id bigint NOT NULL,
    user_id integer NOT NULL,
    group_id integer NOT NULL
);


--
-- Name: auth_user_groups_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.auth_user_groups ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_user_groups_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: auth_user_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.auth_user ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_user_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: auth_user_user_permissions; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.auth_user_user_permissions (
    id bigint NOT NULL,
    user_id integer NOT NULL,
    permission_id integer NOT NULL
);


--
-- Name: auth_user_user_permissions_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.auth_user_user_permissions ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.auth_user_user_permissions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: django_admin_log; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.django_admin_log (
    id integer NOT NULL,
    action_time timestamp with time zone NOT NULL,
    object_id text,
    object_repr character varying(200) NOT NULL,
    action_flag smallint NOT NULL,
    change_message text NOT NULL,
    content_type_id integer,
    user_id integer NOT NULL,
    CONSTRAINT django_admin_log_action_flag_check CHECK ((action_flag >= 0))
);


--
-- Name: django_admin_log_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.django_admin_log ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.django_admin_log_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: django_celery_beat_clockedschedule; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.django_celery_beat_clockedschedule (
    id integer NOT NULL,
    clocked_time timestamp with time zone NOT NULL
);


--
-- Name: django_celery_beat_clockedschedule_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.django_celery_beat_clockedschedule ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.django_celery_beat_clockedschedule_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: django_celery_beat_crontabschedule; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.django_celery_beat_crontabschedule (
    id integer NOT NULL,
    minute character varying(240) NOT NULL,
    hour character varying(96) NOT NULL,
    day_of_week character varying(64) NOT NULL,
    day_of_month character varying(124) NOT NULL,
    month_of_year character varying(64) NOT NULL,
    timezone character varying(63) NOT NULL
);


--
-- Name: django_celery_beat_crontabschedule_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.django_celery_beat_crontabschedule ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.django_celery_beat_crontabschedule_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: django_celery_beat_intervalschedule; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.django_celery_beat_intervalschedule (
    id integer NOT NULL,
    every integer NOT NULL,
    period character varying(24) NOT NULL
);


--
-- Name: django_celery_beat_intervalschedule_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.django_celery_beat_intervalschedule ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.django_celery_beat_intervalschedule_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: django_celery_beat_periodictask; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.django_celery_beat_periodictask (
    id integer NOT NULL,
    name character varying(200) NOT NULL,
    task character varying(200) NOT NULL,
    args text NOT NULL,
    kwargs text NOT NULL,
    queue character varying(200),
    exchange character varying(200),
    routing_key character varying(200),
    expires timestamp with time zone,
    enabled boolean NOT NULL,
    last_run_at timestamp with time zone,
    total_run_count integer NOT NULL,
    date_changed timestamp with time zone NOT NULL,
    description text NOT NULL,
    crontab_id integer,
    interval_id integer,
    solar_id integer,
    one_off boolean NOT NULL,
    start_time timestamp with time zone,
    priority integer,
    headers text NOT NULL,
    clocked_id integer,
    expire_seconds integer,
    CONSTRAINT django_celery_beat_periodictask_expire_seconds_check CHECK ((expire_seconds >= 0)),
    CONSTRAINT django_celery_beat_periodictask_priority_check CHECK ((priority >= 0)),
    CONSTRAINT django_celery_beat_periodictask_total_run_count_check CHECK ((total_run_count >= 0))
);


--
-- Name: django_celery_beat_periodictask_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.django_celery_beat_periodictask ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.django_celery_beat_periodictask_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: django_celery_beat_periodictasks; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.django_celery_beat_periodictasks (
    ident smallint NOT NULL,
    last_update timestamp with time zone NOT NULL
);


--
-- Name: django_celery_beat_solarschedule; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.django_celery_beat_solarschedule (
    id integer NOT NULL,
    event character varying(24) NOT NULL,
    latitude numeric(9,6) NOT NULL,
    longitude numeric(9,6) NOT NULL
);


--
-- Name: django_celery_beat_solarschedule_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.django_celery_beat_solarschedule ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.django_celery_beat_solarschedule_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: django_content_type; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.django_content_type (
    id integer NOT NULL,
    app_label character varying(100) NOT NULL,
    model character varying(100) NOT NULL
);


--
-- Name: django_content_type_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.django_content_type ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.django_content_type_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: django_migrations; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.django_migrations (
    id bigint NOT NULL,
    app character varying(255) NOT NULL,
    name character varying(255) NOT NULL,
    applied timestamp with time zone NOT NULL
);


--
-- Name: django_migrations_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.django_migrations ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.django_migrations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: django_session; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.django_session (
    session_key character varying(40) NOT NULL,
    session_data text NOT NULL,
    expire_date timestamp with time zone NOT NULL
);


--
-- Name: frontend_provideridentity; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.frontend_provideridentity (
    id bigint NOT NULL,
    issuer character varying(500) NOT NULL,
    subject character varying(255) NOT NULL,
    user_id integer NOT NULL
);


--
-- Name: frontend_provideridentity_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.frontend_provideridentity ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.frontend_provideridentity_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: frontend_savedview; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.frontend_savedview (
    id bigint NOT NULL,
    name character varying(60) NOT NULL,
    query text NOT NULL,
    created_at bigint NOT NULL,
    owner_id integer NOT NULL
);


--
-- Name: frontend_savedview_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.frontend_savedview ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.frontend_savedview_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: frontend_signinattempt; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.frontend_signinattempt (
    key character varying(300) NOT NULL,
    failures integer NOT NULL,
    last_at bigint NOT NULL,
    CONSTRAINT frontend_signinattempt_failures_check CHECK ((failures >= 0))
);


--
-- Name: groups_assignment; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.groups_assignment (
    topic_id character varying(249) NOT NULL,
    topic character varying(249) NOT NULL,
    partition integer NOT NULL,
    member_id character varying(300) NOT NULL,
    generation_id integer NOT NULL,
    pending boolean DEFAULT false NOT NULL,
    group_id bigint NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.05', autovacuum_analyze_scale_factor='0.05');


--
-- Name: groups_clientsoftware; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.groups_clientsoftware (
    client_id character varying(255) NOT NULL,
    client_host character varying(255) NOT NULL,
    name character varying(128) NOT NULL,
    version character varying(128) NOT NULL,
    seen_at bigint NOT NULL
);


--
-- Name: groups_consumermember; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.groups_consumermember (
    id bigint NOT NULL,
    member_id character varying(300) NOT NULL,
    instance_id character varying(255),
    rack_id character varying(255),
    client_id character varying(255) NOT NULL,
    client_host character varying(255) NOT NULL,
    rebalance_timeout_ms bigint NOT NULL,
    subscribed_topic_names text[] NOT NULL,
    subscribed_topic_regex text NOT NULL,
    topic_rights character varying(64) DEFAULT ''::character varying NOT NULL,
    server_assignor character varying(255),
    classic_session_timeout_ms bigint,
    classic_protocol_names text[],
    classic_protocol_metadata bytea[],
    member_epoch integer NOT NULL,
    previous_member_epoch integer NOT NULL,
    state smallint NOT NULL,
    target jsonb NOT NULL,
    session_deadline bigint,
    session_armed_at bigint,
    rebalance_deadline bigint,
    rebalance_armed_at bigint,
    join_deadline bigint,
    join_armed_at bigint,
    sync_deadline bigint,
    sync_armed_at bigint,
    group_id bigint NOT NULL
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.05');


--
-- Name: groups_consumermember_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.groups_consumermember ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.groups_consumermember_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: groups_coordinatornode; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.groups_coordinatornode (
    id bigint NOT NULL,
    node_id character varying(255) NOT NULL,
    url character varying(500) NOT NULL,
    broker_id integer DEFAULT 0 NOT NULL,
    kafka_host character varying(255) DEFAULT ''::character varying NOT NULL,
    kafka_port integer DEFAULT 0 NOT NULL,
    version character varying(50) NOT NULL,
    started_at bigint NOT NULL,
    renewed_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    flushed_until bigint,
    ended_at bigint,
    end_reason character varying(16)
)
WITH (fillfactor='30', autovacuum_vacuum_threshold='500');


--
-- Name: groups_coordinatornode_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.groups_coordinatornode ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.groups_coordinatornode_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: groups_coordinatorpartition; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.groups_coordinatorpartition (
    partition integer NOT NULL,
    epoch bigint NOT NULL,
    gap bigint NOT NULL,
    state character varying(16) NOT NULL,
    state_since bigint NOT NULL,
    active_since bigint,
    load_ms bigint,
    owner_id bigint
)
WITH (fillfactor='50');


--
-- Name: groups_event; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.groups_event (
    id bigint NOT NULL,
    group_name character varying(255) NOT NULL,
    at bigint NOT NULL,
    kind character varying(40) NOT NULL,
    generation_id integer NOT NULL,
    member_id character varying(300),
    detail jsonb NOT NULL
);


--
-- Name: groups_event_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.groups_event ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.groups_event_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: groups_generationtopics; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.groups_generationtopics (
    group_id bigint NOT NULL,
    topics text[] NOT NULL
);


--
-- Name: groups_group; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.groups_group (
    id bigint NOT NULL,
    group_id character varying(255) NOT NULL,
    type character varying(16) NOT NULL,
    state character varying(32) NOT NULL,
    previous_state character varying(32) NOT NULL,
    state_since bigint NOT NULL,
    generation_id integer NOT NULL,
    protocol_type character varying(255),
    protocol_name character varying(255),
    leader_id character varying(300),
    new_member_added boolean NOT NULL,
    join_deadline bigint,
    join_delay_ms bigint,
    join_remaining_ms bigint,
    sync_deadline bigint,
    assignment_epoch integer DEFAULT 0 NOT NULL,
    assignment_timestamp bigint DEFAULT 0 NOT NULL,
    metadata_hash character varying(128) DEFAULT ''::character varying NOT NULL,
    metadata_version bigint DEFAULT '-1'::integer NOT NULL,
    resolution jsonb,
    jobs jsonb,
    partition integer,
    armed_gap bigint DEFAULT 0 NOT NULL,
    held_until bigint,
    held_by character varying(255),
    hold_reason text,
    wake_at bigint,
    version bigint NOT NULL,
    version_tag uuid DEFAULT gen_random_uuid() NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    CONSTRAINT groups_group_generation_positive CHECK ((generation_id >= 0)),
    CONSTRAINT groups_group_held_is_empty CHECK (((held_until IS NULL) OR ((held_by IS NOT NULL) AND ((state)::text = 'Empty'::text)))),
    CONSTRAINT groups_group_state_known CHECK (((((state)::text = ANY ((ARRAY['Empty'::character varying, 'PreparingRebalance'::character varying, 'CompletingRebalance'::character varying, 'Stable'::character varying, 'Dead'::character varying])::text[])) AND ((type)::text = 'classic'::text)) OR (((state)::text = ANY ((ARRAY['Empty'::character varying, 'Assigning'::character varying, 'Reconciling'::character varying, 'Stable'::character varying])::text[])) AND ((type)::text = 'consumer'::text))))
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.05', autovacuum_analyze_scale_factor='0.05');


--
-- Name: groups_group_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.groups_group ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.groups_group_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: groups_groupconfigoverride; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.groups_groupconfigoverride (
    id bigint NOT NULL,
    group_name character varying(255) NOT NULL,
    name character varying(100) NOT NULL,
    value text NOT NULL,
    updated_at bigint NOT NULL,
    updated_by character varying(255) NOT NULL
);


--
-- Name: groups_groupconfigoverride_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.groups_groupconfigoverride ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.groups_groupconfigoverride_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: groups_grouplabels; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.groups_grouplabels (
    id bigint NOT NULL,
    group_name character varying(255) NOT NULL,
    labels jsonb NOT NULL,
    updated_at bigint NOT NULL,
    updated_by character varying(255) NOT NULL
);


--
-- Name: groups_grouplabels_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.groups_grouplabels ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.groups_grouplabels_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: groups_member; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.groups_member (
    id bigint NOT NULL,
    member_id character varying(300) NOT NULL,
    instance_id character varying(255),
    client_id character varying(255) NOT NULL,
    client_host character varying(255) NOT NULL,
    session_timeout_ms bigint NOT NULL,
    rebalance_timeout_ms bigint NOT NULL,
    protocol_type character varying(255) NOT NULL,
    protocol_names text[] NOT NULL,
    protocol_metadata bytea[] NOT NULL,
    assignment bytea NOT NULL,
    is_new boolean NOT NULL,
    join_parked_until bigint,
    sync_parked_until bigint,
    pending_sync boolean NOT NULL,
    session_deadline bigint,
    last_heartbeat_at bigint,
    group_id bigint NOT NULL
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.05');


--
-- Name: groups_member_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.groups_member ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.groups_member_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: groups_partitionchange; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.groups_partitionchange (
    id bigint NOT NULL,
    at bigint NOT NULL,
    partition integer NOT NULL,
    epoch bigint NOT NULL,
    gap bigint NOT NULL,
    from_node character varying(255) NOT NULL,
    to_node character varying(255) NOT NULL,
    reason character varying(16) NOT NULL,
    gap_ms bigint
);


--
-- Name: groups_partitionchange_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.groups_partitionchange ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.groups_partitionchange_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: groups_pendingmember; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.groups_pendingmember (
    id bigint NOT NULL,
    member_id character varying(300) NOT NULL,
    deadline bigint NOT NULL,
    group_id bigint NOT NULL
);


--
-- Name: groups_pendingmember_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.groups_pendingmember ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.groups_pendingmember_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: groups_revision; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.groups_revision (
    subject character varying(32) NOT NULL,
    version bigint NOT NULL
);


--
-- Name: groups_topic; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.groups_topic (
    id bigint NOT NULL,
    name character varying(249) NOT NULL,
    topic_id uuid NOT NULL,
    partitions integer NOT NULL,
    labels jsonb NOT NULL,
    created_at bigint NOT NULL,
    CONSTRAINT groups_topic_partitions_check CHECK ((partitions >= 0)),
    CONSTRAINT groups_topic_partitions_min CHECK ((partitions >= 1))
);


--
-- Name: groups_topic_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.groups_topic ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.groups_topic_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: groups_watermark; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.groups_watermark (
    id bigint NOT NULL,
    partition integer NOT NULL,
    log_start_offset bigint NOT NULL,
    log_end_offset bigint NOT NULL,
    sampled_at bigint NOT NULL,
    topic_id bigint NOT NULL,
    CONSTRAINT groups_watermark_ordered CHECK (((log_end_offset >= log_start_offset) AND (log_start_offset >= 0))),
    CONSTRAINT groups_watermark_partition_check CHECK ((partition >= 0))
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.05');


--
-- Name: groups_watermark_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.groups_watermark ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.groups_watermark_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: kcoord_accessrule; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.kcoord_accessrule (
    id bigint NOT NULL,
    effect character varying(8) DEFAULT 'allow'::character varying NOT NULL,
    operation character varying(16) NOT NULL,
    resource character varying(16) NOT NULL,
    pattern character varying(8) NOT NULL,
    name character varying(255) NOT NULL,
    group_id integer,
    user_id integer,
    token_id bigint,
    CONSTRAINT kcoord_accessrule_one_holder CHECK ((((group_id IS NULL) AND (token_id IS NOT NULL) AND (user_id IS NULL)) OR ((group_id IS NULL) AND (token_id IS NULL) AND (user_id IS NOT NULL)) OR ((group_id IS NOT NULL) AND (token_id IS NULL) AND (user_id IS NULL))))
);


--
-- Name: kcoord_accessrule_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.kcoord_accessrule ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.kcoord_accessrule_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: kcoord_apitoken; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.kcoord_apitoken (
    id bigint NOT NULL,
    name character varying(200) NOT NULL,
    digest character varying(64) NOT NULL,
    prefix character varying(16) NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    last_used_at bigint,
    previous_digest character varying(64),
    previous_until bigint,
    owner_id integer
)
WITH (fillfactor='80');


--
-- Name: kcoord_apitoken_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.kcoord_apitoken ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.kcoord_apitoken_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: kcoord_auditchain; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.kcoord_auditchain (
    id smallint NOT NULL,
    seq bigint NOT NULL,
    hash bytea NOT NULL,
    removed_through bigint NOT NULL,
    removed_hash bytea NOT NULL,
    removed bigint NOT NULL,
    removed_at bigint,
    CONSTRAINT kcoord_auditchain_id_check CHECK ((id >= 0)),
    CONSTRAINT kcoord_auditchain_one_row CHECK ((id = 1))
);


--
-- Name: kcoord_auditpending; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.kcoord_auditpending (
    id bigint NOT NULL,
    at bigint NOT NULL,
    kind text NOT NULL,
    principal text NOT NULL,
    principal_id text NOT NULL,
    address text NOT NULL,
    request_id text NOT NULL,
    door text NOT NULL,
    act text NOT NULL,
    resource text NOT NULL,
    name text NOT NULL,
    before text,
    after text,
    reason text NOT NULL,
    result text NOT NULL,
    error text NOT NULL,
    count integer NOT NULL,
    CONSTRAINT kcoord_auditpending_count_check CHECK ((count > 0)),
    CONSTRAINT kcoord_auditpending_result_check CHECK ((result = ANY (ARRAY['done'::text, 'refused'::text])))
);


--
-- Name: kcoord_auditpending_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.kcoord_auditpending ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.kcoord_auditpending_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: kcoord_counter; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.kcoord_counter (
    name character varying(64) NOT NULL,
    value bigint NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_threshold='500');


--
-- Name: kcoord_quota; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.kcoord_quota (
    id bigint NOT NULL,
    kind character varying(8) NOT NULL,
    name character varying(200) NOT NULL,
    budget character varying(16) NOT NULL,
    "limit" double precision,
    CONSTRAINT kcoord_quota_limit CHECK ((("limit" IS NULL) OR ("limit" > (0.0)::double precision))),
    CONSTRAINT kcoord_quota_name CHECK (((((kind)::text = 'default'::text) AND ((name)::text = ''::text)) OR ((NOT ((kind)::text = 'default'::text)) AND (NOT ((name)::text = ''::text)))))
);


--
-- Name: kcoord_quota_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.kcoord_quota ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.kcoord_quota_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: kcoord_throttled; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.kcoord_throttled (
    id bigint NOT NULL,
    kind character varying(8) NOT NULL,
    name character varying(200) NOT NULL,
    budget character varying(16) NOT NULL,
    "limit" double precision NOT NULL,
    used double precision NOT NULL,
    times bigint NOT NULL,
    since bigint NOT NULL,
    throttled_at bigint NOT NULL
);


--
-- Name: kcoord_throttled_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.kcoord_throttled ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.kcoord_throttled_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: kcoord_timerheartbeat; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.kcoord_timerheartbeat (
    id smallint NOT NULL,
    ticked_at bigint NOT NULL,
    CONSTRAINT kcoord_timerheartbeat_id_check CHECK ((id >= 0)),
    CONSTRAINT kcoord_timerheartbeat_one_row CHECK ((id = 1))
)
WITH (fillfactor='10', autovacuum_vacuum_threshold='500');


--
-- Name: offset_commit_log; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.offset_commit_log (
    id bigint NOT NULL,
    at bigint NOT NULL,
    xact_id bigint DEFAULT ((pg_current_xact_id())::text)::bigint NOT NULL,
    kind character varying(16) NOT NULL,
    group_name character varying(255) NOT NULL,
    topic character varying(249) NOT NULL,
    partition integer NOT NULL,
    committed_offset bigint,
    leader_epoch integer DEFAULT '-1'::integer NOT NULL,
    metadata text DEFAULT ''::text NOT NULL,
    expire_timestamp bigint,
    member_id character varying(300) DEFAULT ''::character varying NOT NULL,
    generation_id integer DEFAULT '-1'::integer NOT NULL,
    client_id character varying(255) DEFAULT ''::character varying NOT NULL,
    principal character varying(255) DEFAULT ''::character varying NOT NULL,
    transactional_id character varying(255),
    plan_id uuid
)
PARTITION BY RANGE (at);


--
-- Name: offset_commit_log_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

CREATE SEQUENCE public.offset_commit_log_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: offset_commit_log_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: -
--

ALTER SEQUENCE public.offset_commit_log_id_seq OWNED BY public.offset_commit_log.id;


--
-- Name: offset_commit_log_default; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.offset_commit_log_default (
    id bigint DEFAULT nextval('public.offset_commit_log_id_seq'::regclass) CONSTRAINT offset_commit_log_id_not_null NOT NULL,
    at bigint CONSTRAINT offset_commit_log_at_not_null NOT NULL,
    xact_id bigint DEFAULT ((pg_current_xact_id())::text)::bigint CONSTRAINT offset_commit_log_xact_id_not_null NOT NULL,
    kind character varying(16) CONSTRAINT offset_commit_log_kind_not_null NOT NULL,
    group_name character varying(255) CONSTRAINT offset_commit_log_group_name_not_null NOT NULL,
    topic character varying(249) CONSTRAINT offset_commit_log_topic_not_null NOT NULL,
    partition integer CONSTRAINT offset_commit_log_partition_not_null NOT NULL,
    committed_offset bigint,
    leader_epoch integer DEFAULT '-1'::integer CONSTRAINT offset_commit_log_leader_epoch_not_null NOT NULL,
    metadata text DEFAULT ''::text CONSTRAINT offset_commit_log_metadata_not_null NOT NULL,
    expire_timestamp bigint,
    member_id character varying(300) DEFAULT ''::character varying CONSTRAINT offset_commit_log_member_id_not_null NOT NULL,
    generation_id integer DEFAULT '-1'::integer CONSTRAINT offset_commit_log_generation_id_not_null NOT NULL,
    client_id character varying(255) DEFAULT ''::character varying CONSTRAINT offset_commit_log_client_id_not_null NOT NULL,
    principal character varying(255) DEFAULT ''::character varying CONSTRAINT offset_commit_log_principal_not_null NOT NULL,
    transactional_id character varying(255),
    plan_id uuid
);


--
-- Name: offsets_activity; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.offsets_activity (
    at bigint NOT NULL,
    record_offset bigint NOT NULL,
    event_id bigint NOT NULL,
    rebalances bigint NOT NULL
);


--
-- Name: offsets_alert; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.offsets_alert (
    id bigint NOT NULL,
    group_name character varying(255) NOT NULL,
    cause character varying(16) NOT NULL,
    value bigint,
    since bigint NOT NULL,
    opened_at bigint,
    over_since bigint,
    told_at bigint,
    muted_until bigint,
    muted_by character varying(255) DEFAULT ''::character varying NOT NULL,
    resolved_at bigint,
    rule_id bigint NOT NULL
);


--
-- Name: offsets_alert_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.offsets_alert ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.offsets_alert_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: offsets_alertmessage; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.offsets_alertmessage (
    id uuid NOT NULL,
    rule_id bigint,
    rule_name character varying(100) NOT NULL,
    receiver character varying(64) NOT NULL,
    notice character varying(8) NOT NULL,
    content jsonb NOT NULL,
    created_at bigint NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    next_at bigint,
    sent_at bigint,
    error text DEFAULT ''::text NOT NULL
);


--
-- Name: offsets_alertrule; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.offsets_alertrule (
    id bigint NOT NULL,
    name character varying(100) NOT NULL,
    enabled boolean NOT NULL,
    pattern character varying(8) NOT NULL,
    group_name character varying(255) NOT NULL,
    label character varying(319) DEFAULT ''::character varying NOT NULL,
    verdicts character varying(16)[] NOT NULL,
    min_lag bigint,
    min_time_lag_ms bigint,
    for_ms bigint NOT NULL,
    remind_ms bigint NOT NULL,
    send_resolved boolean NOT NULL,
    receivers character varying(64)[] NOT NULL,
    updated_at bigint NOT NULL,
    updated_by character varying(255) NOT NULL
);


--
-- Name: offsets_alertrule_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.offsets_alertrule ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.offsets_alertrule_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: offsets_archivedday; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.offsets_archivedday (
    manifest bigint NOT NULL,
    day integer NOT NULL,
    archive_id character varying(64) NOT NULL,
    system_identifier character varying(32) NOT NULL,
    timeline integer NOT NULL,
    rows bigint NOT NULL,
    checksum numeric(38,0) NOT NULL,
    counts boolean NOT NULL,
    run_id uuid NOT NULL
);


--
-- Name: offsets_committedoffset; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.offsets_committedoffset (
    topic character varying(249) NOT NULL,
    partition integer NOT NULL,
    committed_offset bigint NOT NULL,
    leader_epoch integer NOT NULL,
    metadata text NOT NULL,
    commit_timestamp bigint NOT NULL,
    expire_timestamp bigint,
    member_id character varying(300) NOT NULL,
    generation_id integer NOT NULL,
    record_offset bigint DEFAULT 0 NOT NULL,
    group_id bigint NOT NULL
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.05');


--
-- Name: offsets_deletedtopic; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.offsets_deletedtopic (
    id bigint NOT NULL,
    topic character varying(249) NOT NULL,
    deleted_at bigint NOT NULL,
    principal character varying(255) NOT NULL,
    record_offset bigint NOT NULL,
    swept boolean NOT NULL
);


--
-- Name: offsets_deletedtopic_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.offsets_deletedtopic ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.offsets_deletedtopic_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: offsets_grouplag; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.offsets_grouplag (
    group_id bigint NOT NULL,
    at bigint NOT NULL,
    lag bigint,
    time_lag_ms bigint,
    state character varying(32) DEFAULT ''::character varying NOT NULL,
    generation_id integer DEFAULT 0 NOT NULL,
    members integer DEFAULT 0 NOT NULL,
    partitions integer
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.05');


--
-- Name: offsets_groupverdict; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.offsets_groupverdict (
    kind character varying(16) NOT NULL,
    topic character varying(249) NOT NULL,
    since bigint NOT NULL,
    due_at bigint,
    number bigint NOT NULL,
    lag bigint,
    names text[] NOT NULL,
    group_id bigint NOT NULL
);


--
-- Name: offsets_lagsample; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.offsets_lagsample (
    group_name character varying(255) NOT NULL,
    topic character varying(249) NOT NULL,
    at bigint NOT NULL,
    lag bigint NOT NULL,
    time_lag_ms bigint
);


--
-- Name: offsets_offsetplan; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.offsets_offsetplan (
    id uuid NOT NULL,
    group_name character varying(255) NOT NULL,
    strategy character varying(32) NOT NULL,
    parameters jsonb NOT NULL,
    totals jsonb NOT NULL,
    state character varying(16) NOT NULL,
    reason text NOT NULL,
    created_at bigint NOT NULL,
    created_by character varying(255) NOT NULL,
    maker character varying(64) DEFAULT ''::character varying NOT NULL,
    approved_at bigint,
    approved_by character varying(255),
    applied_at bigint,
    applied_by character varying(255),
    undone_at bigint,
    undone_by character varying(255)
);


--
-- Name: offsets_pendingoffset; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.offsets_pendingoffset (
    topic character varying(249) NOT NULL,
    partition integer NOT NULL,
    committed_offset bigint NOT NULL,
    leader_epoch integer NOT NULL,
    metadata text NOT NULL,
    commit_timestamp bigint NOT NULL,
    opened_at bigint NOT NULL,
    record_offset bigint NOT NULL,
    member_id character varying(300) NOT NULL,
    generation_id integer NOT NULL,
    client_id character varying(255) NOT NULL,
    principal character varying(255) NOT NULL,
    group_id bigint NOT NULL,
    producer_id bigint NOT NULL
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.05');


--
-- Name: offsets_plannedoffset; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.offsets_plannedoffset (
    topic character varying(249) NOT NULL,
    partition integer NOT NULL,
    old_offset bigint,
    old_leader_epoch integer NOT NULL,
    old_metadata text NOT NULL,
    old_commit_timestamp bigint,
    old_expire_timestamp bigint,
    old_record_offset bigint,
    requested_offset bigint,
    new_offset bigint,
    log_start_offset bigint,
    log_end_offset bigint,
    note text NOT NULL,
    applied_record_offset bigint,
    plan_id uuid NOT NULL
);


--
-- Name: offsets_producer; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.offsets_producer (
    producer_id bigint NOT NULL,
    transactional_id character varying(255) NOT NULL,
    producer_epoch integer NOT NULL,
    updated_at bigint NOT NULL
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.05');


--
-- Name: offsets_reconcilefinding; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.offsets_reconcilefinding (
    number integer NOT NULL,
    kind character varying(32) NOT NULL,
    group_name character varying(255) NOT NULL,
    topic character varying(249) NOT NULL,
    partition integer NOT NULL,
    expected bigint,
    found bigint,
    evidence jsonb NOT NULL,
    run_id uuid NOT NULL
);


--
-- Name: offsets_retentionpin; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.offsets_retentionpin (
    id bigint NOT NULL,
    group_name character varying(255) NOT NULL,
    topic character varying(249) NOT NULL,
    pinned_at bigint NOT NULL,
    pinned_by character varying(255) NOT NULL,
    reason text NOT NULL
);


--
-- Name: offsets_retentionpin_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.offsets_retentionpin ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.offsets_retentionpin_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: offsets_sparkrun; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.offsets_sparkrun (
    id uuid NOT NULL,
    kind character varying(16) NOT NULL,
    state character varying(16) NOT NULL,
    parameters jsonb NOT NULL,
    requested_at bigint NOT NULL,
    requested_by character varying(255) NOT NULL,
    started_at bigint,
    ended_at bigint,
    heartbeat_at bigint,
    cancel_requested_at bigint,
    host character varying(255) NOT NULL,
    pid integer,
    log_path text NOT NULL,
    stage character varying(64) NOT NULL,
    slices_done integer NOT NULL,
    slices_total integer NOT NULL,
    bound bigint,
    system_identifier character varying(32) NOT NULL,
    timeline integer,
    archive_path text NOT NULL,
    archive_id character varying(64) NOT NULL,
    manifest bigint,
    manifest_sha256 character varying(64) NOT NULL,
    rows bigint,
    files integer,
    bytes bigint,
    findings integer,
    result jsonb,
    error text NOT NULL
);


--
-- Name: offsets_topiclag; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.offsets_topiclag (
    topic character varying(249) NOT NULL,
    at bigint NOT NULL,
    lag bigint,
    max_lag bigint,
    time_lag_ms bigint,
    committed_offsets bigint NOT NULL,
    log_end_offsets bigint,
    partitions integer NOT NULL,
    unknown_partitions integer NOT NULL,
    group_id bigint NOT NULL
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.05');


--
-- Name: offsets_topictotal; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.offsets_topictotal (
    topic character varying(249) NOT NULL,
    at bigint NOT NULL,
    groups integer NOT NULL,
    lag bigint,
    worst_group_id bigint,
    worst_lag bigint,
    time_lag_ms bigint
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.05');


--
-- Name: offsets_verdictrun; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.offsets_verdictrun (
    name character varying(16) NOT NULL,
    at bigint NOT NULL
);


--
-- Name: offsets_watermarksample; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.offsets_watermarksample (
    partition integer NOT NULL,
    at bigint NOT NULL,
    until bigint NOT NULL,
    log_start_offset bigint NOT NULL,
    log_end_offset bigint NOT NULL,
    topic_id bigint NOT NULL
);


--
-- Name: offset_commit_log_default; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offset_commit_log ATTACH PARTITION public.offset_commit_log_default DEFAULT;


--
-- Name: offset_commit_log id; Type: DEFAULT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offset_commit_log ALTER COLUMN id SET DEFAULT nextval('public.offset_commit_log_id_seq'::regclass);


--
-- Data for Name: meta; Type: TABLE DATA; Schema: pgmq; Owner: -
--



--
-- Data for Name: notify_insert_throttle; Type: TABLE DATA; Schema: pgmq; Owner: -
--



--
-- Data for Name: topic_bindings; Type: TABLE DATA; Schema: pgmq; Owner: -
--



--
-- Data for Name: auth_group; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.auth_group VALUES
	(1, 'billing');


--
-- Data for Name: auth_group_permissions; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: auth_permission; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.auth_permission VALUES
	(1, 'Can add log entry', 1, 'add_logentry'),
	(2, 'Can change log entry', 1, 'change_logentry'),
	(3, 'Can delete log entry', 1, 'delete_logentry'),
	(4, 'Can view log entry', 1, 'view_logentry'),
	(5, 'Can add permission', 2, 'add_permission'),
	(6, 'Can change permission', 2, 'change_permission'),
	(7, 'Can delete permission', 2, 'delete_permission'),
	(8, 'Can view permission', 2, 'view_permission'),
	(9, 'Can add group', 3, 'add_group'),
	(10, 'Can change group', 3, 'change_group'),
	(11, 'Can delete group', 3, 'delete_group'),
	(12, 'Can view group', 3, 'view_group'),
	(13, 'Can add user', 4, 'add_user'),
	(14, 'Can change user', 4, 'change_user'),
	(15, 'Can delete user', 4, 'delete_user'),
	(16, 'Can view user', 4, 'view_user'),
	(17, 'Can add content type', 5, 'add_contenttype'),
	(18, 'Can change content type', 5, 'change_contenttype'),
	(19, 'Can delete content type', 5, 'delete_contenttype'),
	(20, 'Can view content type', 5, 'view_contenttype'),
	(21, 'Can add session', 6, 'add_session'),
	(22, 'Can change session', 6, 'change_session'),
	(23, 'Can delete session', 6, 'delete_session'),
	(24, 'Can view session', 6, 'view_session'),
	(25, 'Can add crontab', 7, 'add_crontabschedule'),
	(26, 'Can change crontab', 7, 'change_crontabschedule'),
	(27, 'Can delete crontab', 7, 'delete_crontabschedule'),
	(28, 'Can view crontab', 7, 'view_crontabschedule'),
	(29, 'Can add interval', 8, 'add_intervalschedule'),
	(30, 'Can change interval', 8, 'change_intervalschedule'),
	(31, 'Can delete interval', 8, 'delete_intervalschedule'),
	(32, 'Can view interval', 8, 'view_intervalschedule'),
	(33, 'Can add periodic task', 9, 'add_periodictask'),
	(34, 'Can change periodic task', 9, 'change_periodictask'),
	(35, 'Can delete periodic task', 9, 'delete_periodictask'),
	(36, 'Can view periodic task', 9, 'view_periodictask'),
	(37, 'Can add periodic task track', 10, 'add_periodictasks'),
	(38, 'Can change periodic task track', 10, 'change_periodictasks'),
	(39, 'Can delete periodic task track', 10, 'delete_periodictasks'),
	(40, 'Can view periodic task track', 10, 'view_periodictasks'),
	(41, 'Can add solar event', 11, 'add_solarschedule'),
	(42, 'Can change solar event', 11, 'change_solarschedule'),
	(43, 'Can delete solar event', 11, 'delete_solarschedule'),
	(44, 'Can view solar event', 11, 'view_solarschedule'),
	(45, 'Can add clocked', 12, 'add_clockedschedule'),
	(46, 'Can change clocked', 12, 'change_clockedschedule'),
	(47, 'Can delete clocked', 12, 'delete_clockedschedule'),
	(48, 'Can view clocked', 12, 'view_clockedschedule'),
	(49, 'Can add counter', 13, 'add_counter'),
	(50, 'Can change counter', 13, 'change_counter'),
	(51, 'Can delete counter', 13, 'delete_counter'),
	(52, 'Can view counter', 13, 'view_counter'),
	(53, 'Can add API token', 14, 'add_apitoken'),
	(54, 'Can change API token', 14, 'change_apitoken'),
	(55, 'Can delete API token', 14, 'delete_apitoken'),
	(56, 'Can view API token', 14, 'view_apitoken'),
	(57, 'Can add audit chain', 15, 'add_auditchain'),
	(58, 'Can change audit chain', 15, 'change_auditchain'),
	(59, 'Can delete audit chain', 15, 'delete_auditchain'),
	(60, 'Can view audit chain', 15, 'view_auditchain'),
	(61, 'Can add audit record', 16, 'add_auditrecord'),
	(62, 'Can change audit record', 16, 'change_auditrecord'),
	(63, 'Can delete audit record', 16, 'delete_auditrecord'),
	(64, 'Can view audit record', 16, 'view_auditrecord'),
	(65, 'Can add quota', 17, 'add_quota'),
	(66, 'Can change quota', 17, 'change_quota'),
	(67, 'Can delete quota', 17, 'delete_quota'),
	(68, 'Can view quota', 17, 'view_quota'),
	(69, 'Can add throttled', 18, 'add_throttled'),
	(70, 'Can change throttled', 18, 'change_throttled'),
	(71, 'Can delete throttled', 18, 'delete_throttled'),
	(72, 'Can view throttled', 18, 'view_throttled'),
	(73, 'Can add timer heartbeat', 19, 'add_timerheartbeat'),
	(74, 'Can change timer heartbeat', 19, 'change_timerheartbeat'),
	(75, 'Can delete timer heartbeat', 19, 'delete_timerheartbeat'),
	(76, 'Can view timer heartbeat', 19, 'view_timerheartbeat'),
	(77, 'Can add access rule', 20, 'add_accessrule'),
	(78, 'Can change access rule', 20, 'change_accessrule'),
	(79, 'Can delete access rule', 20, 'delete_accessrule'),
	(80, 'Can view access rule', 20, 'view_accessrule'),
	(81, 'Can add group', 21, 'add_group'),
	(82, 'Can change group', 21, 'change_group'),
	(83, 'Can delete group', 21, 'delete_group'),
	(84, 'Can view group', 21, 'view_group'),
	(85, 'Can add topic', 22, 'add_topic'),
	(86, 'Can change topic', 22, 'change_topic'),
	(87, 'Can delete topic', 22, 'delete_topic'),
	(88, 'Can view topic', 22, 'view_topic'),
	(89, 'Can add member', 23, 'add_member'),
	(90, 'Can change member', 23, 'change_member'),
	(91, 'Can delete member', 23, 'delete_member'),
	(92, 'Can view member', 23, 'view_member'),
	(93, 'Can add consumer member', 24, 'add_consumermember'),
	(94, 'Can change consumer member', 24, 'change_consumermember'),
	(95, 'Can delete consumer member', 24, 'delete_consumermember'),
	(96, 'Can view consumer member', 24, 'view_consumermember'),
	(97, 'Can add pending member', 25, 'add_pendingmember'),
	(98, 'Can change pending member', 25, 'change_pendingmember'),
	(99, 'Can delete pending member', 25, 'delete_pendingmember'),
	(100, 'Can view pending member', 25, 'view_pendingmember'),
	(101, 'Can add assignment', 26, 'add_assignment'),
	(102, 'Can change assignment', 26, 'change_assignment'),
	(103, 'Can delete assignment', 26, 'delete_assignment'),
	(104, 'Can view assignment', 26, 'view_assignment'),
	(105, 'Can add generation topics', 27, 'add_generationtopics'),
	(106, 'Can change generation topics', 27, 'change_generationtopics'),
	(107, 'Can delete generation topics', 27, 'delete_generationtopics'),
	(108, 'Can view generation topics', 27, 'view_generationtopics'),
	(109, 'Can add event', 28, 'add_event'),
	(110, 'Can change event', 28, 'change_event'),
	(111, 'Can delete event', 28, 'delete_event'),
	(112, 'Can view event', 28, 'view_event'),
	(113, 'Can add watermark', 29, 'add_watermark'),
	(114, 'Can change watermark', 29, 'change_watermark'),
	(115, 'Can delete watermark', 29, 'delete_watermark'),
	(116, 'Can view watermark', 29, 'view_watermark'),
	(117, 'Can add client software', 30, 'add_clientsoftware'),
	(118, 'Can change client software', 30, 'change_clientsoftware'),
	(119, 'Can delete client software', 30, 'delete_clientsoftware'),
	(120, 'Can view client software', 30, 'view_clientsoftware'),
	(121, 'Can add group config override', 31, 'add_groupconfigoverride'),
	(122, 'Can change group config override', 31, 'change_groupconfigoverride'),
	(123, 'Can delete group config override', 31, 'delete_groupconfigoverride'),
	(124, 'Can view group config override', 31, 'view_groupconfigoverride'),
	(125, 'Can add group labels', 32, 'add_grouplabels'),
	(126, 'Can change group labels', 32, 'change_grouplabels'),
	(127, 'Can delete group labels', 32, 'delete_grouplabels'),
	(128, 'Can view group labels', 32, 'view_grouplabels'),
	(129, 'Can add partition change', 33, 'add_partitionchange'),
	(130, 'Can change partition change', 33, 'change_partitionchange'),
	(131, 'Can delete partition change', 33, 'delete_partitionchange'),
	(132, 'Can view partition change', 33, 'view_partitionchange'),
	(133, 'Can add revision', 34, 'add_revision'),
	(134, 'Can change revision', 34, 'change_revision'),
	(135, 'Can delete revision', 34, 'delete_revision'),
	(136, 'Can view revision', 34, 'view_revision'),
	(137, 'Can add coordinator node', 35, 'add_coordinatornode'),
	(138, 'Can change coordinator node', 35, 'change_coordinatornode'),
	(139, 'Can delete coordinator node', 35, 'delete_coordinatornode'),
	(140, 'Can view coordinator node', 35, 'view_coordinatornode'),
	(141, 'Can add coordinator partition', 36, 'add_coordinatorpartition'),
	(142, 'Can change coordinator partition', 36, 'change_coordinatorpartition'),
	(143, 'Can delete coordinator partition', 36, 'delete_coordinatorpartition'),
	(144, 'Can view coordinator partition', 36, 'view_coordinatorpartition'),
	(145, 'Can add activity', 37, 'add_activity'),
	(146, 'Can change activity', 37, 'change_activity'),
	(147, 'Can delete activity', 37, 'delete_activity'),
	(148, 'Can view activity', 37, 'view_activity'),
	(149, 'Can add alert rule', 38, 'add_alertrule'),
	(150, 'Can change alert rule', 38, 'change_alertrule'),
	(151, 'Can delete alert rule', 38, 'delete_alertrule'),
	(152, 'Can view alert rule', 38, 'view_alertrule'),
	(153, 'Can add deleted topic', 39, 'add_deletedtopic'),
	(154, 'Can change deleted topic', 39, 'change_deletedtopic'),
	(155, 'Can delete deleted topic', 39, 'delete_deletedtopic'),
	(156, 'Can view deleted topic', 39, 'view_deletedtopic'),
	(157, 'Can add group lag', 40, 'add_grouplag'),
	(158, 'Can change group lag', 40, 'change_grouplag'),
	(159, 'Can delete group lag', 40, 'delete_grouplag'),
	(160, 'Can view group lag', 40, 'view_grouplag'),
	(161, 'Can add offset commit log', 41, 'add_offsetcommitlog'),
	(162, 'Can change offset commit log', 41, 'change_offsetcommitlog'),
	(163, 'Can delete offset commit log', 41, 'delete_offsetcommitlog'),
	(164, 'Can view offset commit log', 41, 'view_offsetcommitlog'),
	(165, 'Can add producer', 42, 'add_producer'),
	(166, 'Can change producer', 42, 'change_producer'),
	(167, 'Can delete producer', 42, 'delete_producer'),
	(168, 'Can view producer', 42, 'view_producer'),
	(169, 'Can add topic total', 43, 'add_topictotal'),
	(170, 'Can change topic total', 43, 'change_topictotal'),
	(171, 'Can delete topic total', 43, 'delete_topictotal'),
	(172, 'Can view topic total', 43, 'view_topictotal'),
	(173, 'Can add verdict run', 44, 'add_verdictrun'),
	(174, 'Can change verdict run', 44, 'change_verdictrun'),
	(175, 'Can delete verdict run', 44, 'delete_verdictrun'),
	(176, 'Can view verdict run', 44, 'view_verdictrun'),
	(177, 'Can add alert message', 45, 'add_alertmessage'),
	(178, 'Can change alert message', 45, 'change_alertmessage'),
	(179, 'Can delete alert message', 45, 'delete_alertmessage'),
	(180, 'Can view alert message', 45, 'view_alertmessage'),
	(181, 'Can add lag sample', 46, 'add_lagsample'),
	(182, 'Can change lag sample', 46, 'change_lagsample'),
	(183, 'Can delete lag sample', 46, 'delete_lagsample'),
	(184, 'Can view lag sample', 46, 'view_lagsample'),
	(185, 'Can add offset plan', 47, 'add_offsetplan'),
	(186, 'Can change offset plan', 47, 'change_offsetplan'),
	(187, 'Can delete offset plan', 47, 'delete_offsetplan'),
	(188, 'Can view offset plan', 47, 'view_offsetplan'),
	(189, 'Can add planned offset', 48, 'add_plannedoffset'),
	(190, 'Can change planned offset', 48, 'change_plannedoffset'),
	(191, 'Can delete planned offset', 48, 'delete_plannedoffset'),
	(192, 'Can view planned offset', 48, 'view_plannedoffset'),
	(193, 'Can add retention pin', 49, 'add_retentionpin'),
	(194, 'Can change retention pin', 49, 'change_retentionpin'),
	(195, 'Can delete retention pin', 49, 'delete_retentionpin'),
	(196, 'Can view retention pin', 49, 'view_retentionpin'),
	(197, 'Can add spark run', 50, 'add_sparkrun'),
	(198, 'Can change spark run', 50, 'change_sparkrun'),
	(199, 'Can delete spark run', 50, 'delete_sparkrun'),
	(200, 'Can view spark run', 50, 'view_sparkrun'),
	(201, 'Can add alert', 51, 'add_alert'),
	(202, 'Can change alert', 51, 'change_alert'),
	(203, 'Can delete alert', 51, 'delete_alert'),
	(204, 'Can view alert', 51, 'view_alert'),
	(205, 'Can add committed offset', 52, 'add_committedoffset'),
	(206, 'Can change committed offset', 52, 'change_committedoffset'),
	(207, 'Can delete committed offset', 52, 'delete_committedoffset'),
	(208, 'Can view committed offset', 52, 'view_committedoffset'),
	(209, 'Can add group verdict', 53, 'add_groupverdict'),
	(210, 'Can change group verdict', 53, 'change_groupverdict'),
	(211, 'Can delete group verdict', 53, 'delete_groupverdict'),
	(212, 'Can view group verdict', 53, 'view_groupverdict'),
	(213, 'Can add pending offset', 54, 'add_pendingoffset'),
	(214, 'Can change pending offset', 54, 'change_pendingoffset'),
	(215, 'Can delete pending offset', 54, 'delete_pendingoffset'),
	(216, 'Can view pending offset', 54, 'view_pendingoffset'),
	(217, 'Can add reconcile finding', 55, 'add_reconcilefinding'),
	(218, 'Can change reconcile finding', 55, 'change_reconcilefinding'),
	(219, 'Can delete reconcile finding', 55, 'delete_reconcilefinding'),
	(220, 'Can view reconcile finding', 55, 'view_reconcilefinding'),
	(221, 'Can add archived day', 56, 'add_archivedday'),
	(222, 'Can change archived day', 56, 'change_archivedday'),
	(223, 'Can delete archived day', 56, 'delete_archivedday'),
	(224, 'Can view archived day', 56, 'view_archivedday'),
	(225, 'Can add topic lag', 57, 'add_topiclag'),
	(226, 'Can change topic lag', 57, 'change_topiclag'),
	(227, 'Can delete topic lag', 57, 'delete_topiclag'),
	(228, 'Can view topic lag', 57, 'view_topiclag'),
	(229, 'Can add watermark sample', 58, 'add_watermarksample'),
	(230, 'Can change watermark sample', 58, 'change_watermarksample'),
	(231, 'Can delete watermark sample', 58, 'delete_watermarksample'),
	(232, 'Can view watermark sample', 58, 'view_watermarksample'),
	(233, 'Can add sign in attempt', 59, 'add_signinattempt'),
	(234, 'Can change sign in attempt', 59, 'change_signinattempt'),
	(235, 'Can delete sign in attempt', 59, 'delete_signinattempt'),
	(236, 'Can view sign in attempt', 59, 'view_signinattempt'),
	(237, 'Can add provider identity', 60, 'add_provideridentity'),
	(238, 'Can change provider identity', 60, 'change_provideridentity'),
	(239, 'Can delete provider identity', 60, 'delete_provideridentity'),
	(240, 'Can view provider identity', 60, 'view_provideridentity'),
	(241, 'Can add saved view', 61, 'add_savedview'),
	(242, 'Can change saved view', 61, 'change_savedview'),
	(243, 'Can delete saved view', 61, 'delete_savedview'),
	(244, 'Can view saved view', 61, 'view_savedview');


--
-- Data for Name: auth_user; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.auth_user VALUES
	(1, '!', NULL, false, 'mara', '', '', '', true, true, '2026-11-27 02:37:03.910887+00');


--
-- Data for Name: auth_user_groups; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.auth_user_groups VALUES
	(1, 1, 1);


--
-- Data for Name: auth_user_user_permissions; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: django_admin_log; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: django_celery_beat_clockedschedule; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: django_celery_beat_crontabschedule; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.django_celery_beat_crontabschedule VALUES
	(1, '0', '3', '*', '*', '*', 'UTC'),
	(2, '0', '4', '*', '*', '*', 'UTC');


--
-- Data for Name: django_celery_beat_intervalschedule; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: django_celery_beat_periodictask; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.django_celery_beat_periodictask VALUES
	(1, 'offsets: archive the journal', 'offsets.archive', '[]', '{}', NULL, NULL, NULL, NULL, true, NULL, 0, '2026-11-27 02:36:57.423085+00', '', 1, NULL, NULL, false, NULL, NULL, '{}', NULL, 3600),
	(2, 'offsets: reconcile', 'offsets.reconcile', '[]', '{}', NULL, NULL, NULL, NULL, true, NULL, 0, '2026-11-27 02:36:57.467256+00', '', 2, NULL, NULL, false, NULL, NULL, '{}', NULL, 3600);


--
-- Data for Name: django_celery_beat_periodictasks; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.django_celery_beat_periodictasks VALUES
	(1, '2026-11-27 02:36:57.471465+00');


--
-- Data for Name: django_celery_beat_solarschedule; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: django_content_type; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.django_content_type VALUES
	(1, 'admin', 'logentry'),
	(2, 'auth', 'permission'),
	(3, 'auth', 'group'),
	(4, 'auth', 'user'),
	(5, 'contenttypes', 'contenttype'),
	(6, 'sessions', 'session'),
	(7, 'django_celery_beat', 'crontabschedule'),
	(8, 'django_celery_beat', 'intervalschedule'),
	(9, 'django_celery_beat', 'periodictask'),
	(10, 'django_celery_beat', 'periodictasks'),
	(11, 'django_celery_beat', 'solarschedule'),
	(12, 'django_celery_beat', 'clockedschedule'),
	(13, 'kcoord', 'counter'),
	(14, 'kcoord', 'apitoken'),
	(15, 'kcoord', 'auditchain'),
	(16, 'kcoord', 'auditrecord'),
	(17, 'kcoord', 'quota'),
	(18, 'kcoord', 'throttled'),
	(19, 'kcoord', 'timerheartbeat'),
	(20, 'kcoord', 'accessrule'),
	(21, 'groups', 'group'),
	(22, 'groups', 'topic'),
	(23, 'groups', 'member'),
	(24, 'groups', 'consumermember'),
	(25, 'groups', 'pendingmember'),
	(26, 'groups', 'assignment'),
	(27, 'groups', 'generationtopics'),
	(28, 'groups', 'event'),
	(29, 'groups', 'watermark'),
	(30, 'groups', 'clientsoftware'),
	(31, 'groups', 'groupconfigoverride'),
	(32, 'groups', 'grouplabels'),
	(33, 'groups', 'partitionchange'),
	(34, 'groups', 'revision'),
	(35, 'groups', 'coordinatornode'),
	(36, 'groups', 'coordinatorpartition'),
	(37, 'offsets', 'activity'),
	(38, 'offsets', 'alertrule'),
	(39, 'offsets', 'deletedtopic'),
	(40, 'offsets', 'grouplag'),
	(41, 'offsets', 'offsetcommitlog'),
	(42, 'offsets', 'producer'),
	(43, 'offsets', 'topictotal'),
	(44, 'offsets', 'verdictrun'),
	(45, 'offsets', 'alertmessage'),
	(46, 'offsets', 'lagsample'),
	(47, 'offsets', 'offsetplan'),
	(48, 'offsets', 'plannedoffset'),
	(49, 'offsets', 'retentionpin'),
	(50, 'offsets', 'sparkrun'),
	(51, 'offsets', 'alert'),
	(52, 'offsets', 'committedoffset'),
	(53, 'offsets', 'groupverdict'),
	(54, 'offsets', 'pendingoffset'),
	(55, 'offsets', 'reconcilefinding'),
	(56, 'offsets', 'archivedday'),
	(57, 'offsets', 'topiclag'),
	(58, 'offsets', 'watermarksample'),
	(59, 'frontend', 'signinattempt'),
	(60, 'frontend', 'provideridentity'),
	(61, 'frontend', 'savedview');


--
-- Data for Name: django_migrations; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.django_migrations VALUES
	(1, 'contenttypes', '0001_initial', '2026-11-27 02:36:47.779+00'),
	(2, 'auth', '0001_initial', '2026-11-27 02:36:48.1151+00'),
	(3, 'admin', '0001_initial', '2026-11-27 02:36:48.227313+00'),
	(4, 'admin', '0002_logentry_remove_auto_add', '2026-11-27 02:36:48.274163+00'),
	(5, 'admin', '0003_logentry_add_action_flag_choices', '2026-11-27 02:36:48.381477+00'),
	(6, 'contenttypes', '0002_remove_content_type_name', '2026-11-27 02:36:48.538849+00'),
	(7, 'auth', '0002_alter_permission_name_max_length', '2026-11-27 02:36:48.597177+00'),
	(8, 'auth', '0003_alter_user_email_max_length', '2026-11-27 02:36:48.663694+00'),
	(9, 'auth', '0004_alter_user_username_opts', '2026-11-27 02:36:48.712285+00'),
	(10, 'auth', '0005_alter_user_last_login_null', '2026-11-27 02:36:48.775451+00'),
	(11, 'auth', '0006_require_contenttypes_0002', '2026-11-27 02:36:48.777086+00'),
	(12, 'auth', '0007_alter_validators_add_error_messages', '2026-11-27 02:36:48.828811+00'),
	(13, 'auth', '0008_alter_user_username_max_length', '2026-11-27 02:36:48.907521+00'),
	(14, 'auth', '0009_alter_user_last_name_max_length', '2026-11-27 02:36:48.971757+00'),
	(15, 'auth', '0010_alter_group_name_max_length', '2026-11-27 02:36:49.0409+00'),
	(16, 'auth', '0011_update_proxy_permissions', '2026-11-27 02:36:49.078005+00'),
	(17, 'auth', '0012_alter_user_first_name_max_length', '2026-11-27 02:36:49.15876+00'),
	(18, 'django_celery_beat', '0001_initial', '2026-11-27 02:36:49.319291+00'),
	(19, 'django_celery_beat', '0002_auto_20161118_0346', '2026-11-27 02:36:49.407257+00'),
	(20, 'django_celery_beat', '0003_auto_20161209_0049', '2026-11-27 02:36:49.465231+00'),
	(21, 'django_celery_beat', '0004_auto_20170221_0000', '2026-11-27 02:36:49.484865+00'),
	(22, 'django_celery_beat', '0005_add_solarschedule_events_choices', '2026-11-27 02:36:49.50964+00'),
	(23, 'django_celery_beat', '0006_auto_20180322_0932', '2026-11-27 02:36:49.811419+00'),
	(24, 'django_celery_beat', '0007_auto_20180521_0826', '2026-11-27 02:36:49.950738+00'),
	(25, 'django_celery_beat', '0008_auto_20180914_1922', '2026-11-27 02:36:50.219939+00'),
	(26, 'django_celery_beat', '0006_auto_20180210_1226', '2026-11-27 02:36:50.361713+00'),
	(27, 'django_celery_beat', '0006_periodictask_priority', '2026-11-27 02:36:50.423525+00'),
	(28, 'django_celery_beat', '0009_periodictask_headers', '2026-11-27 02:36:50.496343+00'),
	(29, 'django_celery_beat', '0010_auto_20190429_0326', '2026-11-27 02:36:52.180069+00'),
	(30, 'django_celery_beat', '0011_auto_20190508_0153', '2026-11-27 02:36:52.31317+00'),
	(31, 'django_celery_beat', '0012_periodictask_expire_seconds', '2026-11-27 02:36:52.403648+00'),
	(32, 'django_celery_beat', '0013_auto_20200609_0727', '2026-11-27 02:36:52.482658+00'),
	(33, 'django_celery_beat', '0014_remove_clockedschedule_enabled', '2026-11-27 02:36:52.511245+00'),
	(34, 'django_celery_beat', '0015_edit_solarschedule_events_choices', '2026-11-27 02:36:52.530537+00'),
	(35, 'django_celery_beat', '0016_alter_crontabschedule_timezone', '2026-11-27 02:36:52.582731+00'),
	(36, 'django_celery_beat', '0017_alter_crontabschedule_month_of_year', '2026-11-27 02:36:52.63305+00'),
	(37, 'django_celery_beat', '0018_improve_crontab_helptext', '2026-11-27 02:36:52.685638+00'),
	(38, 'django_celery_beat', '0019_alter_periodictasks_options', '2026-11-27 02:36:52.696268+00'),
	(39, 'sessions', '0001_initial', '2026-11-27 02:36:52.742833+00'),
	(40, 'frontend', '0001_initial', '2026-11-27 02:36:52.94682+00'),
	(41, 'groups', '0001_initial', '2026-11-27 02:36:53.811469+00'),
	(42, 'kcoord', '0001_initial', '2026-11-27 02:36:54.795317+00'),
	(43, 'offsets', '0001_initial', '2026-11-27 02:36:57.616599+00');


--
-- Data for Name: django_session; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: frontend_provideridentity; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.frontend_provideridentity VALUES
	(1, 'https://id.example', 'mara-1', 1);


--
-- Data for Name: frontend_savedview; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.frontend_savedview VALUES
	(1, 'mine', 'state=Empty', 1, 1);


--
-- Data for Name: frontend_signinattempt; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.frontend_signinattempt VALUES
	('mara', 2, 1);


--
-- Data for Name: groups_assignment; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.groups_assignment VALUES
	('4226e2f3-f40b-4fa3-9058-dc1cbb2580de', 't', 0, 'AAAAAAAAAAAAAAAAAAAAAA', 1, false, 2),
	('4226e2f3-f40b-4fa3-9058-dc1cbb2580de', 't', 1, 'AAAAAAAAAAAAAAAAAAAAAA', 1, false, 2),
	('t', 't', 0, 'test-9fb4458f-76cb-4e9f-912f-471cc53e15b6', 1, false, 3);


--
-- Data for Name: groups_clientsoftware; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: groups_consumermember; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.groups_consumermember VALUES
	(1, 'AAAAAAAAAAAAAAAAAAAAAA', NULL, NULL, '', '127.0.0.1', 60000, '{t}', '', '', NULL, NULL, NULL, NULL, 1, 0, 0, '{"4226e2f3-f40b-4fa3-9058-dc1cbb2580de": [0, 1]}', 1795747089450, 1795747044450, NULL, NULL, NULL, NULL, NULL, NULL, 2);


--
-- Data for Name: groups_coordinatornode; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.groups_coordinatornode VALUES
	(1, 'a', 'http://127.0.0.1:45759', 1, '', 0, '0.2.0', 1795747037276, 1795747044031, 1795747047031, 1795747044672, 1795747044696, 'stopped');


--
-- Data for Name: groups_coordinatorpartition; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.groups_coordinatorpartition VALUES
	(0, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(1, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(2, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(3, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(4, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(5, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(6, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(7, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(8, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(9, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(10, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(11, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(12, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(13, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(14, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(15, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(16, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(17, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(18, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(19, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(20, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(21, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(22, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(23, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(24, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(25, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(26, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(27, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(28, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(29, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(30, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(31, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(32, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(33, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(34, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(35, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(36, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(37, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(38, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(39, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(40, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(41, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(42, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(43, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(44, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(45, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(46, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(47, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(48, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL),
	(49, 2, 2, 'CLOSED', 1795747044696, NULL, 51, NULL);


--
-- Data for Name: groups_event; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.groups_event VALUES
	(1, 'idle', 1795747043810, 'group_created', 0, NULL, '{}'),
	(2, 'idle', 1795747043810, 'offsets_reset', 0, NULL, '{"topics": ["t"], "principal": "test-f323df7e", "partitions": 1}'),
	(3, 'idle', 1795747043896, 'labels_changed', 0, NULL, '{"labels": {"owner": [null, "billing"]}, "principal": "test-f323df7e"}'),
	(4, 'idle', 1795747043962, 'retention_pinned', 0, NULL, '{"topic": "t", "principal": "test-f323df7e"}'),
	(5, 'idle', 1795747044170, 'config_changed', 0, NULL, '{"settings": {"consumer.session.timeout.ms": [45000, 50000]}, "principal": "test-f323df7e"}'),
	(6, 'modern', 1795747044450, 'group_created', 0, NULL, '{}'),
	(7, 'modern', 1795747044450, 'member_joined', 0, 'AAAAAAAAAAAAAAAAAAAAAA', '{"client_id": "", "client_host": "127.0.0.1"}'),
	(8, 'modern', 1795747044450, 'group_epoch_bumped', 1, 'AAAAAAAAAAAAAAAAAAAAAA', '{"cause": "group_created"}'),
	(9, 'modern', 1795747044450, 'target_computed', 1, NULL, '{"members": 1, "assignor": "uniform", "assignment_epoch": 1}'),
	(10, 'modern', 1795747044450, 'member_reconciled', 1, 'AAAAAAAAAAAAAAAAAAAAAA', '{"partitions": 2, "member_epoch": 1}'),
	(11, 'g', 1795747044503, 'group_created', 0, NULL, '{}'),
	(12, 'g', 1795747044538, 'member_joined', 0, 'test-9fb4458f-76cb-4e9f-912f-471cc53e15b6', '{"client_id": "test", "client_host": "127.0.0.1"}'),
	(13, 'g', 1795747044538, 'rebalance_started', 0, 'test-9fb4458f-76cb-4e9f-912f-471cc53e15b6', '{"cause": "member_joined"}'),
	(14, 'g', 1795747044538, 'rebalance_completed', 1, NULL, '{"leader": "test-9fb4458f-76cb-4e9f-912f-471cc53e15b6", "members": 1, "duration_ms": 0, "protocol_name": "range"}'),
	(15, 'g', 1795747044593, 'assignment_stored', 1, NULL, '{"members": 1, "duration_ms": 55}'),
	(16, 'g', 1795747044944, 'group_created', 0, NULL, '{}');


--
-- Data for Name: groups_generationtopics; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.groups_generationtopics VALUES
	(3, '{t}');


--
-- Data for Name: groups_group; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.groups_group VALUES
	(1, 'idle', 'classic', 'Empty', 'Dead', 1795747043810, 0, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, 0, 0, '', -1, NULL, NULL, 4, 1, NULL, NULL, NULL, NULL, 1, '2a65e58f-4726-4bb3-8580-06baf7f04e89', 1795747043810, 1795747043810),
	(2, 'modern', 'consumer', 'Stable', '', 1795747044450, 1, 'consumer', NULL, NULL, false, NULL, NULL, NULL, NULL, 1, 1795747044450, '350f2bad19fc99d5b52bdb0a0fc783f3bc09f8338cb28929bd35b414c9c45087', 6068216092, NULL, NULL, 1, 1, NULL, NULL, NULL, 1795747089450, 1, '5c114379-01e8-4dea-8beb-8fe6e21b0bfc', 1795747044450, 1795747044450),
	(3, 'g', 'classic', 'Stable', 'CompletingRebalance', 1795747044593, 1, 'consumer', 'range', 'test-9fb4458f-76cb-4e9f-912f-471cc53e15b6', false, NULL, NULL, NULL, NULL, 0, 0, '', -1, NULL, NULL, 3, 1, NULL, NULL, NULL, 1795747054593, 3, 'f6b71bca-2838-4799-96d9-75718b722bcb', 1795747044503, 1795747044593);


--
-- Data for Name: groups_groupconfigoverride; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.groups_groupconfigoverride VALUES
	(1, 'idle', 'consumer.session.timeout.ms', '50000', 1795747044170, 'test-f323df7e');


--
-- Data for Name: groups_grouplabels; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.groups_grouplabels VALUES
	(1, 'idle', '{"owner": "billing"}', 1795747043896, 'test-f323df7e');


--
-- Data for Name: groups_member; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.groups_member VALUES
	(1, 'test-9fb4458f-76cb-4e9f-912f-471cc53e15b6', NULL, 'test', '127.0.0.1', 10000, 10000, 'consumer', '{range}', '{"\\x000300000001000174ffffffff00000000ffffffffffff"}', '\x0003000000010001740000000100000000ffffffff', false, NULL, NULL, false, 1795747054644, 1795747044644, 3);


--
-- Data for Name: groups_partitionchange; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.groups_partitionchange VALUES
	(1, 1795747037276, 0, 1, 1, '', 'a', 'taken', 0),
	(2, 1795747037276, 1, 1, 1, '', 'a', 'taken', 0),
	(3, 1795747037276, 2, 1, 1, '', 'a', 'taken', 0),
	(4, 1795747037276, 3, 1, 1, '', 'a', 'taken', 0),
	(5, 1795747037276, 4, 1, 1, '', 'a', 'taken', 0),
	(6, 1795747037276, 5, 1, 1, '', 'a', 'taken', 0),
	(7, 1795747037276, 6, 1, 1, '', 'a', 'taken', 0),
	(8, 1795747037276, 7, 1, 1, '', 'a', 'taken', 0),
	(9, 1795747037276, 8, 1, 1, '', 'a', 'taken', 0),
	(10, 1795747037276, 9, 1, 1, '', 'a', 'taken', 0),
	(11, 1795747037276, 10, 1, 1, '', 'a', 'taken', 0),
	(12, 1795747037276, 11, 1, 1, '', 'a', 'taken', 0),
	(13, 1795747037276, 12, 1, 1, '', 'a', 'taken', 0),
	(14, 1795747037276, 13, 1, 1, '', 'a', 'taken', 0),
	(15, 1795747037276, 14, 1, 1, '', 'a', 'taken', 0),
	(16, 1795747037276, 15, 1, 1, '', 'a', 'taken', 0),
	(17, 1795747037276, 16, 1, 1, '', 'a', 'taken', 0),
	(18, 1795747037276, 17, 1, 1, '', 'a', 'taken', 0),
	(19, 1795747037276, 18, 1, 1, '', 'a', 'taken', 0),
	(20, 1795747037276, 19, 1, 1, '', 'a', 'taken', 0),
	(21, 1795747037276, 20, 1, 1, '', 'a', 'taken', 0),
	(22, 1795747037276, 21, 1, 1, '', 'a', 'taken', 0),
	(23, 1795747037276, 22, 1, 1, '', 'a', 'taken', 0),
	(24, 1795747037276, 23, 1, 1, '', 'a', 'taken', 0),
	(25, 1795747037276, 24, 1, 1, '', 'a', 'taken', 0),
	(26, 1795747037276, 25, 1, 1, '', 'a', 'taken', 0),
	(27, 1795747037276, 26, 1, 1, '', 'a', 'taken', 0),
	(28, 1795747037276, 27, 1, 1, '', 'a', 'taken', 0),
	(29, 1795747037276, 28, 1, 1, '', 'a', 'taken', 0),
	(30, 1795747037276, 29, 1, 1, '', 'a', 'taken', 0),
	(31, 1795747037276, 30, 1, 1, '', 'a', 'taken', 0),
	(32, 1795747037276, 31, 1, 1, '', 'a', 'taken', 0),
	(33, 1795747037276, 32, 1, 1, '', 'a', 'taken', 0),
	(34, 1795747037276, 33, 1, 1, '', 'a', 'taken', 0),
	(35, 1795747037276, 34, 1, 1, '', 'a', 'taken', 0),
	(36, 1795747037276, 35, 1, 1, '', 'a', 'taken', 0),
	(37, 1795747037276, 36, 1, 1, '', 'a', 'taken', 0),
	(38, 1795747037276, 37, 1, 1, '', 'a', 'taken', 0),
	(39, 1795747037276, 38, 1, 1, '', 'a', 'taken', 0),
	(40, 1795747037276, 39, 1, 1, '', 'a', 'taken', 0),
	(41, 1795747037276, 40, 1, 1, '', 'a', 'taken', 0),
	(42, 1795747037276, 41, 1, 1, '', 'a', 'taken', 0),
	(43, 1795747037276, 42, 1, 1, '', 'a', 'taken', 0),
	(44, 1795747037276, 43, 1, 1, '', 'a', 'taken', 0),
	(45, 1795747037276, 44, 1, 1, '', 'a', 'taken', 0),
	(46, 1795747037276, 45, 1, 1, '', 'a', 'taken', 0),
	(47, 1795747037276, 46, 1, 1, '', 'a', 'taken', 0),
	(48, 1795747037276, 47, 1, 1, '', 'a', 'taken', 0),
	(49, 1795747037276, 48, 1, 1, '', 'a', 'taken', 0),
	(50, 1795747037276, 49, 1, 1, '', 'a', 'taken', 0),
	(51, 1795747044696, 0, 2, 2, 'a', '', 'stopped', 0),
	(52, 1795747044696, 1, 2, 2, 'a', '', 'stopped', 0),
	(53, 1795747044696, 2, 2, 2, 'a', '', 'stopped', 0),
	(54, 1795747044696, 3, 2, 2, 'a', '', 'stopped', 0),
	(55, 1795747044696, 4, 2, 2, 'a', '', 'stopped', 0),
	(56, 1795747044696, 5, 2, 2, 'a', '', 'stopped', 0),
	(57, 1795747044696, 6, 2, 2, 'a', '', 'stopped', 0),
	(58, 1795747044696, 7, 2, 2, 'a', '', 'stopped', 0),
	(59, 1795747044696, 8, 2, 2, 'a', '', 'stopped', 0),
	(60, 1795747044696, 9, 2, 2, 'a', '', 'stopped', 0),
	(61, 1795747044696, 10, 2, 2, 'a', '', 'stopped', 0),
	(62, 1795747044696, 11, 2, 2, 'a', '', 'stopped', 0),
	(63, 1795747044696, 12, 2, 2, 'a', '', 'stopped', 0),
	(64, 1795747044696, 13, 2, 2, 'a', '', 'stopped', 0),
	(65, 1795747044696, 14, 2, 2, 'a', '', 'stopped', 0),
	(66, 1795747044696, 15, 2, 2, 'a', '', 'stopped', 0),
	(67, 1795747044696, 16, 2, 2, 'a', '', 'stopped', 0),
	(68, 1795747044696, 17, 2, 2, 'a', '', 'stopped', 0),
	(69, 1795747044696, 18, 2, 2, 'a', '', 'stopped', 0),
	(70, 1795747044696, 19, 2, 2, 'a', '', 'stopped', 0),
	(71, 1795747044696, 20, 2, 2, 'a', '', 'stopped', 0),
	(72, 1795747044696, 21, 2, 2, 'a', '', 'stopped', 0),
	(73, 1795747044696, 22, 2, 2, 'a', '', 'stopped', 0),
	(74, 1795747044696, 23, 2, 2, 'a', '', 'stopped', 0),
	(75, 1795747044696, 24, 2, 2, 'a', '', 'stopped', 0),
	(76, 1795747044696, 25, 2, 2, 'a', '', 'stopped', 0),
	(77, 1795747044696, 26, 2, 2, 'a', '', 'stopped', 0),
	(78, 1795747044696, 27, 2, 2, 'a', '', 'stopped', 0),
	(79, 1795747044696, 28, 2, 2, 'a', '', 'stopped', 0),
	(80, 1795747044696, 29, 2, 2, 'a', '', 'stopped', 0),
	(81, 1795747044696, 30, 2, 2, 'a', '', 'stopped', 0),
	(82, 1795747044696, 31, 2, 2, 'a', '', 'stopped', 0),
	(83, 1795747044696, 32, 2, 2, 'a', '', 'stopped', 0),
	(84, 1795747044696, 33, 2, 2, 'a', '', 'stopped', 0),
	(85, 1795747044696, 34, 2, 2, 'a', '', 'stopped', 0),
	(86, 1795747044696, 35, 2, 2, 'a', '', 'stopped', 0),
	(87, 1795747044696, 36, 2, 2, 'a', '', 'stopped', 0),
	(88, 1795747044696, 37, 2, 2, 'a', '', 'stopped', 0),
	(89, 1795747044696, 38, 2, 2, 'a', '', 'stopped', 0),
	(90, 1795747044696, 39, 2, 2, 'a', '', 'stopped', 0),
	(91, 1795747044696, 40, 2, 2, 'a', '', 'stopped', 0),
	(92, 1795747044696, 41, 2, 2, 'a', '', 'stopped', 0),
	(93, 1795747044696, 42, 2, 2, 'a', '', 'stopped', 0),
	(94, 1795747044696, 43, 2, 2, 'a', '', 'stopped', 0),
	(95, 1795747044696, 44, 2, 2, 'a', '', 'stopped', 0),
	(96, 1795747044696, 45, 2, 2, 'a', '', 'stopped', 0),
	(97, 1795747044696, 46, 2, 2, 'a', '', 'stopped', 0),
	(98, 1795747044696, 47, 2, 2, 'a', '', 'stopped', 0),
	(99, 1795747044696, 48, 2, 2, 'a', '', 'stopped', 0),
	(100, 1795747044696, 49, 2, 2, 'a', '', 'stopped', 0);


--
-- Data for Name: groups_pendingmember; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: groups_revision; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.groups_revision VALUES
	('configs', 4200467099),
	('topics', 6068216092);


--
-- Data for Name: groups_topic; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.groups_topic VALUES
	(1, 't', '4226e2f3-f40b-4fa3-9058-dc1cbb2580de', 2, '{"owner": "billing"}', 1795747043745);


--
-- Data for Name: groups_watermark; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.groups_watermark VALUES
	(1, 1, 0, 100, 1795747043781, 1);


--
-- Data for Name: kcoord_accessrule; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.kcoord_accessrule VALUES
	(1, 'allow', 'read', 'group', 'prefix', '', NULL, NULL, 1),
	(2, 'allow', 'read', 'topic', 'prefix', '', NULL, NULL, 1),
	(3, 'allow', 'read', 'transactional-id', 'prefix', '', NULL, NULL, 1),
	(4, 'allow', 'read', 'cluster', 'prefix', '', NULL, NULL, 1),
	(5, 'allow', 'describe', 'group', 'prefix', '', NULL, NULL, 1),
	(6, 'allow', 'describe', 'topic', 'prefix', '', NULL, NULL, 1),
	(7, 'allow', 'describe', 'transactional-id', 'prefix', '', NULL, NULL, 1),
	(8, 'allow', 'describe', 'cluster', 'prefix', '', NULL, NULL, 1),
	(9, 'allow', 'alter-offsets', 'group', 'prefix', '', NULL, NULL, 1),
	(10, 'allow', 'alter-offsets', 'topic', 'prefix', '', NULL, NULL, 1),
	(11, 'allow', 'alter-offsets', 'transactional-id', 'prefix', '', NULL, NULL, 1),
	(12, 'allow', 'alter-offsets', 'cluster', 'prefix', '', NULL, NULL, 1),
	(13, 'allow', 'delete', 'group', 'prefix', '', NULL, NULL, 1),
	(14, 'allow', 'delete', 'topic', 'prefix', '', NULL, NULL, 1),
	(15, 'allow', 'delete', 'transactional-id', 'prefix', '', NULL, NULL, 1),
	(16, 'allow', 'delete', 'cluster', 'prefix', '', NULL, NULL, 1),
	(17, 'allow', 'kick', 'group', 'prefix', '', NULL, NULL, 1),
	(18, 'allow', 'kick', 'topic', 'prefix', '', NULL, NULL, 1),
	(19, 'allow', 'kick', 'transactional-id', 'prefix', '', NULL, NULL, 1),
	(20, 'allow', 'kick', 'cluster', 'prefix', '', NULL, NULL, 1),
	(21, 'allow', 'admin', 'group', 'prefix', '', NULL, NULL, 1),
	(22, 'allow', 'admin', 'topic', 'prefix', '', NULL, NULL, 1),
	(23, 'allow', 'admin', 'transactional-id', 'prefix', '', NULL, NULL, 1),
	(24, 'allow', 'admin', 'cluster', 'prefix', '', NULL, NULL, 1),
	(25, 'allow', 'describe', 'group', 'prefix', 'billing-', 1, NULL, NULL);


--
-- Data for Name: kcoord_apitoken; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.kcoord_apitoken VALUES
	(1, 'test-f323df7e', '3c6530cf33637a0cd370a446f4391f72d19c6e1df84ddc937f9718f2fb1d0d38', 'kc_lfSDo', 0, NULL, 1795747043745, NULL, NULL, NULL);


--
-- Data for Name: kcoord_auditchain; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.kcoord_auditchain VALUES
	(1, 9, '\xc323001d2ecb372803c95d96f52d632808e74bb9491f804b8c3827a330c1ee43', 0, '\x0000000000000000000000000000000000000000000000000000000000000000', 0, NULL);


--
-- Data for Name: kcoord_auditpending; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: kcoord_auditrecord; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.kcoord_auditrecord VALUES
	(1, '\x0000000000000000000000000000000000000000000000000000000000000000', '\xcb889ca0b2094b75a7b0d5c6d8440c2bb455deeae91a7cd934ddc5f17c714859', 1795747043749, 'token', 'test-f323df7e', '1', '127.0.0.1', '8987eedbf8625d17be3581a26c6e77d4', 'http', 'topic.create', 'topic', 't', NULL, '{"labels":{"owner":"billing"},"partitions":2,"topic_id":"4226e2f3-f40b-4fa3-9058-dc1cbb2580de"}', '', 'done', '', 1),
	(2, '\xcb889ca0b2094b75a7b0d5c6d8440c2bb455deeae91a7cd934ddc5f17c714859', '\x9c84e45723e539a630d356d81dd98c680f7a2d6bb9c4ce5947d7ffdd5b837890', 1795747043836, 'token', 'test-f323df7e', '1', '127.0.0.1', '8f7f1a1ead55656a1a7c1e640696592e', 'http', 'group.create', 'group', 'idle', NULL, '{"config":{},"offsets":{"t-1":5}}', '', 'done', '', 1),
	(3, '\x9c84e45723e539a630d356d81dd98c680f7a2d6bb9c4ce5947d7ffdd5b837890', '\xe11a575b5e783720bb74c0bce37a83be9baacc6721f32504b9e95240793ead2d', 1795747043915, 'token', 'test-f323df7e', '1', '127.0.0.1', '893a38e8035cf35e3ca57731af529575', 'http', 'group.labels', 'group', 'idle', '{"owner":null}', '{"owner":"billing"}', '', 'done', '', 1),
	(4, '\xe11a575b5e783720bb74c0bce37a83be9baacc6721f32504b9e95240793ead2d', '\x31d081b5612f3225313ba1c02a96d27ecf86bd55a3862ddf6d552ac8a6f80e7a', 1795747043987, 'token', 'test-f323df7e', '1', '127.0.0.1', '77dcaae8dc60239d2d10b3bad3600c3f', 'http', 'offsets.pin', 'group', 'idle', NULL, '{"pinned_at":1795747043962,"topic":"t"}', '', 'done', '', 1),
	(5, '\x31d081b5612f3225313ba1c02a96d27ecf86bd55a3862ddf6d552ac8a6f80e7a', '\x7080142380945e13a720a33ffd1cfe76c5c93315117c77790ef24a7f05838aed', 1795747044098, 'token', 'test-f323df7e', '1', '127.0.0.1', '2059fd7c64ed3f31b001f57d78199c48', 'http', 'offsets.plan', 'group', 'idle', NULL, '{"changed":1,"clamped":0,"lag_change":2,"outside":0,"parameters":{"offset":3,"topics":["t"]},"partitions":1,"plan_id":"de4b8695-f61a-4439-9ac8-9e6203fc9c62","removed":0,"strategy":"to-offset","unknown":0}', 'bug 17', 'done', '', 1),
	(6, '\x7080142380945e13a720a33ffd1cfe76c5c93315117c77790ef24a7f05838aed', '\x84b2dd22b678150e2d63baa6358b06b9ca47e7184434c9c48bebf97d268272b9', 1795747044180, 'token', 'test-f323df7e', '1', '127.0.0.1', 'f90395c7176cf9f3033ad817ed27bec0', 'http', 'group.config', 'group', 'idle', '{"consumer.session.timeout.ms":null}', '{"consumer.session.timeout.ms":50000}', '', 'done', '', 1),
	(7, '\x84b2dd22b678150e2d63baa6358b06b9ca47e7184434c9c48bebf97d268272b9', '\x39530a05e3ce3f623af2747fbd0a7018e731ff836a209d94818e80643fd5686a', 1795747044320, 'token', 'test-f323df7e', '1', '127.0.0.1', '1a3251be892802df26a07fc35555f3c4', 'http', 'quota.change', 'quota', 'default', '{}', '{"cpu":"1000"}', '', 'done', '', 1),
	(8, '\x39530a05e3ce3f623af2747fbd0a7018e731ff836a209d94818e80643fd5686a', '\x6c1b44535c0c2b2112e80d013c37b13b56bdc3c1aded46fae5e25beb0bba3e69', 1795747044400, 'token', 'test-f323df7e', '1', '127.0.0.1', 'a5efaf9394b8df038b19131aeb7f5f96', 'http', 'topic.create', 'topic', 'gone', NULL, '{"labels":{},"partitions":1,"topic_id":"374c2c49-8f12-43ef-ab0a-da697ccb860a"}', '', 'done', '', 1),
	(9, '\x6c1b44535c0c2b2112e80d013c37b13b56bdc3c1aded46fae5e25beb0bba3e69', '\xc323001d2ecb372803c95d96f52d632808e74bb9491f804b8c3827a330c1ee43', 1795747044427, 'token', 'test-f323df7e', '1', '127.0.0.1', 'd4c2c6fcd2dc7194d144c66a9ba60f05', 'http', 'topic.delete', 'topic', 'gone', '{"labels":{},"partitions":1,"topic_id":"374c2c49-8f12-43ef-ab0a-da697ccb860a"}', NULL, '', 'done', '', 1);


--
-- Data for Name: kcoord_counter; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.kcoord_counter VALUES
	('of the dump', 7),
	('partition_changes:taken', 50),
	('partition_changes:stopped', 50);


--
-- Data for Name: kcoord_quota; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.kcoord_quota VALUES
	(1, 'default', '', 'cpu', 1000);


--
-- Data for Name: kcoord_throttled; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: kcoord_timerheartbeat; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: offset_commit_log_default; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.offset_commit_log_default VALUES
	(1, 1795747043810, 857, 'reset', 'idle', 't', 1, 5, -1, 'kept', NULL, '', -1, '', 'test-f323df7e', NULL, NULL),
	(2, 1795747044644, 874, 'commit', 'g', 't', 0, 7, -1, '', NULL, 'test-9fb4458f-76cb-4e9f-912f-471cc53e15b6', 1, 'test', 'test-f323df7e', NULL, NULL);


--
-- Data for Name: offsets_activity; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: offsets_alert; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: offsets_alertmessage; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: offsets_alertrule; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.offsets_alertrule VALUES
	(1, 'bad', true, 'literal', 'g', '', '{stuck}', NULL, NULL, 0, 0, true, '{ops}', 1, 'mara');


--
-- Data for Name: offsets_archivedday; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.offsets_archivedday VALUES
	(1, 20000, 'a', 's', 1, 10, 0, true, '82ffbae0-401f-4cb1-94c5-74f997696948');


--
-- Data for Name: offsets_committedoffset; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.offsets_committedoffset VALUES
	('t', 1, 5, -1, 'kept', 1795747043810, NULL, '', -1, 1, 1),
	('t', 0, 7, -1, '', 1795747044644, NULL, 'test-9fb4458f-76cb-4e9f-912f-471cc53e15b6', 1, 2, 3);


--
-- Data for Name: offsets_deletedtopic; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.offsets_deletedtopic VALUES
	(1, 'gone', 1795747044426, 'test-f323df7e', 1, true);


--
-- Data for Name: offsets_grouplag; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: offsets_groupverdict; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: offsets_lagsample; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: offsets_offsetplan; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.offsets_offsetplan VALUES
	('de4b8695-f61a-4439-9ac8-9e6203fc9c62', 'idle', 'to-offset', '{"offset": 3, "topics": ["t"]}', '{"changed": 1, "clamped": 0, "outside": 0, "removed": 0, "unknown": 0, "lag_change": 2, "partitions": 1}', 'planned', 'bug 17', 1795747044095, 'test-f323df7e', 'token:1', NULL, NULL, NULL, NULL, NULL, NULL);


--
-- Data for Name: offsets_pendingoffset; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: offsets_plannedoffset; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.offsets_plannedoffset VALUES
	('t', 1, 5, -1, 'kept', 1795747043810, NULL, 1, 3, 3, 0, 100, '', NULL, 'de4b8695-f61a-4439-9ac8-9e6203fc9c62');


--
-- Data for Name: offsets_producer; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: offsets_reconcilefinding; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.offsets_reconcilefinding VALUES
	(1, 'other_offset', 'billing', 'orders', 0, 10, 7, '{"journal_ids": [1]}', '572c1917-50ba-4cf9-b8df-413d7cf86128');


--
-- Data for Name: offsets_retentionpin; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.offsets_retentionpin VALUES
	(1, 'idle', 't', 1795747043962, 'test-f323df7e', '');


--
-- Data for Name: offsets_sparkrun; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.offsets_sparkrun VALUES
	('82ffbae0-401f-4cb1-94c5-74f997696948', 'archive', 'succeeded', '{}', 1795746984939, 'schedule', 1795746985939, 1795747015939, 1795747015939, NULL, 'host', 1, '', 'write', 0, 0, NULL, '', NULL, '', '', NULL, '', NULL, NULL, NULL, NULL, NULL, ''),
	('572c1917-50ba-4cf9-b8df-413d7cf86128', 'reconcile', 'succeeded', '{}', 1795746984942, 'schedule', 1795746985942, 1795747015942, 1795747015942, NULL, 'host', 1, '', 'write', 0, 0, NULL, '', NULL, '', '', NULL, '', NULL, NULL, NULL, NULL, NULL, '');


--
-- Data for Name: offsets_topiclag; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: offsets_topictotal; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: offsets_verdictrun; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: offsets_watermarksample; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Name: auth_group_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.auth_group_id_seq', 1, true);


--
-- Name: auth_group_permissions_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.auth_group_permissions_id_seq', 1, false);


--
-- Name: auth_permission_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.auth_permission_id_seq', 244, true);


--
-- Name: auth_user_groups_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.auth_user_groups_id_seq', 1, true);


--
-- Name: auth_user_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.auth_user_id_seq', 1, true);


--
-- Name: auth_user_user_permissions_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.auth_user_user_permissions_id_seq', 1, false);


--
-- Name: django_admin_log_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.django_admin_log_id_seq', 1, false);


--
-- Name: django_celery_beat_clockedschedule_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.django_celery_beat_clockedschedule_id_seq', 1, false);


--
-- Name: django_celery_beat_crontabschedule_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.django_celery_beat_crontabschedule_id_seq', 2, true);


--
-- Name: django_celery_beat_intervalschedule_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.django_celery_beat_intervalschedule_id_seq', 1, false);


--
-- Name: django_celery_beat_periodictask_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.django_celery_beat_periodictask_id_seq', 2, true);


--
-- Name: django_celery_beat_solarschedule_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.django_celery_beat_solarschedule_id_seq', 1, false);


--
-- Name: django_content_type_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.django_content_type_id_seq', 61, true);


--
-- Name: django_migrations_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.django_migrations_id_seq', 43, true);


--
-- Name: frontend_provideridentity_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.frontend_provideridentity_id_seq', 1, true);


--
-- Name: frontend_savedview_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.frontend_savedview_id_seq', 1, true);


--
-- Name: groups_consumermember_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.groups_consumermember_id_seq', 1, true);


--
-- Name: groups_coordinatornode_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.groups_coordinatornode_id_seq', 1, true);


--
-- Name: groups_event_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.groups_event_id_seq', 16, true);


--
-- Name: groups_group_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.groups_group_id_seq', 3, true);


--
-- Name: groups_groupconfigoverride_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.groups_groupconfigoverride_id_seq', 1, true);


--
-- Name: groups_grouplabels_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.groups_grouplabels_id_seq', 1, true);


--
-- Name: groups_member_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.groups_member_id_seq', 1, true);


--
-- Name: groups_partitionchange_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.groups_partitionchange_id_seq', 100, true);


--
-- Name: groups_pendingmember_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.groups_pendingmember_id_seq', 1, true);


--
-- Name: groups_topic_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.groups_topic_id_seq', 2, true);


--
-- Name: groups_watermark_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.groups_watermark_id_seq', 1, true);


--
-- Name: kcoord_accessrule_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.kcoord_accessrule_id_seq', 25, true);


--
-- Name: kcoord_apitoken_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.kcoord_apitoken_id_seq', 1, true);


--
-- Name: kcoord_auditpending_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.kcoord_auditpending_id_seq', 9, true);


--
-- Name: kcoord_quota_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.kcoord_quota_id_seq', 1, true);


--
-- Name: kcoord_throttled_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.kcoord_throttled_id_seq', 1, false);


--
-- Name: offset_commit_log_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.offset_commit_log_id_seq', 2, true);


--
-- Name: offsets_alert_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.offsets_alert_id_seq', 1, false);


--
-- Name: offsets_alertrule_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.offsets_alertrule_id_seq', 1, true);


--
-- Name: offsets_deletedtopic_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.offsets_deletedtopic_id_seq', 1, true);


--
-- Name: offsets_retentionpin_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.offsets_retentionpin_id_seq', 1, true);


--
-- Name: meta meta_queue_name_key; Type: CONSTRAINT; Schema: pgmq; Owner: -
--

ALTER TABLE ONLY pgmq.meta
    ADD CONSTRAINT meta_queue_name_key UNIQUE (queue_name);


--
-- Name: notify_insert_throttle notify_insert_throttle_queue_name_key; Type: CONSTRAINT; Schema: pgmq; Owner: -
--

ALTER TABLE ONLY pgmq.notify_insert_throttle
    ADD CONSTRAINT notify_insert_throttle_queue_name_key UNIQUE (queue_name);


--
-- Name: topic_bindings topic_bindings_unique_pattern_queue; Type: CONSTRAINT; Schema: pgmq; Owner: -
--

ALTER TABLE ONLY pgmq.topic_bindings
    ADD CONSTRAINT topic_bindings_unique_pattern_queue UNIQUE (pattern, queue_name);


--
-- Name: auth_group auth_group_name_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.auth_group
    ADD CONSTRAINT auth_group_name_key UNIQUE (name);


--
-- Name: auth_group_permissions auth_group_permissions_group_id_permission_id_0cd325b0_uniq; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.auth_group_permissions
    ADD CONSTRAINT auth_group_permissions_group_id_permission_id_0cd325b0_uniq UNIQUE (group_id, permission_id);


--
-- Name: auth_group_permissions auth_group_permissions_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.auth_group_permissions
    ADD CONSTRAINT auth_group_permissions_pkey PRIMARY KEY (id);


--
-- Name: auth_group auth_group_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.auth_group
    ADD CONSTRAINT auth_group_pkey PRIMARY KEY (id);


--
-- Name: auth_permission auth_permission_content_type_id_codename_01ab375a_uniq; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.auth_permission
    ADD CONSTRAINT auth_permission_content_type_id_codename_01ab375a_uniq UNIQUE (content_type_id, codename);


--
-- Name: auth_permission auth_permission_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.auth_permission
    ADD CONSTRAINT auth_permission_pkey PRIMARY KEY (id);


--
-- Name: auth_user_groups auth_user_groups_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.auth_user_groups
    ADD CONSTRAINT auth_user_groups_pkey PRIMARY KEY (id);


--
-- Name: auth_user_groups auth_user_groups_user_id_group_id_94350c0c_uniq; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.auth_user_groups
    ADD CONSTRAINT auth_user_groups_user_id_group_id_94350c0c_uniq UNIQUE (user_id, group_id);


--
-- Name: auth_user auth_user_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.auth_user
    ADD CONSTRAINT auth_user_pkey PRIMARY KEY (id);


--
-- Name: auth_user_user_permissions auth_user_user_permissions_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.auth_user_user_permissions
    ADD CONSTRAINT auth_user_user_permissions_pkey PRIMARY KEY (id);


--
-- Name: auth_user_user_permissions auth_user_user_permissions_user_id_permission_id_14a6b632_uniq; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.auth_user_user_permissions
    ADD CONSTRAINT auth_user_user_permissions_user_id_permission_id_14a6b632_uniq UNIQUE (user_id, permission_id);


--
-- Name: auth_user auth_user_username_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.auth_user
    ADD CONSTRAINT auth_user_username_key UNIQUE (username);


--
-- Name: django_admin_log django_admin_log_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.django_admin_log
    ADD CONSTRAINT django_admin_log_pkey PRIMARY KEY (id);


--
-- Name: django_celery_beat_clockedschedule django_celery_beat_clockedschedule_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.django_celery_beat_clockedschedule
    ADD CONSTRAINT django_celery_beat_clockedschedule_pkey PRIMARY KEY (id);


--
-- Name: django_celery_beat_crontabschedule django_celery_beat_crontabschedule_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.django_celery_beat_crontabschedule
    ADD CONSTRAINT django_celery_beat_crontabschedule_pkey PRIMARY KEY (id);


--
-- Name: django_celery_beat_intervalschedule django_celery_beat_intervalschedule_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.django_celery_beat_intervalschedule
    ADD CONSTRAINT django_celery_beat_intervalschedule_pkey PRIMARY KEY (id);


--
-- Name: django_celery_beat_periodictask django_celery_beat_periodictask_name_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.django_celery_beat_periodictask
    ADD CONSTRAINT django_celery_beat_periodictask_name_key UNIQUE (name);


--
-- Name: django_celery_beat_periodictask django_celery_beat_periodictask_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.django_celery_beat_periodictask
    ADD CONSTRAINT django_celery_beat_periodictask_pkey PRIMARY KEY (id);


--
-- Name: django_celery_beat_periodictasks django_celery_beat_periodictasks_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.django_celery_beat_periodictasks
    ADD CONSTRAINT django_celery_beat_periodictasks_pkey PRIMARY KEY (ident);


--
-- Name: django_celery_beat_solarschedule django_celery_beat_solar_event_latitude_longitude_ba64999a_uniq; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.django_celery_beat_solarschedule
    ADD CONSTRAINT django_celery_beat_solar_event_latitude_longitude_ba64999a_uniq UNIQUE (event, latitude, longitude);


--
-- Name: django_celery_beat_solarschedule django_celery_beat_solarschedule_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.django_celery_beat_solarschedule
    ADD CONSTRAINT django_celery_beat_solarschedule_pkey PRIMARY KEY (id);


--
-- Name: django_content_type django_content_type_app_label_model_76bd3d3b_uniq; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.django_content_type
    ADD CONSTRAINT django_content_type_app_label_model_76bd3d3b_uniq UNIQUE (app_label, model);


--
-- Name: django_content_type django_content_type_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.django_content_type
    ADD CONSTRAINT django_content_type_pkey PRIMARY KEY (id);


--
-- Name: django_migrations django_migrations_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.django_migrations
    ADD CONSTRAINT django_migrations_pkey PRIMARY KEY (id);


--
-- Name: django_session django_session_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.django_session
    ADD CONSTRAINT django_session_pkey PRIMARY KEY (session_key);


--
-- Name: frontend_provideridentity frontend_provideridentity_once; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.frontend_provideridentity
    ADD CONSTRAINT frontend_provideridentity_once UNIQUE (issuer, subject);


--
-- Name: frontend_provideridentity frontend_provideridentity_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.frontend_provideridentity
    ADD CONSTRAINT frontend_provideridentity_pkey PRIMARY KEY (id);


--
-- Name: frontend_provideridentity frontend_provideridentity_user_id_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.frontend_provideridentity
    ADD CONSTRAINT frontend_provideridentity_user_id_key UNIQUE (user_id);


--
-- Name: frontend_savedview frontend_savedview_name; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.frontend_savedview
    ADD CONSTRAINT frontend_savedview_name UNIQUE (owner_id, name);


--
-- Name: frontend_savedview frontend_savedview_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.frontend_savedview
    ADD CONSTRAINT frontend_savedview_pkey PRIMARY KEY (id);


--
-- Name: frontend_signinattempt frontend_signinattempt_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.frontend_signinattempt
    ADD CONSTRAINT frontend_signinattempt_pkey PRIMARY KEY (key);


--
-- Name: groups_assignment groups_assignment_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_assignment
    ADD CONSTRAINT groups_assignment_pkey PRIMARY KEY (group_id, topic_id, partition);


--
-- Name: groups_clientsoftware groups_clientsoftware_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_clientsoftware
    ADD CONSTRAINT groups_clientsoftware_pkey PRIMARY KEY (client_id, client_host);


--
-- Name: groups_groupconfigoverride groups_configoverride_once; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_groupconfigoverride
    ADD CONSTRAINT groups_configoverride_once UNIQUE (group_name, name);


--
-- Name: groups_consumermember groups_consumermember_id_once; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_consumermember
    ADD CONSTRAINT groups_consumermember_id_once UNIQUE (group_id, member_id);


--
-- Name: groups_consumermember groups_consumermember_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_consumermember
    ADD CONSTRAINT groups_consumermember_pkey PRIMARY KEY (id);


--
-- Name: groups_coordinatornode groups_coordinatornode_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_coordinatornode
    ADD CONSTRAINT groups_coordinatornode_pkey PRIMARY KEY (id);


--
-- Name: groups_coordinatorpartition groups_coordinatorpartition_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_coordinatorpartition
    ADD CONSTRAINT groups_coordinatorpartition_pkey PRIMARY KEY (partition);


--
-- Name: groups_event groups_event_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_event
    ADD CONSTRAINT groups_event_pkey PRIMARY KEY (id);


--
-- Name: groups_generationtopics groups_generationtopics_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_generationtopics
    ADD CONSTRAINT groups_generationtopics_pkey PRIMARY KEY (group_id);


--
-- Name: groups_group groups_group_group_id_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_group
    ADD CONSTRAINT groups_group_group_id_key UNIQUE (group_id);


--
-- Name: groups_group groups_group_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_group
    ADD CONSTRAINT groups_group_pkey PRIMARY KEY (id);


--
-- Name: groups_groupconfigoverride groups_groupconfigoverride_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_groupconfigoverride
    ADD CONSTRAINT groups_groupconfigoverride_pkey PRIMARY KEY (id);


--
-- Name: groups_grouplabels groups_grouplabels_group_name_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_grouplabels
    ADD CONSTRAINT groups_grouplabels_group_name_key UNIQUE (group_name);


--
-- Name: groups_grouplabels groups_grouplabels_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_grouplabels
    ADD CONSTRAINT groups_grouplabels_pkey PRIMARY KEY (id);


--
-- Name: groups_member groups_member_id_once; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_member
    ADD CONSTRAINT groups_member_id_once UNIQUE (group_id, member_id);


--
-- Name: groups_member groups_member_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_member
    ADD CONSTRAINT groups_member_pkey PRIMARY KEY (id);


--
-- Name: groups_partitionchange groups_partitionchange_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_partitionchange
    ADD CONSTRAINT groups_partitionchange_pkey PRIMARY KEY (id);


--
-- Name: groups_pendingmember groups_pendingmember_once; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_pendingmember
    ADD CONSTRAINT groups_pendingmember_once UNIQUE (group_id, member_id);


--
-- Name: groups_pendingmember groups_pendingmember_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_pendingmember
    ADD CONSTRAINT groups_pendingmember_pkey PRIMARY KEY (id);


--
-- Name: groups_revision groups_revision_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_revision
    ADD CONSTRAINT groups_revision_pkey PRIMARY KEY (subject);


--
-- Name: groups_topic groups_topic_name_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_topic
    ADD CONSTRAINT groups_topic_name_key UNIQUE (name);


--
-- Name: groups_topic groups_topic_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_topic
    ADD CONSTRAINT groups_topic_pkey PRIMARY KEY (id);


--
-- Name: groups_topic groups_topic_topic_id_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_topic
    ADD CONSTRAINT groups_topic_topic_id_key UNIQUE (topic_id);


--
-- Name: groups_watermark groups_watermark_once; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_watermark
    ADD CONSTRAINT groups_watermark_once UNIQUE (topic_id, partition);


--
-- Name: groups_watermark groups_watermark_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_watermark
    ADD CONSTRAINT groups_watermark_pkey PRIMARY KEY (id);


--
-- Name: kcoord_accessrule kcoord_accessrule_group_once; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.kcoord_accessrule
    ADD CONSTRAINT kcoord_accessrule_group_once UNIQUE (group_id, effect, operation, resource, pattern, name);


--
-- Name: kcoord_accessrule kcoord_accessrule_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.kcoord_accessrule
    ADD CONSTRAINT kcoord_accessrule_pkey PRIMARY KEY (id);


--
-- Name: kcoord_accessrule kcoord_accessrule_token_once; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.kcoord_accessrule
    ADD CONSTRAINT kcoord_accessrule_token_once UNIQUE (token_id, effect, operation, resource, pattern, name);


--
-- Name: kcoord_accessrule kcoord_accessrule_user_once; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.kcoord_accessrule
    ADD CONSTRAINT kcoord_accessrule_user_once UNIQUE (user_id, effect, operation, resource, pattern, name);


--
-- Name: kcoord_apitoken kcoord_apitoken_digest_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.kcoord_apitoken
    ADD CONSTRAINT kcoord_apitoken_digest_key UNIQUE (digest);


--
-- Name: kcoord_apitoken kcoord_apitoken_name_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.kcoord_apitoken
    ADD CONSTRAINT kcoord_apitoken_name_key UNIQUE (name);


--
-- Name: kcoord_apitoken kcoord_apitoken_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.kcoord_apitoken
    ADD CONSTRAINT kcoord_apitoken_pkey PRIMARY KEY (id);


--
-- Name: kcoord_apitoken kcoord_apitoken_previous_digest_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.kcoord_apitoken
    ADD CONSTRAINT kcoord_apitoken_previous_digest_key UNIQUE (previous_digest);


--
-- Name: kcoord_auditchain kcoord_auditchain_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.kcoord_auditchain
    ADD CONSTRAINT kcoord_auditchain_pkey PRIMARY KEY (id);


--
-- Name: kcoord_auditpending kcoord_auditpending_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.kcoord_auditpending
    ADD CONSTRAINT kcoord_auditpending_pkey PRIMARY KEY (id);


--
-- Name: kcoord_auditrecord kcoord_auditrecord_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.kcoord_auditrecord
    ADD CONSTRAINT kcoord_auditrecord_pkey PRIMARY KEY (seq);


--
-- Name: kcoord_counter kcoord_counter_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.kcoord_counter
    ADD CONSTRAINT kcoord_counter_pkey PRIMARY KEY (name);


--
-- Name: kcoord_quota kcoord_quota_once; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.kcoord_quota
    ADD CONSTRAINT kcoord_quota_once UNIQUE (kind, name, budget);


--
-- Name: kcoord_quota kcoord_quota_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.kcoord_quota
    ADD CONSTRAINT kcoord_quota_pkey PRIMARY KEY (id);


--
-- Name: kcoord_throttled kcoord_throttled_once; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.kcoord_throttled
    ADD CONSTRAINT kcoord_throttled_once UNIQUE (kind, name, budget);


--
-- Name: kcoord_throttled kcoord_throttled_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.kcoord_throttled
    ADD CONSTRAINT kcoord_throttled_pkey PRIMARY KEY (id);


--
-- Name: kcoord_timerheartbeat kcoord_timerheartbeat_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.kcoord_timerheartbeat
    ADD CONSTRAINT kcoord_timerheartbeat_pkey PRIMARY KEY (id);


--
-- Name: offsets_activity offsets_activity_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_activity
    ADD CONSTRAINT offsets_activity_pkey PRIMARY KEY (at);


--
-- Name: offsets_alert offsets_alert_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_alert
    ADD CONSTRAINT offsets_alert_pkey PRIMARY KEY (id);


--
-- Name: offsets_alertmessage offsets_alertmessage_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_alertmessage
    ADD CONSTRAINT offsets_alertmessage_pkey PRIMARY KEY (id);


--
-- Name: offsets_alertrule offsets_alertrule_name_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_alertrule
    ADD CONSTRAINT offsets_alertrule_name_key UNIQUE (name);


--
-- Name: offsets_alertrule offsets_alertrule_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_alertrule
    ADD CONSTRAINT offsets_alertrule_pkey PRIMARY KEY (id);


--
-- Name: offsets_archivedday offsets_archivedday_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_archivedday
    ADD CONSTRAINT offsets_archivedday_pkey PRIMARY KEY (run_id, manifest, day);


--
-- Name: offsets_committedoffset offsets_committedoffset_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_committedoffset
    ADD CONSTRAINT offsets_committedoffset_pkey PRIMARY KEY (group_id, topic, partition);


--
-- Name: offsets_deletedtopic offsets_deletedtopic_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_deletedtopic
    ADD CONSTRAINT offsets_deletedtopic_pkey PRIMARY KEY (id);


--
-- Name: offsets_grouplag offsets_grouplag_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_grouplag
    ADD CONSTRAINT offsets_grouplag_pkey PRIMARY KEY (group_id);


--
-- Name: offsets_groupverdict offsets_groupverdict_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_groupverdict
    ADD CONSTRAINT offsets_groupverdict_pkey PRIMARY KEY (group_id, kind, topic);


--
-- Name: offsets_lagsample offsets_lagsample_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_lagsample
    ADD CONSTRAINT offsets_lagsample_pkey PRIMARY KEY (group_name, topic, at);


--
-- Name: offsets_offsetplan offsets_offsetplan_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_offsetplan
    ADD CONSTRAINT offsets_offsetplan_pkey PRIMARY KEY (id);


--
-- Name: offsets_pendingoffset offsets_pendingoffset_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_pendingoffset
    ADD CONSTRAINT offsets_pendingoffset_pkey PRIMARY KEY (producer_id, group_id, topic, partition);


--
-- Name: offsets_retentionpin offsets_pin_once; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_retentionpin
    ADD CONSTRAINT offsets_pin_once UNIQUE (group_name, topic);


--
-- Name: offsets_plannedoffset offsets_plannedoffset_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_plannedoffset
    ADD CONSTRAINT offsets_plannedoffset_pkey PRIMARY KEY (plan_id, topic, partition);


--
-- Name: offsets_producer offsets_producer_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_producer
    ADD CONSTRAINT offsets_producer_pkey PRIMARY KEY (producer_id);


--
-- Name: offsets_producer offsets_producer_transactional_id_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_producer
    ADD CONSTRAINT offsets_producer_transactional_id_key UNIQUE (transactional_id);


--
-- Name: offsets_reconcilefinding offsets_reconcilefinding_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_reconcilefinding
    ADD CONSTRAINT offsets_reconcilefinding_pkey PRIMARY KEY (run_id, number);


--
-- Name: offsets_retentionpin offsets_retentionpin_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_retentionpin
    ADD CONSTRAINT offsets_retentionpin_pkey PRIMARY KEY (id);


--
-- Name: offsets_sparkrun offsets_sparkrun_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_sparkrun
    ADD CONSTRAINT offsets_sparkrun_pkey PRIMARY KEY (id);


--
-- Name: offsets_topiclag offsets_topiclag_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_topiclag
    ADD CONSTRAINT offsets_topiclag_pkey PRIMARY KEY (group_id, topic);


--
-- Name: offsets_topictotal offsets_topictotal_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_topictotal
    ADD CONSTRAINT offsets_topictotal_pkey PRIMARY KEY (topic);


--
-- Name: offsets_verdictrun offsets_verdictrun_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_verdictrun
    ADD CONSTRAINT offsets_verdictrun_pkey PRIMARY KEY (name);


--
-- Name: offsets_watermarksample offsets_watermarksample_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_watermarksample
    ADD CONSTRAINT offsets_watermarksample_pkey PRIMARY KEY (topic_id, partition, at);


--
-- Name: idx_notify_throttle_active; Type: INDEX; Schema: pgmq; Owner: -
--

CREATE INDEX idx_notify_throttle_active ON pgmq.notify_insert_throttle USING btree (queue_name, last_notified_at) WHERE (throttle_interval_ms > 0);


--
-- Name: idx_topic_bindings_covering; Type: INDEX; Schema: pgmq; Owner: -
--

CREATE INDEX idx_topic_bindings_covering ON pgmq.topic_bindings USING btree (pattern) INCLUDE (queue_name, compiled_regex);


--
-- Name: auth_group_name_a6ea08ec_like; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX auth_group_name_a6ea08ec_like ON public.auth_group USING btree (name varchar_pattern_ops);


--
-- Name: auth_group_permissions_group_id_b120cbf9; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX auth_group_permissions_group_id_b120cbf9 ON public.auth_group_permissions USING btree (group_id);


--
-- Name: auth_group_permissions_permission_id_84c5c92e; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX auth_group_permissions_permission_id_84c5c92e ON public.auth_group_permissions USING btree (permission_id);


--
-- Name: auth_permission_content_type_id_2f476e4b; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX auth_permission_content_type_id_2f476e4b ON public.auth_permission USING btree (content_type_id);


--
-- Name: auth_user_groups_group_id_97559544; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX auth_user_groups_group_id_97559544 ON public.auth_user_groups USING btree (group_id);


--
-- Name: auth_user_groups_user_id_6a12ed8b; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX auth_user_groups_user_id_6a12ed8b ON public.auth_user_groups USING btree (user_id);


--
-- Name: auth_user_user_permissions_permission_id_1fbb5f2c; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX auth_user_user_permissions_permission_id_1fbb5f2c ON public.auth_user_user_permissions USING btree (permission_id);


--
-- Name: auth_user_user_permissions_user_id_a95ead1b; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX auth_user_user_permissions_user_id_a95ead1b ON public.auth_user_user_permissions USING btree (user_id);


--
-- Name: auth_user_username_6821ab7c_like; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX auth_user_username_6821ab7c_like ON public.auth_user USING btree (username varchar_pattern_ops);


--
-- Name: django_admin_log_content_type_id_c4bce8eb; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX django_admin_log_content_type_id_c4bce8eb ON public.django_admin_log USING btree (content_type_id);


--
-- Name: django_admin_log_user_id_c564eba6; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX django_admin_log_user_id_c564eba6 ON public.django_admin_log USING btree (user_id);


--
-- Name: django_celery_beat_periodictask_clocked_id_47a69f82; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX django_celery_beat_periodictask_clocked_id_47a69f82 ON public.django_celery_beat_periodictask USING btree (clocked_id);


--
-- Name: django_celery_beat_periodictask_crontab_id_d3cba168; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX django_celery_beat_periodictask_crontab_id_d3cba168 ON public.django_celery_beat_periodictask USING btree (crontab_id);


--
-- Name: django_celery_beat_periodictask_interval_id_a8ca27da; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX django_celery_beat_periodictask_interval_id_a8ca27da ON public.django_celery_beat_periodictask USING btree (interval_id);


--
-- Name: django_celery_beat_periodictask_name_265a36b7_like; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX django_celery_beat_periodictask_name_265a36b7_like ON public.django_celery_beat_periodictask USING btree (name varchar_pattern_ops);


--
-- Name: django_celery_beat_periodictask_solar_id_a87ce72c; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX django_celery_beat_periodictask_solar_id_a87ce72c ON public.django_celery_beat_periodictask USING btree (solar_id);


--
-- Name: django_session_expire_date_a5c62663; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX django_session_expire_date_a5c62663 ON public.django_session USING btree (expire_date);


--
-- Name: django_session_session_key_c0390e0f_like; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX django_session_session_key_c0390e0f_like ON public.django_session USING btree (session_key varchar_pattern_ops);


--
-- Name: frontend_savedview_owner_id_bc0efa9b; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX frontend_savedview_owner_id_bc0efa9b ON public.frontend_savedview USING btree (owner_id);


--
-- Name: frontend_signin_by_time; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX frontend_signin_by_time ON public.frontend_signinattempt USING btree (last_at);


--
-- Name: frontend_signinattempt_key_9361e7d7_like; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX frontend_signinattempt_key_9361e7d7_like ON public.frontend_signinattempt USING btree (key varchar_pattern_ops);


--
-- Name: groups_assignment_by_name; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX groups_assignment_by_name ON public.groups_assignment USING btree (group_id, topic, partition);


--
-- Name: groups_assignment_by_owner; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX groups_assignment_by_owner ON public.groups_assignment USING btree (group_id, member_id, topic, partition);


--
-- Name: groups_assignment_by_topic; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX groups_assignment_by_topic ON public.groups_assignment USING btree (topic, partition);


--
-- Name: groups_assignment_group_id_4e3654be; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX groups_assignment_group_id_4e3654be ON public.groups_assignment USING btree (group_id);


--
-- Name: groups_consumermember_group_id_0f0a0693; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX groups_consumermember_group_id_0f0a0693 ON public.groups_consumermember USING btree (group_id);


--
-- Name: groups_consumermember_instance_once; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX groups_consumermember_instance_once ON public.groups_consumermember USING btree (group_id, instance_id) WHERE (instance_id IS NOT NULL);


--
-- Name: groups_coordinatornode_once; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX groups_coordinatornode_once ON public.groups_coordinatornode USING btree (node_id) WHERE (ended_at IS NULL);


--
-- Name: groups_coordinatornode_url_once; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX groups_coordinatornode_url_once ON public.groups_coordinatornode USING btree (url) WHERE ((ended_at IS NULL) AND (NOT ((url)::text = ''::text)));


--
-- Name: groups_event_of_group; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX groups_event_of_group ON public.groups_event USING btree (group_name, id);


--
-- Name: groups_event_of_people; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX groups_event_of_people ON public.groups_event USING btree (at, id) WHERE ((detail ? 'principal'::text) OR ((kind)::text = 'group_deleted'::text));


--
-- Name: groups_group_by_change; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX groups_group_by_change ON public.groups_group USING btree (updated_at DESC, group_id);


--
-- Name: groups_group_by_state; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX groups_group_by_state ON public.groups_group USING btree (state, group_id);


--
-- Name: groups_group_due; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX groups_group_due ON public.groups_group USING btree (wake_at) WHERE (wake_at IS NOT NULL);


--
-- Name: groups_group_group_id_5517a49f_like; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX groups_group_group_id_5517a49f_like ON public.groups_group USING btree (group_id varchar_pattern_ops);


--
-- Name: groups_grouplabels_group_name_b38a5d76_like; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX groups_grouplabels_group_name_b38a5d76_like ON public.groups_grouplabels USING btree (group_name varchar_pattern_ops);


--
-- Name: groups_grouplabels_labels; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX groups_grouplabels_labels ON public.groups_grouplabels USING gin (labels);


--
-- Name: groups_member_group_id_fc8e1db6; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX groups_member_group_id_fc8e1db6 ON public.groups_member USING btree (group_id);


--
-- Name: groups_member_instance_once; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX groups_member_instance_once ON public.groups_member USING btree (group_id, instance_id) WHERE (instance_id IS NOT NULL);


--
-- Name: groups_partitionchange_by_age; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX groups_partitionchange_by_age ON public.groups_partitionchange USING btree (at DESC);


--
-- Name: groups_pendingmember_group_id_8f2ede2c; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX groups_pendingmember_group_id_8f2ede2c ON public.groups_pendingmember USING btree (group_id);


--
-- Name: groups_revision_subject_aa79606d_like; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX groups_revision_subject_aa79606d_like ON public.groups_revision USING btree (subject varchar_pattern_ops);


--
-- Name: groups_topic_name_14d7216c_like; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX groups_topic_name_14d7216c_like ON public.groups_topic USING btree (name varchar_pattern_ops);


--
-- Name: groups_watermark_topic_id_2341226a; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX groups_watermark_topic_id_2341226a ON public.groups_watermark USING btree (topic_id);


--
-- Name: kcoord_accessrule_group_id_a6122f11; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX kcoord_accessrule_group_id_a6122f11 ON public.kcoord_accessrule USING btree (group_id);


--
-- Name: kcoord_accessrule_token_id_80faf997; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX kcoord_accessrule_token_id_80faf997 ON public.kcoord_accessrule USING btree (token_id);


--
-- Name: kcoord_accessrule_user_id_aded973e; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX kcoord_accessrule_user_id_aded973e ON public.kcoord_accessrule USING btree (user_id);


--
-- Name: kcoord_apitoken_digest_ef848dcb_like; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX kcoord_apitoken_digest_ef848dcb_like ON public.kcoord_apitoken USING btree (digest varchar_pattern_ops);


--
-- Name: kcoord_apitoken_name_ffe4c1f4_like; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX kcoord_apitoken_name_ffe4c1f4_like ON public.kcoord_apitoken USING btree (name varchar_pattern_ops);


--
-- Name: kcoord_apitoken_owner_id_a38bbacf; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX kcoord_apitoken_owner_id_a38bbacf ON public.kcoord_apitoken USING btree (owner_id);


--
-- Name: kcoord_apitoken_previous_digest_03985893_like; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX kcoord_apitoken_previous_digest_03985893_like ON public.kcoord_apitoken USING btree (previous_digest varchar_pattern_ops);


--
-- Name: kcoord_audit_by_name; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX kcoord_audit_by_name ON public.kcoord_auditrecord USING btree (resource, name, seq);


--
-- Name: kcoord_audit_by_time; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX kcoord_audit_by_time ON public.kcoord_auditrecord USING btree (at);


--
-- Name: kcoord_counter_name_b126c02f_like; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX kcoord_counter_name_b126c02f_like ON public.kcoord_counter USING btree (name varchar_pattern_ops);


--
-- Name: offset_commit_log_by_group; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offset_commit_log_by_group ON ONLY public.offset_commit_log USING btree (group_name, at, id);


--
-- Name: offset_commit_log_by_partition; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offset_commit_log_by_partition ON ONLY public.offset_commit_log USING btree (group_name, topic, partition, at, id);


--
-- Name: offset_commit_log_changes; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offset_commit_log_changes ON ONLY public.offset_commit_log USING btree (group_name, at, id) WHERE ((kind)::text <> ALL ((ARRAY['commit'::character varying, 'txn_commit'::character varying])::text[]));


--
-- Name: offset_commit_log_default_group_name_at_id_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offset_commit_log_default_group_name_at_id_idx ON public.offset_commit_log_default USING btree (group_name, at, id);


--
-- Name: offset_commit_log_default_group_name_at_id_idx1; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offset_commit_log_default_group_name_at_id_idx1 ON public.offset_commit_log_default USING btree (group_name, at, id) WHERE ((kind)::text <> ALL ((ARRAY['commit'::character varying, 'txn_commit'::character varying])::text[]));


--
-- Name: offset_commit_log_default_group_name_topic_partition_at_id_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offset_commit_log_default_group_name_topic_partition_at_id_idx ON public.offset_commit_log_default USING btree (group_name, topic, partition, at, id);


--
-- Name: offsets_alert_by_end; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offsets_alert_by_end ON public.offsets_alert USING btree (resolved_at);


--
-- Name: offsets_alert_by_rule; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offsets_alert_by_rule ON public.offsets_alert USING btree (rule_id);


--
-- Name: offsets_alertrule_name_1ced5b0f_like; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offsets_alertrule_name_1ced5b0f_like ON public.offsets_alertrule USING btree (name varchar_pattern_ops);


--
-- Name: offsets_archivedday_counts; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offsets_archivedday_counts ON public.offsets_archivedday USING btree (day) WHERE counts;


--
-- Name: offsets_committed_by_topic; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offsets_committed_by_topic ON public.offsets_committedoffset USING btree (topic, partition);


--
-- Name: offsets_finding_by_group; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offsets_finding_by_group ON public.offsets_reconcilefinding USING btree (group_name, run_id);


--
-- Name: offsets_lagsample_time; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offsets_lagsample_time ON public.offsets_lagsample USING btree (at);


--
-- Name: offsets_message_by_time; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offsets_message_by_time ON public.offsets_alertmessage USING btree (created_at DESC);


--
-- Name: offsets_message_due; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offsets_message_due ON public.offsets_alertmessage USING btree (next_at) WHERE (next_at IS NOT NULL);


--
-- Name: offsets_one_alert; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX offsets_one_alert ON public.offsets_alert USING btree (rule_id, group_name) WHERE (resolved_at IS NULL);


--
-- Name: offsets_pending_by_group; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offsets_pending_by_group ON public.offsets_pendingoffset USING btree (group_id, topic, partition);


--
-- Name: offsets_pendingoffset_group_id_0141a6cc; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offsets_pendingoffset_group_id_0141a6cc ON public.offsets_pendingoffset USING btree (group_id);


--
-- Name: offsets_pendingoffset_producer_id_b3e289a8; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offsets_pendingoffset_producer_id_b3e289a8 ON public.offsets_pendingoffset USING btree (producer_id);


--
-- Name: offsets_plan_by_group; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offsets_plan_by_group ON public.offsets_offsetplan USING btree (group_name, created_at DESC);


--
-- Name: offsets_plan_by_time; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offsets_plan_by_time ON public.offsets_offsetplan USING btree (created_at, id);


--
-- Name: offsets_producer_transactional_id_34d7a0e0_like; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offsets_producer_transactional_id_34d7a0e0_like ON public.offsets_producer USING btree (transactional_id varchar_pattern_ops);


--
-- Name: offsets_sample_by_end; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offsets_sample_by_end ON public.offsets_watermarksample USING btree (topic_id, partition, log_end_offset, at);


--
-- Name: offsets_sparkrun_by_kind; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offsets_sparkrun_by_kind ON public.offsets_sparkrun USING btree (kind, requested_at DESC);


--
-- Name: offsets_topiclag_by_topic; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offsets_topiclag_by_topic ON public.offsets_topiclag USING btree (topic, group_id);


--
-- Name: offsets_topictotal_topic_be70e502_like; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offsets_topictotal_topic_be70e502_like ON public.offsets_topictotal USING btree (topic varchar_pattern_ops);


--
-- Name: offsets_verdict_by_kind; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offsets_verdict_by_kind ON public.offsets_groupverdict USING btree (kind, since);


--
-- Name: offsets_verdictrun_name_d578e6b2_like; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX offsets_verdictrun_name_d578e6b2_like ON public.offsets_verdictrun USING btree (name varchar_pattern_ops);


--
-- Name: offset_commit_log_default_group_name_at_id_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.offset_commit_log_by_group ATTACH PARTITION public.offset_commit_log_default_group_name_at_id_idx;


--
-- Name: offset_commit_log_default_group_name_at_id_idx1; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.offset_commit_log_changes ATTACH PARTITION public.offset_commit_log_default_group_name_at_id_idx1;


--
-- Name: offset_commit_log_default_group_name_topic_partition_at_id_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.offset_commit_log_by_partition ATTACH PARTITION public.offset_commit_log_default_group_name_topic_partition_at_id_idx;


--
-- Name: auth_user frontend_account_changed; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER frontend_account_changed AFTER UPDATE OF is_active, password ON public.auth_user FOR EACH ROW WHEN (((old.is_active <> new.is_active) OR ((old.password)::text <> (new.password)::text))) EXECUTE FUNCTION public.frontend_account_changed();


--
-- Name: auth_user frontend_account_deleted; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER frontend_account_deleted AFTER DELETE ON public.auth_user FOR EACH ROW EXECUTE FUNCTION public.frontend_account_changed();


--
-- Name: django_session frontend_session_ended; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER frontend_session_ended AFTER DELETE ON public.django_session FOR EACH ROW WHEN ((old.expire_date > now())) EXECUTE FUNCTION public.frontend_session_ended();


--
-- Name: kcoord_auditrecord kcoord_audit_guard_rows; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER kcoord_audit_guard_rows BEFORE DELETE OR UPDATE ON public.kcoord_auditrecord FOR EACH ROW EXECUTE FUNCTION public.kcoord_audit_guard();


--
-- Name: kcoord_auditrecord kcoord_audit_guard_table; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER kcoord_audit_guard_table BEFORE TRUNCATE ON public.kcoord_auditrecord FOR EACH STATEMENT EXECUTE FUNCTION public.kcoord_audit_guard();


--
-- Name: kcoord_auditpending kcoord_audit_seal; Type: TRIGGER; Schema: public; Owner: -
--

CREATE CONSTRAINT TRIGGER kcoord_audit_seal AFTER INSERT ON public.kcoord_auditpending DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.kcoord_audit_seal();


--
-- Name: kcoord_quota kcoord_quotas_changed; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER kcoord_quotas_changed AFTER INSERT OR DELETE OR UPDATE ON public.kcoord_quota FOR EACH STATEMENT EXECUTE FUNCTION public.kcoord_quotas_changed();


--
-- Name: auth_group kcoord_tokens_changed; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER kcoord_tokens_changed AFTER DELETE OR UPDATE ON public.auth_group FOR EACH STATEMENT EXECUTE FUNCTION public.kcoord_tokens_changed();


--
-- Name: auth_user kcoord_tokens_changed; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER kcoord_tokens_changed AFTER DELETE OR UPDATE OF is_active, is_superuser, username ON public.auth_user FOR EACH STATEMENT EXECUTE FUNCTION public.kcoord_tokens_changed();


--
-- Name: auth_user_groups kcoord_tokens_changed; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER kcoord_tokens_changed AFTER INSERT OR DELETE OR UPDATE ON public.auth_user_groups FOR EACH STATEMENT EXECUTE FUNCTION public.kcoord_tokens_changed();


--
-- Name: kcoord_accessrule kcoord_tokens_changed; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER kcoord_tokens_changed AFTER INSERT OR DELETE OR UPDATE ON public.kcoord_accessrule FOR EACH STATEMENT EXECUTE FUNCTION public.kcoord_tokens_changed();


--
-- Name: kcoord_apitoken kcoord_tokens_changed; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER kcoord_tokens_changed AFTER INSERT OR DELETE OR UPDATE OF name, digest, expires_at, owner_id, previous_digest, previous_until ON public.kcoord_apitoken FOR EACH STATEMENT EXECUTE FUNCTION public.kcoord_tokens_changed();


--
-- Name: notify_insert_throttle notify_insert_throttle_meta_queue_name_fk; Type: FK CONSTRAINT; Schema: pgmq; Owner: -
--

ALTER TABLE ONLY pgmq.notify_insert_throttle
    ADD CONSTRAINT notify_insert_throttle_meta_queue_name_fk FOREIGN KEY (queue_name) REFERENCES pgmq.meta(queue_name) ON DELETE CASCADE;


--
-- Name: topic_bindings topic_bindings_meta_queue_name_fk; Type: FK CONSTRAINT; Schema: pgmq; Owner: -
--

ALTER TABLE ONLY pgmq.topic_bindings
    ADD CONSTRAINT topic_bindings_meta_queue_name_fk FOREIGN KEY (queue_name) REFERENCES pgmq.meta(queue_name) ON DELETE CASCADE;


--
-- Name: auth_group_permissions auth_group_permissio_permission_id_84c5c92e_fk_auth_perm; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.auth_group_permissions
    ADD CONSTRAINT auth_group_permissio_permission_id_84c5c92e_fk_auth_perm FOREIGN KEY (permission_id) REFERENCES public.auth_permission(id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: auth_group_permissions auth_group_permissions_group_id_b120cbf9_fk_auth_group_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.auth_group_permissions
    ADD CONSTRAINT auth_group_permissions_group_id_b120cbf9_fk_auth_group_id FOREIGN KEY (group_id) REFERENCES public.auth_group(id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: auth_permission auth_permission_content_type_id_2f476e4b_fk_django_co; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.auth_permission
    ADD CONSTRAINT auth_permission_content_type_id_2f476e4b_fk_django_co FOREIGN KEY (content_type_id) REFERENCES public.django_content_type(id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: auth_user_groups auth_user_groups_group_id_97559544_fk_auth_group_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.auth_user_groups
    ADD CONSTRAINT auth_user_groups_group_id_97559544_fk_auth_group_id FOREIGN KEY (group_id) REFERENCES public.auth_group(id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: auth_user_groups auth_user_groups_user_id_6a12ed8b_fk_auth_user_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.auth_user_groups
    ADD CONSTRAINT auth_user_groups_user_id_6a12ed8b_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: auth_user_user_permissions auth_user_user_permi_permission_id_1fbb5f2c_fk_auth_perm; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.auth_user_user_permissions
    ADD CONSTRAINT auth_user_user_permi_permission_id_1fbb5f2c_fk_auth_perm FOREIGN KEY (permission_id) REFERENCES public.auth_permission(id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: auth_user_user_permissions auth_user_user_permissions_user_id_a95ead1b_fk_auth_user_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.auth_user_user_permissions
    ADD CONSTRAINT auth_user_user_permissions_user_id_a95ead1b_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: django_admin_log django_admin_log_content_type_id_c4bce8eb_fk_django_co; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.django_admin_log
    ADD CONSTRAINT django_admin_log_content_type_id_c4bce8eb_fk_django_co FOREIGN KEY (content_type_id) REFERENCES public.django_content_type(id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: django_admin_log django_admin_log_user_id_c564eba6_fk_auth_user_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.django_admin_log
    ADD CONSTRAINT django_admin_log_user_id_c564eba6_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: django_celery_beat_periodictask django_celery_beat_p_clocked_id_47a69f82_fk_django_ce; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.django_celery_beat_periodictask
    ADD CONSTRAINT django_celery_beat_p_clocked_id_47a69f82_fk_django_ce FOREIGN KEY (clocked_id) REFERENCES public.django_celery_beat_clockedschedule(id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: django_celery_beat_periodictask django_celery_beat_p_crontab_id_d3cba168_fk_django_ce; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.django_celery_beat_periodictask
    ADD CONSTRAINT django_celery_beat_p_crontab_id_d3cba168_fk_django_ce FOREIGN KEY (crontab_id) REFERENCES public.django_celery_beat_crontabschedule(id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: django_celery_beat_periodictask django_celery_beat_p_interval_id_a8ca27da_fk_django_ce; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.django_celery_beat_periodictask
    ADD CONSTRAINT django_celery_beat_p_interval_id_a8ca27da_fk_django_ce FOREIGN KEY (interval_id) REFERENCES public.django_celery_beat_intervalschedule(id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: django_celery_beat_periodictask django_celery_beat_p_solar_id_a87ce72c_fk_django_ce; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.django_celery_beat_periodictask
    ADD CONSTRAINT django_celery_beat_p_solar_id_a87ce72c_fk_django_ce FOREIGN KEY (solar_id) REFERENCES public.django_celery_beat_solarschedule(id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: frontend_provideridentity frontend_provideridentity_user_id_714faa32_fk_auth_user_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.frontend_provideridentity
    ADD CONSTRAINT frontend_provideridentity_user_id_714faa32_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: frontend_savedview frontend_savedview_owner_id_bc0efa9b_fk_auth_user_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.frontend_savedview
    ADD CONSTRAINT frontend_savedview_owner_id_bc0efa9b_fk_auth_user_id FOREIGN KEY (owner_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: groups_assignment groups_assignment_group_fk; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_assignment
    ADD CONSTRAINT groups_assignment_group_fk FOREIGN KEY (group_id) REFERENCES public.groups_group(id) ON DELETE CASCADE;


--
-- Name: groups_consumermember groups_consumermember_group_fk; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_consumermember
    ADD CONSTRAINT groups_consumermember_group_fk FOREIGN KEY (group_id) REFERENCES public.groups_group(id) ON DELETE CASCADE;


--
-- Name: groups_coordinatorpartition groups_coordinatorpa_owner_id_e0bbaf4e_fk_groups_co; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_coordinatorpartition
    ADD CONSTRAINT groups_coordinatorpa_owner_id_e0bbaf4e_fk_groups_co FOREIGN KEY (owner_id) REFERENCES public.groups_coordinatornode(id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: groups_generationtopics groups_generationtopics_group_fk; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_generationtopics
    ADD CONSTRAINT groups_generationtopics_group_fk FOREIGN KEY (group_id) REFERENCES public.groups_group(id) ON DELETE CASCADE;


--
-- Name: groups_member groups_member_group_fk; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_member
    ADD CONSTRAINT groups_member_group_fk FOREIGN KEY (group_id) REFERENCES public.groups_group(id) ON DELETE CASCADE;


--
-- Name: groups_pendingmember groups_pendingmember_group_fk; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_pendingmember
    ADD CONSTRAINT groups_pendingmember_group_fk FOREIGN KEY (group_id) REFERENCES public.groups_group(id) ON DELETE CASCADE;


--
-- Name: groups_watermark groups_watermark_topic_id_2341226a_fk_groups_topic_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.groups_watermark
    ADD CONSTRAINT groups_watermark_topic_id_2341226a_fk_groups_topic_id FOREIGN KEY (topic_id) REFERENCES public.groups_topic(id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: kcoord_accessrule kcoord_accessrule_group_id_a6122f11_fk_auth_group_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.kcoord_accessrule
    ADD CONSTRAINT kcoord_accessrule_group_id_a6122f11_fk_auth_group_id FOREIGN KEY (group_id) REFERENCES public.auth_group(id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: kcoord_accessrule kcoord_accessrule_token_id_80faf997_fk_kcoord_apitoken_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.kcoord_accessrule
    ADD CONSTRAINT kcoord_accessrule_token_id_80faf997_fk_kcoord_apitoken_id FOREIGN KEY (token_id) REFERENCES public.kcoord_apitoken(id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: kcoord_accessrule kcoord_accessrule_user_id_aded973e_fk_auth_user_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.kcoord_accessrule
    ADD CONSTRAINT kcoord_accessrule_user_id_aded973e_fk_auth_user_id FOREIGN KEY (user_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: kcoord_apitoken kcoord_apitoken_owner_id_a38bbacf_fk_auth_user_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.kcoord_apitoken
    ADD CONSTRAINT kcoord_apitoken_owner_id_a38bbacf_fk_auth_user_id FOREIGN KEY (owner_id) REFERENCES public.auth_user(id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: offsets_alert offsets_alert_rule_id_38824aee_fk_offsets_alertrule_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_alert
    ADD CONSTRAINT offsets_alert_rule_id_38824aee_fk_offsets_alertrule_id FOREIGN KEY (rule_id) REFERENCES public.offsets_alertrule(id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: offsets_archivedday offsets_archivedday_run_id_035fca8d_fk_offsets_sparkrun_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_archivedday
    ADD CONSTRAINT offsets_archivedday_run_id_035fca8d_fk_offsets_sparkrun_id FOREIGN KEY (run_id) REFERENCES public.offsets_sparkrun(id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: offsets_committedoffset offsets_committedoffset_group_fk; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_committedoffset
    ADD CONSTRAINT offsets_committedoffset_group_fk FOREIGN KEY (group_id) REFERENCES public.groups_group(id) ON DELETE CASCADE;


--
-- Name: offsets_pendingoffset offsets_pendingoffset_group_fk; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_pendingoffset
    ADD CONSTRAINT offsets_pendingoffset_group_fk FOREIGN KEY (group_id) REFERENCES public.groups_group(id) ON DELETE CASCADE;


--
-- Name: offsets_plannedoffset offsets_plannedoffset_plan_id_e20e49b6_fk_offsets_offsetplan_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_plannedoffset
    ADD CONSTRAINT offsets_plannedoffset_plan_id_e20e49b6_fk_offsets_offsetplan_id FOREIGN KEY (plan_id) REFERENCES public.offsets_offsetplan(id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: offsets_reconcilefinding offsets_reconcilefinding_run_id_fd184f1a_fk_offsets_sparkrun_id; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.offsets_reconcilefinding
    ADD CONSTRAINT offsets_reconcilefinding_run_id_fd184f1a_fk_offsets_sparkrun_id FOREIGN KEY (run_id) REFERENCES public.offsets_sparkrun(id) DEFERRABLE INITIALLY DEFERRED;


--
-- Name: SCHEMA pgmq; Type: ACL; Schema: -; Owner: -
--

GRANT USAGE ON SCHEMA pgmq TO pg_monitor;


--
-- Name: FUNCTION check_classic_commit(pk bigint, member_id text, generation_id integer, group_instance_id text, now bigint); Type: ACL; Schema: kcoord; Owner: -
--

REVOKE ALL ON FUNCTION kcoord.check_classic_commit(pk bigint, member_id text, generation_id integer, group_instance_id text, now bigint) FROM PUBLIC;


--
-- Name: FUNCTION check_consumer_commit(pk bigint, member_id text, member_epoch integer, topics text[], partitions integer[], now bigint); Type: ACL; Schema: kcoord; Owner: -
--

REVOKE ALL ON FUNCTION kcoord.check_consumer_commit(pk bigint, member_id text, member_epoch integer, topics text[], partitions integer[], now bigint) FROM PUBLIC;


--
-- Name: FUNCTION check_identity(member_id text, generation_id integer, group_instance_id text); Type: ACL; Schema: kcoord; Owner: -
--

REVOKE ALL ON FUNCTION kcoord.check_identity(member_id text, generation_id integer, group_instance_id text) FROM PUBLIC;


--
-- Name: FUNCTION check_metadata(metadata text[]); Type: ACL; Schema: kcoord; Owner: -
--

REVOKE ALL ON FUNCTION kcoord.check_metadata(metadata text[]) FROM PUBLIC;


--
-- Name: FUNCTION check_partitions(topics text[], partitions integer[]); Type: ACL; Schema: kcoord; Owner: -
--

REVOKE ALL ON FUNCTION kcoord.check_partitions(topics text[], partitions integer[]) FROM PUBLIC;


--
-- Name: FUNCTION classic_member(pk bigint, member_id text, group_instance_id text, now bigint, OUT client_id text, OUT rebalance_timeout_ms bigint); Type: ACL; Schema: kcoord; Owner: -
--

REVOKE ALL ON FUNCTION kcoord.classic_member(pk bigint, member_id text, group_instance_id text, now bigint, OUT client_id text, OUT rebalance_timeout_ms bigint) FROM PUBLIC;


--
-- Name: FUNCTION commit_offsets(group_id text, member_id text, generation_id integer, offsets jsonb, group_instance_id text, retention_time_ms bigint); Type: ACL; Schema: kcoord; Owner: -
--

REVOKE ALL ON FUNCTION kcoord.commit_offsets(group_id text, member_id text, generation_id integer, offsets jsonb, group_instance_id text, retention_time_ms bigint) FROM PUBLIC;


--
-- Name: FUNCTION fetch_offsets(group_id text, topics text[], require_stable boolean); Type: ACL; Schema: kcoord; Owner: -
--

REVOKE ALL ON FUNCTION kcoord.fetch_offsets(group_id text, topics text[], require_stable boolean) FROM PUBLIC;


--
-- Name: FUNCTION had_since(pk bigint, member_id text, epoch integer, current_epoch integer, topics text[], partitions integer[]); Type: ACL; Schema: kcoord; Owner: -
--

REVOKE ALL ON FUNCTION kcoord.had_since(pk bigint, member_id text, epoch integer, current_epoch integer, topics text[], partitions integer[]) FROM PUBLIC;


--
-- Name: FUNCTION integer_at(value jsonb, field text, smallest bigint, largest bigint); Type: ACL; Schema: kcoord; Owner: -
--

REVOKE ALL ON FUNCTION kcoord.integer_at(value jsonb, field text, smallest bigint, largest bigint) FROM PUBLIC;


--
-- Name: FUNCTION lock_group(group_id text); Type: ACL; Schema: kcoord; Owner: -
--

REVOKE ALL ON FUNCTION kcoord.lock_group(group_id text) FROM PUBLIC;


--
-- Name: FUNCTION make_group(group_id text); Type: ACL; Schema: kcoord; Owner: -
--

REVOKE ALL ON FUNCTION kcoord.make_group(group_id text) FROM PUBLIC;


--
-- Name: FUNCTION may_expire(pk bigint, now bigint); Type: ACL; Schema: kcoord; Owner: -
--

REVOKE ALL ON FUNCTION kcoord.may_expire(pk bigint, now bigint) FROM PUBLIC;


--
-- Name: FUNCTION offset_at(entry jsonb, field text, OUT topic text, OUT partition integer, OUT committed_offset bigint, OUT leader_epoch integer, OUT metadata text); Type: ACL; Schema: kcoord; Owner: -
--

REVOKE ALL ON FUNCTION kcoord.offset_at(entry jsonb, field text, OUT topic text, OUT partition integer, OUT committed_offset bigint, OUT leader_epoch integer, OUT metadata text) FROM PUBLIC;


--
-- Name: FUNCTION offset_metadata_max_bytes(); Type: ACL; Schema: kcoord; Owner: -
--

REVOKE ALL ON FUNCTION kcoord.offset_metadata_max_bytes() FROM PUBLIC;


--
-- Name: FUNCTION read_offsets(offsets jsonb); Type: ACL; Schema: kcoord; Owner: -
--

REVOKE ALL ON FUNCTION kcoord.read_offsets(offsets jsonb) FROM PUBLIC;


--
-- Name: FUNCTION refuse(error text, detail text); Type: ACL; Schema: kcoord; Owner: -
--

REVOKE ALL ON FUNCTION kcoord.refuse(error text, detail text) FROM PUBLIC;


--
-- Name: FUNCTION require_unheld(pk bigint, now bigint); Type: ACL; Schema: kcoord; Owner: -
--

REVOKE ALL ON FUNCTION kcoord.require_unheld(pk bigint, now bigint) FROM PUBLIC;


--
-- Name: FUNCTION write_offsets(pk bigint, group_id text, member_id text, generation_id integer, client_id text, wanted kcoord.offsets_to_commit, retention_time_ms bigint, now bigint); Type: ACL; Schema: kcoord; Owner: -
--

REVOKE ALL ON FUNCTION kcoord.write_offsets(pk bigint, group_id text, member_id text, generation_id integer, client_id text, wanted kcoord.offsets_to_commit, retention_time_ms bigint, now bigint) FROM PUBLIC;


--
-- Name: TABLE meta; Type: ACL; Schema: pgmq; Owner: -
--

GRANT SELECT ON TABLE pgmq.meta TO pg_monitor;


--
-- Name: TABLE notify_insert_throttle; Type: ACL; Schema: pgmq; Owner: -
--

GRANT SELECT ON TABLE pgmq.notify_insert_throttle TO pg_monitor;


--
-- Name: TABLE topic_bindings; Type: ACL; Schema: pgmq; Owner: -
--

GRANT SELECT ON TABLE pgmq.topic_bindings TO pg_monitor;


--
-- Name: DEFAULT PRIVILEGES FOR SEQUENCES; Type: DEFAULT ACL; Schema: pgmq; Owner: -
--

ALTER DEFAULT PRIVILEGES FOR ROLE postgres IN SCHEMA pgmq GRANT SELECT ON SEQUENCES TO pg_monitor;


--
-- Name: DEFAULT PRIVILEGES FOR TABLES; Type: DEFAULT ACL; Schema: pgmq; Owner: -
--

ALTER DEFAULT PRIVILEGES FOR ROLE postgres IN SCHEMA pgmq GRANT SELECT ON TABLES TO pg_monitor;


--
-- PostgreSQL database dump complete
--


