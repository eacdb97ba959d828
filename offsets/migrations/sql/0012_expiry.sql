-- Whether what is overdue in a group has expired: its coordinator partition has a live owner, and its deadlines count
-- since the last gap. Otherwise members may not have been able to renew their sessions, and get the full time again.
-- Source: groups/sql/ownership.sql; groups/core/rearming.py.
create function kcoord.may_expire(pk bigint, now bigint) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select p.partition is null
           or coalesce(p.state = 'ACTIVE' and n.ended_at is null and n.expires_at > may_expire.now
                       and g.armed_gap >= p.gap, false)
    from {schema}.groups_group g
    left join {schema}.groups_coordinatorpartition p on p.partition = g.partition
    left join {schema}.groups_coordinatornode n on n.id = p.owner_id
    where g.id = pk
$$;

-- The member of a classic group that commits; raises what OffsetCommit answers if it is not one.
-- Source: offsets.md 3.3, rows 3a to 3c.
create or replace function kcoord.classic_member(
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

-- May this caller commit to a consumer group now? As `check_classic_commit`. An older epoch does for partitions that the
-- member has had since then (KIP-1251). Source: consumer.md 7.1; offsets.md 3.4.
create or replace function kcoord.check_consumer_commit(
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

revoke all on function kcoord.may_expire from public;
