"""The effect of each record on a consumer group. Pure, and the only code that produces a changed one.

Source: consumer.md 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from groups.core.model.consumer_group import ConsumerGroup, EpochGroup, ShareGroup
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
from groups.core.model.consumer_state import DEPARTED_EPOCH, ConsumerMember, Job, RegexResolution, TimerKind
from groups.core.model.persistent import Timer


class IllegalRecord(Exception):
    """A record that does not fit the group: a bug in the code that emitted it."""


def apply(group: EpochGroup | None, record: ConsumerRecord) -> EpochGroup:
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
    after = _apply(group, record)
    return after if after.state is group.state else replace(after, state_since=record.at)


def _arm(group: EpochGroup, record: TimerArmed) -> EpochGroup:
    return replace(group, timers=group.timers.arm(record.kind, record.member_id, Timer(record.deadline, record.at)))


def _apply(group: EpochGroup, record: ConsumerChange) -> EpochGroup:
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
