"""Converts rows of consumer groups to values of the core and back. No I/O, no rules. See `groups.store.classic_rows`.

A heartbeat that changes nothing but a deadline must cost the same in every group: the changes are found by comparing
only those parts of two groups that they do not share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg.types.json import Jsonb

from groups.core.model.consumer_group import ConsumerGroup
from groups.core.model.consumer_members import ConsumerMembers
from groups.core.model.consumer_state import (
    ClassicMetadata,
    ConsumerMember,
    Job,
    MemberState,
    RegexResolution,
    TimerKind,
    Timers,
)
from groups.core.model.persistent import DeadlineMap, Timer
from groups.core.model.types import Protocol
from groups.store.classic_rows import hold_columns, hold_from_row

Row = Sequence[Any]
Owned = tuple[str, int, str, int, bool]
"""Topic id, partition, member id, assignment epoch, whether it is to be given up."""

TIMER_COLUMNS = {kind: (f"{kind.value}_deadline", f"{kind.value}_armed_at") for kind in TimerKind}


def group_from_rows(
    group_id: str, row: Row, members: Iterable[Row], owned: Iterable[Row], resolutions: Mapping[str, Any] | None
) -> ConsumerGroup:
    """The group that a row of `lock_group`, its children and its resolutions describe."""
    assigned: dict[str, dict[str, dict[int, int]]] = {}
    pending: dict[str, dict[str, dict[int, int]]] = {}
    for topic_id, partition, member_id, epoch, is_pending in owned:
        side = pending if is_pending else assigned
        side.setdefault(member_id, {}).setdefault(topic_id, {})[partition] = epoch
    timers: dict[TimerKind, dict[str, Timer]] = {kind: {} for kind in TimerKind}
    loaded: list[ConsumerMember] = []
    for member in members:
        loaded.append(_member(member, assigned.get(member[0], {}), pending.get(member[0], {})))
        for position, kind in enumerate(TimerKind):
            deadline, armed_at = member[17 + 2 * position : 19 + 2 * position]
            if deadline is not None:
                timers[kind][member[0]] = Timer(deadline, armed_at)
    jobs = row[21] or {}
    return ConsumerGroup(
        group_id=group_id,
        state_since=row[5],
        group_epoch=row[6],
        assignment_epoch=row[16],
        assignment_timestamp=row[17],
        metadata_hash=row[18],
        metadata_version=row[19],
        members=ConsumerMembers(loaded),
        timers=Timers(**{kind.value: DeadlineMap(timers[kind]) for kind in TimerKind}),
        resolutions={rights: _resolution(found) for rights, found in (resolutions or {}).items()},
        regex_jobs={rights: Job(*job) for rights, job in jobs.get("regex", {}).items()},
        target_job=Job(*jobs["target"]) if "target" in jobs else None,
        hold=hold_from_row(row),
    )


def _member(row: Row, assigned: Any, pending: Any) -> ConsumerMember:
    classic = None
    if row[9] is not None:
        names_and_bytes = zip(row[10], row[11], strict=True)
        classic = ClassicMetadata(row[9], tuple(Protocol(name, bytes(data)) for name, data in names_and_bytes))
    return ConsumerMember(
        member_id=row[0],
        instance_id=row[1],
        rack_id=row[2],
        client_id=row[3],
        client_host=row[4],
        rebalance_timeout_ms=row[5],
        subscribed_topic_names=frozenset(row[6]),
        subscribed_topic_regex=row[7],
        server_assignor=row[8],
        classic=classic,
        member_epoch=row[12],
        previous_member_epoch=row[13],
        state=MemberState(row[14]),
        assigned=assigned,
        pending_revocation=pending,
        target={topic_id: frozenset(partitions) for topic_id, partitions in row[15].items()},
        topic_rights=row[25],
    )


def _resolution(value: Mapping[str, Any]) -> RegexResolution:
    topics = {regex: frozenset(names) for regex, names in value["topics"].items()}
    return RegexResolution(topics, value["topics_version"], value["started_at"])


def _resolution_columns(resolution: RegexResolution) -> dict[str, Any]:
    topics = {regex: sorted(names) for regex, names in resolution.topics.items()}
    return {"topics": topics, "topics_version": resolution.topics_version, "started_at": resolution.started_at}


def _job_columns(job: Job) -> list[int]:
    return [job.started_at, job.deadline, job.epoch]


def group_columns(group: ConsumerGroup) -> dict[str, Any]:
    """Parameters of `insert_consumer_group` and `update_consumer_group` that depend on the group itself."""
    resolutions = {rights: _resolution_columns(found) for rights, found in group.resolutions.items()}
    jobs: dict[str, Any] = {}
    if group.regex_jobs:
        jobs["regex"] = {rights: _job_columns(job) for rights, job in group.regex_jobs.items()}
    if group.target_job is not None:
        jobs["target"] = _job_columns(group.target_job)
    return {
        "group_id": group.group_id,
        "state": group.state.value,
        "state_since": group.state_since,
        "generation_id": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignment_timestamp": group.assignment_timestamp,
        "metadata_hash": group.metadata_hash,
        "metadata_version": group.metadata_version,
        "resolution": Jsonb(resolutions) if resolutions else None,
        "jobs": Jsonb(jobs) if jobs else None,
        **hold_columns(group.hold),
    }


def member_columns(pk: int, member: ConsumerMember) -> dict[str, Any]:
    """Parameters of `upsert_consumer_member`."""
    classic = member.classic
    return {
        "id": pk,
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "rack_id": member.rack_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
        "subscribed_topic_names": sorted(member.subscribed_topic_names),
        "subscribed_topic_regex": member.subscribed_topic_regex,
        "topic_rights": member.topic_rights,
        "server_assignor": member.server_assignor,
        "classic_session_timeout_ms": classic.session_timeout_ms if classic else None,
        "classic_protocol_names": [protocol.name for protocol in classic.protocols] if classic else None,
        "classic_protocol_metadata": [protocol.metadata for protocol in classic.protocols] if classic else None,
        "member_epoch": member.member_epoch,
        "previous_member_epoch": member.previous_member_epoch,
        "state": member.state.value,
        "target": Jsonb({topic_id: sorted(partitions) for topic_id, partitions in member.target.items()}),
    }


def step_columns(members: Sequence[ConsumerMember]) -> dict[str, list[Any]]:
    """Parameters of `update_consumer_steps`: an array for each column."""
    return {
        "member_id": [member.member_id for member in members],
        "member_epoch": [member.member_epoch for member in members],
        "previous_member_epoch": [member.previous_member_epoch for member in members],
        "state": [member.state.value for member in members],
    }


def timer_columns(timers: Timers, member_ids: Sequence[str]) -> dict[str, list[Any]]:
    """Parameters of `update_consumer_timers`: an array for each column, in the order of `member_ids`."""
    columns: dict[str, list[Any]] = {"member_id": list(member_ids)}
    for kind, (deadline, armed_at) in TIMER_COLUMNS.items():
        armed = [timers.of(kind).get(member_id) for member_id in member_ids]
        columns[deadline] = [timer.deadline if timer else None for timer in armed]
        columns[armed_at] = [timer.armed_at if timer else None for timer in armed]
    return columns


@dataclass(frozen=True, slots=True)
class ConsumerChanges:
    """The difference between two folded consumer groups, as the store writes it.

    `resolution_stays`: the stored results of the regular expressions are still valid. `stepped`: members in which only
    epochs, state and what they own changed.
    """

    header: bool
    resolution_stays: bool
    removed: tuple[str, ...]
    upserted: tuple[ConsumerMember, ...]
    stepped: tuple[ConsumerMember, ...]
    timers: tuple[str, ...]
    released: frozenset[Owned]
    taken: frozenset[Owned]

    @property
    def nothing(self) -> bool:
        """The two groups are the same."""
        return self.only_timers and not self.timers

    @property
    def only_timers(self) -> bool:
        """Only deadlines moved."""
        return not (self.header or self.removed or self.upserted or self.stepped)


def changes(before: ConsumerGroup | None, after: ConsumerGroup) -> ConsumerChanges:
    """What must be written to make the rows of `before` those of `after`."""
    base = before or ConsumerGroup(after.group_id)
    removed, changed = after.members.changes_since(base.members)
    moved = {
        member_id
        for kind in TimerKind
        for part in after.timers.of(kind).changes_since(base.timers.of(kind))
        for member_id in part
        if member_id in after.members
    }
    old = frozenset(owned for member_id in (*removed, *changed) for owned in _owned(base.members.get(member_id)))
    new = frozenset(owned for member in changed.values() for owned in _owned(member))
    stepped = {
        member_id: member
        for member_id, member in changed.items()
        if (was := base.members.get(member_id)) is not None and _said(was) == _said(member)
    }
    return ConsumerChanges(
        header=before is None or header_columns(before) != header_columns(after),
        resolution_stays=before is not None and before.resolutions == after.resolutions,
        removed=tuple(sorted(removed)),
        upserted=tuple(changed[member_id] for member_id in sorted(changed.keys() - stepped.keys())),
        stepped=tuple(stepped[member_id] for member_id in sorted(stepped)),
        timers=tuple(sorted(moved)),
        released=old - new,
        taken=new - old,
    )


def _said(member: ConsumerMember) -> tuple[object, ...]:
    """What a step of a member leaves unchanged."""
    return (
        member.instance_id,
        member.rack_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.subscribed_topic_names,
        member.subscribed_topic_regex,
        member.topic_rights,
        member.server_assignor,
        member.classic,
        member.target,
    )


def header_columns(group: ConsumerGroup) -> tuple[object, ...]:
    """What decides whether the header row changed."""
    return (
        group.state,
        group.state_since,
        group.group_epoch,
        group.assignment_epoch,
        group.assignment_timestamp,
        group.metadata_hash,
        group.metadata_version,
        group.resolutions,
        group.regex_jobs,
        group.target_job,
        group.hold,
    )


def _owned(member: ConsumerMember | None) -> list[Owned]:
    if member is None:
        return []
    return [
        (topic_id, partition, member.member_id, epoch, is_pending)
        for assigned, is_pending in ((member.assigned, False), (member.pending_revocation, True))
        for topic_id, partitions in assigned.items()
        for partition, epoch in partitions.items()
    ]
