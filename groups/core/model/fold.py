"""The effect of each record on a group. Pure, and the only code that produces a changed group.

It copies what the records say and decides nothing. An illegal change of state, or a record about something the group
does not have, is a bug and raises.
Source: classic.md 0.3 and 1; consumer.md 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from groups.core.model.commands import ParkKind
from groups.core.model.consumer_group import (
    DEPARTED_EPOCH,
    ConsumerGroup,
    ConsumerMember,
    EpochGroup,
    Job,
    RegexResolution,
    ShareGroup,
    TimerKind,
)
from groups.core.model.consumer_records import (
    ConsumerChange,
    ConsumerGroupCreated,
    ConsumerMemberJoined,
    ConsumerMemberRemoved,
    ConsumerMemberReplaced,
    ConsumerMemberUpdated,
    ConsumerRecord,
    GroupEpochBumped,
    MemberReconciled,
    MetadataChecked,
    RegexesRequested,
    RegexesResolved,
    RegexInherited,
    ShareGroupCreated,
    StaticMemberDeparted,
    TargetComputed,
    TargetFailed,
    TargetRequested,
    TimerArmed,
    TimerCancelled,
    TimersRearmed,
)
from groups.core.model.group import Group
from groups.core.model.persistent import Timer
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
from groups.core.model.types import TRANSITIONS, ClassicGroup, ClassicMember, GroupState, Millis, PendingIds


class IllegalRecord(Exception):
    """A record that does not fit the group: a bug in the code that emitted it."""


def apply_to_members(group: EpochGroup | None, record: ConsumerRecord) -> EpochGroup:
    """The group after `record`. Raises `IllegalRecord`."""
    if isinstance(record, ConsumerGroupCreated | ShareGroupCreated):
        if group is not None:
            raise IllegalRecord(f"group {record.group_id!r} exists already")
        kind = ConsumerGroup if isinstance(record, ConsumerGroupCreated) else ShareGroup
        return kind(record.group_id, state_since=record.at, armed_gap=record.gap)
    if group is None:
        raise IllegalRecord(f"{type(record).__name__} of a group that does not exist")
    if isinstance(record, TimerArmed):  # by far the most frequent, and with no effect on the state
        return _arm(group, record)
    after = _apply_to_members(group, record)
    return after if after.state is group.state else replace(after, state_since=record.at)


def _arm(group: EpochGroup, record: TimerArmed) -> EpochGroup:
    return replace(group, timers=group.timers.arm(record.kind, record.member_id, Timer(record.deadline, record.at)))


def _apply_to_members(group: EpochGroup, record: ConsumerChange) -> EpochGroup:
    match record:
        case ConsumerMemberJoined() | ConsumerMemberUpdated() | ConsumerMemberReplaced() | ConsumerMemberRemoved():
            return _without_unused_regexes(_membership(group, record))
        case StaticMemberDeparted():
            return _depart(group, record.member_id)
        case GroupEpochBumped():
            if record.group_epoch != group.group_epoch + 1:
                raise IllegalRecord(f"group epoch {group.group_epoch} is not followed by {record.group_epoch}")
            bumped = replace(
                group,
                group_epoch=record.group_epoch,
                metadata_hash=record.metadata_hash,
                metadata_version=record.metadata_version,
            )
            # An empty group awaits no target (KAFKA-20442, consumer.md 3.5).
            return bumped if group.members else replace(bumped, assignment_epoch=record.group_epoch, target_job=None)
        case MetadataChecked():
            return replace(group, metadata_version=record.metadata_version)
        case TargetRequested():
            return replace(group, target_job=Job(record.at, record.deadline, record.group_epoch))
        case TargetComputed():
            return _store_target(group, record)
        case TargetFailed():
            return replace(group, target_job=Job(record.at, record.retry_at))
        case MemberReconciled():
            return _reconcile(group, record)
        case TimerCancelled():
            return replace(group, timers=group.timers.cancel(record.kind, record.member_id))
        case RegexesRequested():
            return replace(group, regex_jobs=_with_job(group, record))
        case RegexesResolved():
            return _resolve(group, record)
        case RegexInherited():
            return _inherit(group, record)
        case TimersRearmed():
            return replace(group, timers=record.timers, armed_gap=record.gap)
        case _:
            assert_never(record)


def _membership(
    group: EpochGroup,
    record: ConsumerMemberJoined | ConsumerMemberUpdated | ConsumerMemberReplaced | ConsumerMemberRemoved,
) -> EpochGroup:
    match record:
        case ConsumerMemberJoined():
            if record.member.member_id in group.members:
                raise IllegalRecord(f"{record.member.member_id!r} is a member already")
            return replace(group, members=group.members.put(record.member))
        case ConsumerMemberUpdated():
            _existing(group, record.member.member_id)
            return replace(group, members=group.members.put(record.member))
        case ConsumerMemberReplaced():
            _existing(group, record.old_member_id)
            return replace(
                group,
                members=group.members.drop(record.old_member_id).put(record.member),
                timers=group.timers.forget(record.old_member_id),
                target_job=None,
            )
        case ConsumerMemberRemoved():
            _existing(group, record.member_id)
            return replace(
                group, members=group.members.drop(record.member_id), timers=group.timers.forget(record.member_id)
            )
        case _:
            assert_never(record)


def _existing(group: EpochGroup, member_id: str) -> ConsumerMember:
    member = group.members.get(member_id)
    if member is None:
        raise IllegalRecord(f"group {group.group_id!r} has no member {member_id!r}")
    return member


def _without_unused_regexes(group: EpochGroup) -> EpochGroup:
    """Expressions that no member uses are forgotten, and resolved again if they come back (consumer.md 4.6)."""
    used = group.members.regexes
    if all((regex, rights) in used for rights, found in group.resolutions.items() for regex in found.topics):
        return group
    kept: dict[str, RegexResolution] = {}
    for rights, found in group.resolutions.items():
        topics = {regex: names for regex, names in found.topics.items() if (regex, rights) in used}
        if topics:
            kept[rights] = replace(found, topics=topics)
    return replace(group, resolutions=kept)


def _with_job(group: EpochGroup, record: RegexesRequested) -> Mapping[str, Job]:
    """Lost jobs are forgotten: no member may ever come back with the rights that they were for."""
    running = {rights: job for rights, job in group.regex_jobs.items() if job.deadline > record.at}
    return {**running, record.rights: Job(record.at, record.deadline)}


def _resolve(group: EpochGroup, record: RegexesResolved) -> EpochGroup:
    resolutions = dict(group.resolutions)
    if record.topics:
        resolutions[record.rights] = RegexResolution(record.topics, record.topics_version, record.started_at)
    jobs = {rights: job for rights, job in group.regex_jobs.items() if rights != record.rights}
    return replace(group, resolutions=resolutions, regex_jobs=jobs)


def _inherit(group: EpochGroup, record: RegexInherited) -> EpochGroup:
    known = group.resolutions.get(record.rights, RegexResolution({}, -1, None))
    topics = {**known.topics, record.regex: record.topics}
    return replace(
        group, resolutions={**group.resolutions, record.rights: replace(known, topics=topics, topics_version=-1)}
    )


def _depart(group: EpochGroup, member_id: str) -> EpochGroup:
    # The limit of a revocation ends with the revocation. Kafka lets its timer run and ignores it when it fires, because
    # the member's epoch has changed by then (consumer.md 6.5).
    member = replace(_existing(group, member_id), member_epoch=DEPARTED_EPOCH, pending_revocation={})
    timers = group.timers.cancel(TimerKind.REBALANCE, member_id)
    return replace(group, members=group.members.put(member), timers=timers)


def _store_target(group: EpochGroup, record: TargetComputed) -> EpochGroup:
    if not group.assignment_epoch <= record.group_epoch <= group.group_epoch:
        raise IllegalRecord(f"a target of epoch {record.group_epoch} for a group of epoch {group.group_epoch}")
    changed = {
        member_id: replace(_existing(group, member_id), target=target) for member_id, target in record.targets.items()
    }
    return replace(
        group,
        members=group.members.put_same(changed),
        assignment_epoch=record.group_epoch,
        assignment_timestamp=record.at,
        target_job=None,
    )


def _reconcile(group: EpochGroup, record: MemberReconciled) -> EpochGroup:
    before = _existing(group, record.member_id)
    member = replace(
        before,
        member_epoch=record.member_epoch,
        previous_member_epoch=record.previous_member_epoch,
        state=record.state,
        assigned=record.assigned,
        pending_revocation=record.pending_revocation,
    )
    return replace(group, members=group.members.put(member))


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
        return apply_to_members(group, record)
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
