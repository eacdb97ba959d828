"""Rows of consumer groups and share groups: read into values of the core, compared, and written as they changed.

A heartbeat that changes nothing but a deadline must cost the same in every group: changes are found by comparing only
those parts of two groups that they do not share. See `groups.store.classic`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb

from groups import states
from groups.core.machine import size_of
from groups.core.model.consumer_group import (
    ClassicMetadata,
    ConsumerGroup,
    ConsumerMember,
    ConsumerMembers,
    EpochGroup,
    Job,
    MemberState,
    RegexResolution,
    ShareGroup,
    ShareMembers,
    TimerKind,
    Timers,
)
from groups.core.model.group import Group
from groups.core.model.persistent import DeadlineMap, Timer
from groups.core.model.types import Millis, Protocol
from groups.store import rows
from groups.store.rows import GroupRow, Written, as_json, bytea_text, keys
from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries
from kcoord.process import off_loop

Owned = tuple[str, int, str, int, bool]
"""Topic id, partition, member id, assignment epoch, whether it is to be given up."""

OTHER_TIMERS = tuple(kind for kind in TimerKind if kind is not TimerKind.SESSION)


@dataclass(frozen=True, slots=True)
class ConsumerChanges:
    """The difference between two folded consumer groups, as the store writes it.

    `resolution_stays`: the stored results of the regular expressions are still valid. `stepped`: members in which only
    epochs, state and what they own changed. `renewed`: ids of the members whose session changed;
    `only_renewed`: nothing else changed.
    """

    header: bool
    resolution_stays: bool
    removed: tuple[str, ...]
    upserted: tuple[ConsumerMember, ...]
    stepped: tuple[ConsumerMember, ...]
    timers: tuple[str, ...]
    renewed: frozenset[str]
    only_renewed: bool
    released: frozenset[Owned]
    taken: frozenset[Owned]

    @property
    def nothing(self) -> bool:
        """The two groups are the same."""
        return self.only_deadlines and not self.timers

    @property
    def only_deadlines(self) -> bool:
        """Only deadlines moved."""
        return not (self.header or self.removed or self.upserted or self.stepped)


def changes(before: EpochGroup | None, after: EpochGroup) -> ConsumerChanges:
    """What must be written to make the rows of `before` those of `after`."""
    base = before or type(after)(after.group_id)
    removed, changed = after.members.changes_since(base.members)
    renewed = _moved(base, after, TimerKind.SESSION)
    others = {member_id for kind in OTHER_TIMERS for member_id in _moved(base, after, kind)}
    old: frozenset[Owned] = frozenset()
    new: frozenset[Owned] = frozenset()
    if not isinstance(after, ShareGroup):  # what its members have is stored with them
        old = frozenset(owned for member_id in (*removed, *changed) for owned in _owned(base.members.get(member_id)))
        new = frozenset(owned for member in changed.values() for owned in _owned(member))
    stepped = {
        member_id: member
        for member_id, member in changed.items()
        if (was := base.members.get(member_id)) is not None and _said(was) == _said(member)
    }
    header = before is None or header_columns(before) != header_columns(after)
    return ConsumerChanges(
        header=header,
        resolution_stays=before is not None and before.resolutions == after.resolutions,
        removed=tuple(sorted(removed)),
        upserted=tuple(changed[member_id] for member_id in sorted(changed.keys() - stepped.keys())),
        stepped=tuple(stepped[member_id] for member_id in sorted(stepped)),
        timers=tuple(sorted(renewed | others)),
        renewed=renewed,
        only_renewed=not (header or removed or changed or others),
        released=old - new,
        taken=new - old,
    )


def _moved(before: EpochGroup, after: EpochGroup, kind: TimerKind) -> frozenset[str]:
    """Ids of members whose timer of this kind is another."""
    parts = after.timers.of(kind).changes_since(before.timers.of(kind))
    return frozenset(member_id for part in parts for member_id in part if member_id in after.members)


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


def header_columns(group: EpochGroup) -> tuple[object, ...]:
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
        group.armed_gap,
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


Q = queries("groups")

KINDS: Mapping[str, type[EpochGroup]] = {states.CONSUMER: ConsumerGroup, states.SHARE: ShareGroup}
"""The groups whose rows are read and written here, by type."""


class MemberRow(NamedTuple):
    """The columns of `load_consumer_members`. `group_id`: key of the group's row."""

    group_id: int
    member_id: str
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: Millis
    subscribed_topic_names: list[str]
    subscribed_topic_regex: str
    server_assignor: str | None
    classic_session_timeout_ms: Millis | None
    classic_protocol_names: list[str]
    classic_protocol_metadata: list[bytes]
    member_epoch: int
    previous_member_epoch: int
    state: int
    target: dict[str, list[int]]
    id: int
    session_deadline: Millis | None
    session_armed_at: Millis | None
    rebalance_deadline: Millis | None
    rebalance_armed_at: Millis | None
    join_deadline: Millis | None
    join_armed_at: Millis | None
    sync_deadline: Millis | None
    sync_armed_at: Millis | None
    topic_rights: Any
    assigned: dict[str, dict[str, int]] | None

    def timer(self, kind: TimerKind) -> Timer | None:
        """One of its timers, if it is armed."""
        deadline, armed_at = TIMER_COLUMNS[kind]
        armed = getattr(self, deadline)
        return None if armed is None else Timer(armed, getattr(self, armed_at))


TIMER_COLUMNS = {kind: (f"{kind.value}_deadline", f"{kind.value}_armed_at") for kind in TimerKind}


@dataclass(slots=True)
class Children:
    """The rows that belong to a group, and its resolutions. `owned`: the columns of `load_ownership`."""

    members: list[MemberRow] = field(default_factory=list)
    owned: list[Sequence[Any]] = field(default_factory=list)
    resolutions: Mapping[str, Any] | None = None


def group_from_rows(group_id: str, row: GroupRow, children: Children) -> EpochGroup:
    """The group that a row of `lock_group`, its children and its resolutions describe."""
    assigned: dict[str, dict[str, dict[int, int]]] = {}
    pending: dict[str, dict[str, dict[int, int]]] = {}
    for _, topic_id, partition, member_id, epoch, is_pending in children.owned:
        side = pending if is_pending else assigned
        side.setdefault(member_id, {}).setdefault(topic_id, {})[partition] = epoch
    timers: dict[TimerKind, dict[str, Timer]] = {kind: {} for kind in TimerKind}
    loaded: list[ConsumerMember] = []
    for member in children.members:
        member_id = member.member_id
        has = assigned.get(member_id, {}) if member.assigned is None else _shared(member.assigned)
        loaded.append(_member(member, has, pending.get(member_id, {})))
        for kind in TimerKind:
            timer = member.timer(kind)
            if timer is not None:
                timers[kind][member_id] = timer
    jobs = row.jobs or {}
    made = KINDS[row.type]
    return made(
        group_id=group_id,
        state_since=row.state_since,
        group_epoch=row.generation_id,
        assignment_epoch=row.assignment_epoch,
        assignment_timestamp=row.assignment_timestamp,
        metadata_hash=row.metadata_hash,
        metadata_version=row.metadata_version,
        members=ShareMembers(loaded) if made is ShareGroup else ConsumerMembers(loaded),
        timers=Timers(**{kind.value: DeadlineMap(timers[kind]) for kind in TimerKind}),
        resolutions={rights: _resolution(found) for rights, found in (children.resolutions or {}).items()},
        regex_jobs={rights: Job(*job) for rights, job in jobs.get("regex", {}).items()},
        target_job=Job(*jobs["target"]) if "target" in jobs else None,
        hold=row.hold,
        armed_gap=row.armed_gap,
    )


def _member(row: MemberRow, assigned: Any, pending: Any) -> ConsumerMember:
    classic = None
    if row.classic_session_timeout_ms is not None:
        names_and_bytes = zip(row.classic_protocol_names, row.classic_protocol_metadata, strict=True)
        classic = ClassicMetadata(
            row.classic_session_timeout_ms, tuple(Protocol(name, bytes(data)) for name, data in names_and_bytes)
        )
    return ConsumerMember(
        member_id=row.member_id,
        instance_id=row.instance_id,
        rack_id=row.rack_id,
        client_id=row.client_id,
        client_host=row.client_host,
        rebalance_timeout_ms=row.rebalance_timeout_ms,
        subscribed_topic_names=frozenset(row.subscribed_topic_names),
        subscribed_topic_regex=row.subscribed_topic_regex,
        server_assignor=row.server_assignor,
        classic=classic,
        member_epoch=row.member_epoch,
        previous_member_epoch=row.previous_member_epoch,
        state=MemberState(row.state),
        assigned=assigned,
        pending_revocation=pending,
        target={topic_id: frozenset(partitions) for topic_id, partitions in row.target.items()},
        topic_rights=row.topic_rights,
    )


def _shared(value: Mapping[str, Mapping[str, int]]) -> dict[str, dict[int, int]]:
    """What a member of a share group has; the keys of JSON are texts."""
    return {topic_id: {int(p): epoch for p, epoch in partitions.items()} for topic_id, partitions in value.items()}


def _shared_column(group: EpochGroup, member: ConsumerMember) -> Any:
    """What members of a share group have is stored with them: of a partition there would be several rows."""
    return member.assigned if isinstance(group, ShareGroup) else None


def _resolution(value: Mapping[str, Any]) -> RegexResolution:
    topics = {regex: frozenset(names) for regex, names in value["topics"].items()}
    return RegexResolution(topics, value["topics_version"], value["started_at"])


def _resolution_columns(resolution: RegexResolution) -> dict[str, Any]:
    topics = {regex: sorted(names) for regex, names in resolution.topics.items()}
    return {"topics": topics, "topics_version": resolution.topics_version, "started_at": resolution.started_at}


def _job_columns(job: Job) -> list[int]:
    return [job.started_at, job.deadline, job.epoch]


def group_columns(group: EpochGroup) -> dict[str, Any]:
    """The columns of its row that depend on the group itself."""
    resolutions = {rights: _resolution_columns(found) for rights, found in group.resolutions.items()}
    jobs: dict[str, Any] = {}
    if group.regex_jobs:
        jobs["regex"] = {rights: _job_columns(job) for rights, job in group.regex_jobs.items()}
    if group.target_job is not None:
        jobs["target"] = _job_columns(group.target_job)
    return rows.group_columns(group) | {
        "type": group.type,
        "protocol_type": group.type,
        "generation_id": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignment_timestamp": group.assignment_timestamp,
        "metadata_hash": group.metadata_hash,
        "metadata_version": group.metadata_version,
        "resolution": resolutions or None,
        "jobs": jobs or None,
    }


def member_columns(pk: int, group: EpochGroup, member: ConsumerMember) -> dict[str, Any]:
    """The row of `upsert_consumer_members`."""
    classic = member.classic
    return {
        "group_id": pk,
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
        "classic_protocol_metadata": [bytea_text(protocol.metadata) for protocol in classic.protocols]
        if classic
        else None,
        "member_epoch": member.member_epoch,
        "previous_member_epoch": member.previous_member_epoch,
        "state": member.state.value,
        "target": {topic_id: sorted(partitions) for topic_id, partitions in member.target.items()},
        "assigned": _shared_column(group, member),
    }


def step_columns(written: Iterable[Written]) -> dict[str, list[Any]]:
    """Parameters of `update_consumer_steps`: an array for each column."""
    stepped = [(pk, group, member) for pk, group, changes in written for member in changes.stepped]
    shared = [_shared_column(group, member) for _, group, member in stepped]
    return {
        "id": [pk for pk, _, _ in stepped],
        "member_id": [member.member_id for _, _, member in stepped],
        "member_epoch": [member.member_epoch for _, _, member in stepped],
        "previous_member_epoch": [member.previous_member_epoch for _, _, member in stepped],
        "state": [member.state.value for _, _, member in stepped],
        "assigned": [None if assigned is None else Jsonb(assigned) for assigned in shared],
    }


def timer_columns(written: Iterable[Written]) -> dict[str, list[Any]]:
    """Parameters of `update_consumer_timers`: an array for each column."""
    moved = [(*one, member_id) for one in written for member_id in one.changes.timers]
    columns: dict[str, list[Any]] = {
        "id": [pk for pk, _, _, _ in moved],
        "member_id": [member_id for _, _, _, member_id in moved],
        "is_renewed": [member_id in changes.renewed for _, _, changes, member_id in moved],
    }
    for kind, (deadline, armed_at) in TIMER_COLUMNS.items():
        armed = [group.timers.of(kind).get(member_id) for _, group, _, member_id in moved]
        columns[deadline] = [timer.deadline if timer else None for timer in armed]
        columns[armed_at] = [timer.armed_at if timer else None for timer in armed]
    return columns


class ConsumerRows:
    """Consumer groups and share groups: header, members, timers, and partition ownership."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def load(
        self, connection: Connection, group_id: str, row: GroupRow, *, partitions: bool = True
    ) -> EpochGroup:
        """The group of a header row; without `partitions` its members own nothing and have an empty target."""
        children = (await self.children(connection, [row], partitions=partitions))[row.id]
        return await off_loop.run_within(connection, len(children.owned), group_from_rows, group_id, row, children)

    async def children(
        self, connection: Connection, rows: Sequence[GroupRow], *, partitions: bool = True
    ) -> dict[int, Children]:
        """What belongs to the groups of header rows, by their keys; `partitions` as in `load`."""
        found = {row.id: Children() for row in rows}
        parameters = {"ids": list(found), "targets": partitions}
        for member in await off_loop.records(connection, MemberRow, Q.load_consumer_members, parameters):
            found[member.group_id].members.append(member)
        for owned in await off_loop.fetch(connection, Q.load_ownership, {"ids": list(found)}) if partitions else ():
            found[owned[0]].owned.append(owned)
        resolved = [row.id for row in rows if row.has_resolution]
        if resolved:
            for pk, resolutions in await self._db.rows(connection, Q.load_resolution, {"ids": resolved}):
                found[pk].resolutions = resolutions
        return found

    header = staticmethod(group_columns)
    delete_all = Q.delete_consumer_children

    async def changes(self, connection: Connection, before: Group | None, after: EpochGroup) -> ConsumerChanges:
        """What differs from `before`, which is of the same protocol."""
        assert before is None or isinstance(before, EpochGroup)
        return await off_loop.run_within(connection, size_of(before) + size_of(after), changes, before, after)

    async def write(self, connection: Connection, written: Sequence[Written]) -> None:
        """Write what changed of some groups besides their headers."""
        await self._write_members(connection, written)
        await self._write_ownership(connection, written)

    async def load_sessions(self, connection: Connection, ids: Sequence[int]) -> list[TupleRow]:
        """The sessions of all members of groups: key of the group's row, member id, deadline, when it was armed."""
        return await off_loop.fetch(connection, Q.load_consumer_sessions, {"ids": ids})

    async def _write_members(self, connection: Connection, written: Sequence[Written]) -> None:
        if removed := [(pk, member_id) for pk, _, changes in written for member_id in changes.removed]:
            await connection.execute(Q.delete_consumer_members.encode(), keys(removed))
        upserted = [(pk, group, member) for pk, group, changes in written for member in changes.upserted]
        async for part in off_loop.in_parts(upserted):
            parameters = {"members": as_json([member_columns(*one) for one in part])}
            await connection.execute(Q.upsert_consumer_members.encode(), parameters)
        if any(changes.stepped for _, _, changes in written):
            await connection.execute(Q.update_consumer_steps.encode(), step_columns(written))
        if any(changes.timers for _, _, changes in written):
            await connection.execute(Q.update_consumer_timers.encode(), timer_columns(written))

    async def _write_ownership(self, connection: Connection, written: Sequence[Written]) -> None:
        """What is released is deleted first: the primary key refuses a second owner."""
        names: dict[object, str] = {}
        async for part in off_loop.in_parts((pk, *one) for pk, _, changes in written for one in changes.released):
            names.update(await self._db.rows(connection, Q.release_ownership, _columns(part)))
        async for part in off_loop.in_parts((pk, *one) for pk, _, changes in written for one in changes.taken):
            columns = _columns(part)
            columns["name"] = [names.get(topic_id) for topic_id in columns["topic_id"]]
            await connection.execute(Q.take_ownership.encode(), columns)


def _columns(owned: Iterable[tuple[object, ...]]) -> dict[str, list[object]]:
    names = ("id", "topic_id", "partition", "member_id", "epoch", "pending")
    return {name: list(column) for name, column in zip(names, zip(*owned, strict=True), strict=True)}
