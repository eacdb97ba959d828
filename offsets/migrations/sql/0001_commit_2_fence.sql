-- The fence: who may commit to a group now. Called under the lock of the group's row.

-- While an operator holds a group nobody commits to it without a membership. Members of it have lost theirs.
create function kcoord.require_unheld(pk bigint, now bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    holder text;
begin
    select g.held_by into holder from {schema}.groups_group g where g.id = pk and g.held_until > now;
    if found then
        perform kcoord.refuse('COORDINATOR_LOAD_IN_PROGRESS', format(
            'the group is held by %L: only operators change its offsets until the hold ends', holder));
    end if;
end
$$;

-- Whether what is overdue in a group has expired: its coordinator partition has a live owner, its deadlines count since
-- the last gap, and no node may have renewed sessions in memory that it has not stored yet. Otherwise members get the
-- full time again, or the renewed session is stored soon.
-- Source: groups/sql/ownership.sql; groups/core/rearming.py; docs/models, rule 16.
create function kcoord.may_expire(pk bigint, now bigint) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select (p.partition is null
            or coalesce(p.state = 'ACTIVE' and n.ended_at is null and n.expires_at > may_expire.now
                        and g.armed_gap >= p.gap, false))
           and not exists (select from {schema}.groups_coordinatornode x
                           where x.ended_at is null and x.flushed_until < may_expire.now)
    from {schema}.groups_group g
    left join {schema}.groups_coordinatorpartition p on p.partition = g.partition
    left join {schema}.groups_coordinatornode n on n.id = p.owner_id
    where g.id = pk
$$;

-- The member of a classic group that commits; raises what OffsetCommit answers if it is not one.
-- Source: offsets.md 3.3, rows 3a to 3c.
create function kcoord.classic_member(
    pk bigint, member_id text, group_instance_id text, now bigint,
    out client_id text, out rebalance_timeout_ms bigint)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    holder text;
    session_deadline bigint;
begin
    if group_instance_id is not null then
        select m.member_id into holder from {schema}.groups_member m
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
    from {schema}.groups_member m
    where m.group_id = pk and m.member_id = member_id;
    if session_deadline <= now and not kcoord.may_expire(pk, now) then
        perform kcoord.refuse('COORDINATOR_LOAD_IN_PROGRESS', 'sessions of the group are being counted again');
    elsif client_id is null or session_deadline <= now then
        perform kcoord.refuse('UNKNOWN_MEMBER_ID', format('the group has no member %L', member_id));
    end if;
end
$$;

-- May this caller commit to a classic group now? Returns the client id of its member; raises what OffsetCommit answers.
-- Source: offsets.md 3.3. What is overdue is not expired here. Where the answer depends on what that
-- would lead to, it is COORDINATOR_LOAD_IN_PROGRESS; the next tick or heartbeat settles it.
create function kcoord.check_classic_commit(
    pk bigint, member_id text, generation_id integer, group_instance_id text, now bigint) returns text
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    grp record;
    member record;
    due boolean;
begin
    select g.state, g.generation_id, g.wake_at into strict grp from {schema}.groups_group g where g.id = pk;
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

-- May this caller commit to a consumer group now? As `check_classic_commit`. An older epoch does for partitions that the
-- member has had since then (KIP-1251). Source: consumer.md 7.1; offsets.md 3.4.
create function kcoord.check_consumer_commit(
    pk bigint, member_id text, member_epoch integer, topics text[], partitions integer[], now bigint) returns text
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    grp record;
    member record;
    due boolean;
begin
    select g.state, g.wake_at into strict grp from {schema}.groups_group g where g.id = pk;
    due := coalesce(grp.wake_at <= now, false);
    if member_epoch < 0 and grp.state = 'Empty' then
        perform kcoord.require_unheld(pk, now);
        return '';
    end if;
    select m.client_id, m.member_epoch, m.classic_session_timeout_ms is not null as is_classic,
           least(m.session_deadline, m.rebalance_deadline, m.join_deadline, m.sync_deadline) as deadline
    into member
    from {schema}.groups_consumermember m
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

-- Has the member of a consumer group had all these partitions since an older epoch of its own?
create function kcoord.had_since(
    pk bigint, member_id text, epoch integer, current_epoch integer, topics text[], partitions integer[])
returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select 0 < epoch and epoch < current_epoch and not exists (
        select from unnest(topics, partitions) as c (topic, partition)
        where not exists (
            select from {schema}.groups_topic t
            join {schema}.groups_assignment a on a.topic_id = t.topic_id::text
            where t.name = c.topic and a.group_id = pk and a.partition = c.partition
              and a.member_id = had_since.member_id and a.generation_id <= epoch))
$$;
