"""The effect of each record on a group. Pure, and the only code that produces a changed group.

It copies what the records say and decides nothing. An illegal change of state, or a record about something the group
does not have, is a bug and raises.
Source: classic.md 0.3 and 1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from groups.core.model import consumer_fold as consumer
from groups.core.model.commands import ParkKind
from groups.core.model.consumer_records import ConsumerMemberJoined, ConsumerRecord
from groups.core.model.group import Group
from groups.core.model.records import (
    AssignmentsStored,
    ClassicChange,
    DeadlinesRearmed,
    GenerationStarted,
    GroupConverted,
    GroupCreated,
    GroupDeleted,
    GroupEmptied,
    GroupHeld,
    GroupUnloaded,
    HoldReleased,
    JoinTimerArmed,
    MemberAdded,
    MemberPending,
    MemberRemoved,
    MemberReplaced,
    MemberSynced,
    MemberUpdated,
    PendingForgotten,
    RebalanceStarted,
    Record,
    SessionRenewed,
    SyncParked,
    SyncTimerCleared,
    WaitAbandoned,
)
from groups.core.model.transitions import TRANSITIONS
from groups.core.model.types import ClassicGroup, ClassicMember, GroupState, Millis, PendingIds

_EMPTY = GroupState.EMPTY


class IllegalTransition(Exception):
    """A record that would change a group in a way classic.md 1 forbids: a bug in the code that emitted it."""


def apply(group: Group | None, record: Record) -> Group | None:
    """The group after `record`; None: it does not exist. Raises `IllegalTransition`, `IllegalRecord`."""
    if isinstance(record, ConsumerRecord):
        if isinstance(group, ClassicGroup):
            raise IllegalTransition(f"{type(record).__name__} of a classic group")
        if group is not None and group.hold is not None and isinstance(record, ConsumerMemberJoined):
            raise IllegalTransition(f"{type(record).__name__} in group {group.group_id!r}, which is held")
        return consumer.apply(group, record)
    if isinstance(record, GroupCreated):
        if group is not None:
            raise IllegalTransition(f"group {record.group_id!r} exists already")
        return ClassicGroup(group_id=record.group_id, state_since=record.at, armed_gap=record.gap)
    if group is None:
        raise IllegalTransition(f"{type(record).__name__} of a group that does not exist")
    if isinstance(record, GroupDeleted):
        return None
    if isinstance(record, GroupConverted):
        return _convert(group, record)
    if group.hold is not None and isinstance(record, MemberPending | MemberAdded):
        raise IllegalTransition(f"{type(record).__name__} in group {group.group_id!r}, which is held")
    if isinstance(record, GroupHeld):
        return _hold(group, record)
    if isinstance(record, HoldReleased):
        return replace(group, hold=None)
    if not isinstance(group, ClassicGroup):
        raise IllegalTransition(f"{type(record).__name__} of a group with epochs")
    return _apply(group, record)


def _convert(group: Group, record: GroupConverted) -> Group:
    if type(group) is type(record.group):
        raise IllegalTransition(f"group {group.group_id!r} has that protocol already")
    # A join that converts a held group is refused in the end; nothing before that may end the hold.
    return replace(record.group, hold=group.hold, armed_gap=group.armed_gap)


def _hold(group: Group, record: GroupHeld) -> Group:
    if group.members or (isinstance(group, ClassicGroup) and (group.pending_join or group.state is not _EMPTY)):
        raise IllegalTransition(f"group {group.group_id!r} cannot be held while anybody is in it")
    return replace(group, hold=record.hold)


def _apply(group: ClassicGroup, record: ClassicChange) -> ClassicGroup:
    match record:
        case MemberPending():
            return replace(group, pending_join=group.pending_join.put(record.member_id, record.deadline))
        case PendingForgotten():
            return replace(group, pending_join=group.pending_join.drop(record.member_id))
        case MemberAdded():
            return _add(group, record)
        case MemberUpdated():
            return _update(group, record)
        case MemberReplaced():
            return _replace(group, record)
        case MemberRemoved():
            return replace(group, members=group.members.drop(record.member_id), leader_id=record.leader_id)
        case SyncParked() | MemberSynced() | WaitAbandoned() | SessionRenewed():
            return replace(group, members=group.members.put(_touch(group.members[record.member_id], record)))
        case JoinTimerArmed():
            return replace(group, join_timer=record.timer, new_member_added=False)
        case SyncTimerCleared():
            return replace(group, sync_deadline=None)
        case DeadlinesRearmed():
            return _rearm(group, record)
        case RebalanceStarted() | GenerationStarted() | GroupEmptied() | AssignmentsStored() | GroupUnloaded():
            return _change_state(group, record)
        case _:
            assert_never(record)


def _change_state(
    group: ClassicGroup,
    record: RebalanceStarted | GenerationStarted | GroupEmptied | AssignmentsStored | GroupUnloaded,
) -> ClassicGroup:
    match record:
        case RebalanceStarted():
            return _start_rebalance(group, record)
        case GenerationStarted():
            return _start_generation(group, record)
        case GroupEmptied():
            emptied = replace(
                group,
                generation_id=record.generation_id,
                protocol_name=None,
                join_timer=None,
                generation_topics=record.topics,
            )
            return _enter(emptied, GroupState.EMPTY, record.at)
        case AssignmentsStored():
            return _store_assignments(group, record)
        case GroupUnloaded():
            return _unload(group, record)
        case _:
            assert_never(record)


def _enter(group: ClassicGroup, state: GroupState, at: Millis) -> ClassicGroup:
    if state not in TRANSITIONS[group.state]:
        raise IllegalTransition(f"group {group.group_id!r} cannot go from {group.state.value} to {state.value}")
    return replace(group, state=state, previous_state=group.state, state_since=at)


def _add(group: ClassicGroup, record: MemberAdded) -> ClassicGroup:
    member_id = record.member.member_id
    return replace(
        group,
        members=group.members.put(record.member),
        pending_join=group.pending_join.drop(member_id) if member_id in group.pending_join else group.pending_join,
        protocol_type=record.protocol_type,
        leader_id=record.leader_id,
        new_member_added=record.new_member_added,
    )


def _update(group: ClassicGroup, record: MemberUpdated) -> ClassicGroup:
    member = replace(
        group.members[record.member_id],
        protocols=record.protocols,
        session_timeout_ms=record.session_timeout_ms,
        rebalance_timeout_ms=record.rebalance_timeout_ms,
        join_parked_until=record.join_parked_until,
        session_deadline=record.session_deadline,
    )
    return replace(group, members=group.members.put(member))


def _replace(group: ClassicGroup, record: MemberReplaced) -> ClassicGroup:
    members = group.members.drop(record.old_member_id).put(record.member)
    return replace(group, members=members, leader_id=record.leader_id)


def _touch(member: ClassicMember, record: SyncParked | MemberSynced | WaitAbandoned | SessionRenewed) -> ClassicMember:
    match record:
        case SyncParked():
            return replace(
                member,
                sync_parked_until=record.until,
                pending_sync=False,
                session_deadline=record.session_deadline,
            )
        case MemberSynced():
            return replace(member, pending_sync=False)
        case WaitAbandoned(kind=ParkKind.JOIN):
            return replace(member, join_parked_until=record.at, session_deadline=record.session_deadline)
        case WaitAbandoned():
            return replace(member, sync_parked_until=record.at, session_deadline=record.session_deadline)
        case SessionRenewed():
            return replace(member, session_deadline=record.deadline, last_heartbeat_at=record.at)
        case _:
            assert_never(record)


def _start_rebalance(group: ClassicGroup, record: RebalanceStarted) -> ClassicGroup:
    members = group.members
    if record.discards_assignments:
        members = members.each(
            lambda member: replace(
                member,
                assignment=b"",
                pending_sync=False,
                sync_parked_until=None,
                session_deadline=record.session_deadlines.get(member.member_id, member.session_deadline),
            )
        )
    elif members.pending_sync:
        members = members.each(lambda member: replace(member, pending_sync=False))
    prepared = replace(group, members=members, sync_deadline=None)
    return _enter(prepared, GroupState.PREPARING_REBALANCE, record.at)


def _start_generation(group: ClassicGroup, record: GenerationStarted) -> ClassicGroup:
    started = replace(
        group,
        generation_id=record.generation_id,
        leader_id=record.leader_id,
        protocol_name=record.protocol_name,
        join_timer=None,
        sync_deadline=record.sync_deadline,
        generation_topics=record.topics,
        members=group.members.each(
            lambda member: replace(
                member,
                is_new=False,
                join_parked_until=None,
                pending_sync=True,
                session_deadline=record.session_deadlines[member.member_id],
            )
        ),
    )
    return _enter(started, GroupState.COMPLETING_REBALANCE, record.at)


def _store_assignments(group: ClassicGroup, record: AssignmentsStored) -> ClassicGroup:
    members = group.members.each(
        lambda member: replace(
            member,
            assignment=record.assignments.get(member.member_id, b""),
            sync_parked_until=None,
            session_deadline=record.session_deadlines.get(member.member_id, member.session_deadline),
        )
    )
    return _enter(replace(group, members=members), GroupState.STABLE, record.at)


def _rearm(group: ClassicGroup, record: DeadlinesRearmed) -> ClassicGroup:
    members = group.members.each(
        lambda member: replace(member, session_deadline=record.sessions.get(member.member_id, member.session_deadline))
    )
    return replace(
        group,
        members=members,
        pending_join=PendingIds(record.pending),
        join_timer=record.join_timer,
        sync_deadline=record.sync_deadline,
        armed_gap=record.gap,
    )


def _unload(group: ClassicGroup, record: GroupUnloaded) -> ClassicGroup:
    unloaded = replace(
        group,
        members=group.members.each(
            lambda member: replace(member, join_parked_until=None, sync_parked_until=None, session_deadline=None)
        ),
        pending_join=PendingIds(),
        join_timer=None,
        sync_deadline=None,
        hold=None,
    )
    return _enter(unloaded, GroupState.DEAD, record.at)
