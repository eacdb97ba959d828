"""The rows of classic groups: read into values of the core, compared, and written as they changed. No rules.

`load . persist = fold` (architecture.md invariant 5) rests on this module and is tested on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from psycopg.rows import TupleRow

from groups import states
from groups.core.model.group import Group
from groups.core.model.types import (
    ClassicGroup,
    ClassicMember,
    GroupState,
    JoinTimer,
    Members,
    Millis,
    PendingIds,
    Protocol,
)
from groups.store import rows
from groups.store.rows import GroupRow, Written, bytea_array, keys, number_array, text_array
from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries
from kcoord.process import off_loop
from kcoord.protocol.consumer_protocol import decode_assignment


def group_columns(group: ClassicGroup) -> dict[str, Any]:
    """The columns of its row that depend on the group itself."""
    timer = group.join_timer
    delay, remaining = (timer.initial or (None, None)) if timer else (None, None)
    return rows.group_columns(group) | {
        "type": states.CLASSIC,
        "previous_state": group.previous_state.value,
        "generation_id": group.generation_id,
        "protocol_type": group.protocol_type,
        "protocol_name": group.protocol_name,
        "leader_id": group.leader_id,
        "new_member_added": group.new_member_added,
        "join_deadline": timer.deadline if timer else None,
        "join_delay_ms": delay,
        "join_remaining_ms": remaining,
        "sync_deadline": group.sync_deadline,
    }


@dataclass(frozen=True, slots=True)
class Changes:
    """The difference between two folded groups, as the store writes it."""

    header: bool
    removed: tuple[str, ...]
    upserted: tuple[ClassicMember, ...]
    progressed: tuple[ClassicMember, ...]
    pending_removed: tuple[str, ...]
    pending_set: Mapping[str, Millis]
    reassigned: tuple[ClassicMember, ...]
    """Members with an assignment whose bytes changed."""
    renewed: frozenset[str]
    """Ids of the members whose session changed."""
    only_renewed: bool
    """Nothing but sessions changed."""
    topics: bool
    """Whether the topics of the generation changed."""
    resolution_stays = False

    @property
    def nothing(self) -> bool:
        """The two groups are the same."""
        return not (
            self.header
            or self.removed
            or self.upserted
            or self.progressed
            or self.pending_removed
            or self.pending_set
            or self.topics
        )

    @property
    def only_deadlines(self) -> bool:
        """Nothing in the group's own row changed except, at most, the next wake-up."""
        return not (self.header or self.removed or self.upserted or self.topics)


def is_other_state(before: ClassicGroup | None, after: ClassicGroup) -> bool:
    """A barrier fell, or a rebalance began: all members may have changed."""
    return before is not None and (before.state, before.generation_id) != (after.state, after.generation_id)


def changes(before: ClassicGroup | None, after: ClassicGroup) -> Changes:
    """What must be written to make the rows of `before` those of `after`.

    Members keep their order of arrival because a member whose place changed has a new id (static replacement) and
    is written as a removal and an insertion.
    """
    members = before.members if before else Members()
    removed, changed = after.members.changes_since(members)
    pending_removed, pending_set = after.pending_join.changes_since(before.pending_join if before else PendingIds())
    upserted, progressed, reassigned, renewed = [], [], [], set()
    only_renewed = True
    for member in changed.values():
        old = members.get(member.member_id)
        if old is None or _session(old) != _session(member):
            renewed.add(member.member_id)
        if old is None or _identity(old) != _identity(member):
            upserted.append(member)
        else:
            progressed.append(member)
            only_renewed = only_renewed and _waits(old) == _waits(member)
        if member.assignment != (old.assignment if old else b""):
            reassigned.append(member)
    header = before is None or group_columns(before) != group_columns(after)
    others = header or removed or upserted or pending_removed or pending_set
    topics = (before.generation_topics if before else None) != after.generation_topics
    return Changes(
        header=header,
        removed=tuple(removed),
        upserted=tuple(upserted),
        progressed=tuple(progressed),
        pending_removed=tuple(pending_removed),
        pending_set=pending_set,
        reassigned=tuple(reassigned),
        renewed=frozenset(renewed),
        only_renewed=only_renewed and not (others or topics),
        topics=topics,
    )


def _session(member: ClassicMember) -> tuple[object, ...]:
    return member.session_deadline, member.last_heartbeat_at


def _waits(member: ClassicMember) -> tuple[object, ...]:
    return (
        member.is_new,
        member.join_parked_until,
        member.sync_parked_until,
        member.pending_sync,
        member.assignment,
    )


def _identity(member: ClassicMember) -> tuple[object, ...]:
    return (
        member.instance_id,
        member.client_id,
        member.client_host,
        member.session_timeout_ms,
        member.rebalance_timeout_ms,
        member.protocol_type,
        member.protocols,
    )


Q = queries("groups")

CONSUMER_PROTOCOL_TYPE = "consumer"
MAX_TOPIC_LENGTH = 249
MEMBERS_AT_ONCE = 250
"""Members that one statement writes: preparing more of them would hold the loop up."""


class MemberRow(NamedTuple):
    """The columns of `load_members`. `group_id`: key of the group's row."""

    group_id: int
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: Millis
    rebalance_timeout_ms: Millis
    protocol_type: str
    protocol_names: list[str]
    protocol_metadata: list[bytes]
    assignment: bytes
    is_new: bool
    join_parked_until: Millis | None
    sync_parked_until: Millis | None
    pending_sync: bool
    session_deadline: Millis | None
    last_heartbeat_at: Millis | None


@dataclass(slots=True)
class Children:
    """The rows that belong to a group. `topics`: those of its generation."""

    members: list[MemberRow] = field(default_factory=list)
    pending: dict[str, Millis] = field(default_factory=dict)
    topics: Iterable[str] | None = None


def group_from_rows(group_id: str, row: GroupRow, children: Children) -> ClassicGroup:
    """The group that a row of `lock_group` and its children describe."""
    timer = None
    if row.join_deadline is not None:
        initial = None
        if row.join_delay_ms is not None and row.join_remaining_ms is not None:
            initial = row.join_delay_ms, row.join_remaining_ms
        timer = JoinTimer(row.join_deadline, initial)
    return ClassicGroup(
        group_id=group_id,
        state=GroupState(row.state),
        previous_state=GroupState(row.previous_state),
        state_since=row.state_since,
        generation_id=row.generation_id,
        protocol_type=row.protocol_type,
        protocol_name=row.protocol_name,
        leader_id=row.leader_id,
        new_member_added=row.new_member_added,
        join_timer=timer,
        sync_deadline=row.sync_deadline,
        members=Members(member_from_row(member) for member in children.members),
        pending_join=PendingIds(children.pending),
        generation_topics=None if children.topics is None else frozenset(children.topics),
        hold=row.hold,
        armed_gap=row.armed_gap,
    )


def member_from_row(row: MemberRow) -> ClassicMember:
    """The member that a row of `load_members` describes."""
    protocols = zip(row.protocol_names, row.protocol_metadata, strict=True)
    return ClassicMember(
        member_id=row.member_id,
        instance_id=row.instance_id,
        client_id=row.client_id,
        client_host=row.client_host,
        session_timeout_ms=row.session_timeout_ms,
        rebalance_timeout_ms=row.rebalance_timeout_ms,
        protocol_type=row.protocol_type,
        protocols=tuple(Protocol(name, bytes(data)) for name, data in protocols),
        assignment=bytes(row.assignment),
        is_new=row.is_new,
        join_parked_until=row.join_parked_until,
        sync_parked_until=row.sync_parked_until,
        pending_sync=row.pending_sync,
        session_deadline=row.session_deadline,
        last_heartbeat_at=row.last_heartbeat_at,
    )


def member_arrays(members: Sequence[ClassicMember]) -> dict[str, str]:
    """The parameters of `upsert_members` with an element for each member."""
    return {
        "instance_id": text_array(member.instance_id for member in members),
        "client_id": text_array(member.client_id for member in members),
        "client_host": text_array(member.client_host for member in members),
        "session_timeout_ms": number_array(member.session_timeout_ms for member in members),
        "rebalance_timeout_ms": number_array(member.rebalance_timeout_ms for member in members),
        "protocol_type": text_array(member.protocol_type for member in members),
        "protocol_names": text_array(text_array(one.name for one in member.protocols) for member in members),
        "protocol_metadata": text_array(bytea_array(one.metadata for one in member.protocols) for member in members),
        "assignment": bytea_array(member.assignment for member in members),
        **progress_arrays(members),
    }


def progress_arrays(members: Sequence[ClassicMember]) -> dict[str, str]:
    """What changes while members only join, sync and heartbeat (`update_member_progress`), besides assignments."""
    return {
        "member_id": text_array(member.member_id for member in members),
        "is_new": number_array(member.is_new for member in members),
        "join_parked_until": number_array(member.join_parked_until for member in members),
        "sync_parked_until": number_array(member.sync_parked_until for member in members),
        "pending_sync": number_array(member.pending_sync for member in members),
        "session_deadline": number_array(member.session_deadline for member in members),
        "last_heartbeat_at": number_array(member.last_heartbeat_at for member in members),
    }


class ClassicRows:
    """Classic groups: header, members, pending ids, the topics of the generation, and in readable form the leader's
    assignment.
    """

    def __init__(self, db: Database) -> None:
        self._db = db

    async def load(self, connection: Connection, group_id: str, row: GroupRow) -> ClassicGroup:
        """The group of a header row."""
        children = (await self.children(connection, [row.id]))[row.id]
        size = off_loop.PER_MEMBER * len(children.members)
        return await off_loop.run_within(connection, size, group_from_rows, group_id, row, children)

    async def children(self, connection: Connection, ids: Sequence[int]) -> dict[int, Children]:
        """The rows that belong to groups, by the keys of theirs."""
        found = {pk: Children() for pk in ids}
        parameters = {"ids": ids}
        for member in await off_loop.records(connection, MemberRow, Q.load_members, parameters):
            found[member.group_id].members.append(member)
        for pk, member_id, deadline in await off_loop.fetch(connection, Q.load_pending, parameters):
            found[pk].pending[member_id] = deadline
        for pk, topics in await self._db.rows(connection, Q.load_generation_topics, parameters):
            found[pk].topics = topics
        return found

    header = staticmethod(group_columns)
    delete_all = Q.delete_classic_children

    async def changes(self, connection: Connection, before: Group | None, after: ClassicGroup) -> Changes:
        """What differs from `before`, which is of the same protocol."""
        assert before is None or isinstance(before, ClassicGroup)
        size = off_loop.PER_MEMBER * len(after.members) if is_other_state(before, after) else 0
        return await off_loop.run_within(connection, size, changes, before, after)

    async def write(self, connection: Connection, written: Sequence[Written]) -> None:
        """Write what changed of some groups besides their headers."""
        await self._write_members(connection, written)
        await self._write_pending(connection, written)
        await self._write_assignments(connection, written)
        await self._write_topics(connection, written)

    async def load_sessions(self, connection: Connection, ids: Sequence[int]) -> list[TupleRow]:
        """The sessions of all members of groups: key of the group's row, member id, deadline, when it was heard of."""
        return await off_loop.fetch(connection, Q.load_sessions, {"ids": ids})

    async def _write_members(self, connection: Connection, written: Sequence[Written]) -> None:
        if removed := [(pk, member_id) for pk, _, changes in written for member_id in changes.removed]:
            await connection.execute(Q.delete_members.encode(), keys(removed))
        upserted = [(pk, member, changes) for pk, _, changes in written for member in changes.upserted]
        async for part in off_loop.in_parts(upserted, MEMBERS_AT_ONCE):
            renewed = [(pk, one.member_id) for pk, one, changes in part if one.member_id in changes.renewed]
            parameters = {
                **member_arrays([member for _, member, _ in part]),
                "id": number_array(pk for pk, _, _ in part),
                "renewed_id": number_array(pk for pk, _ in renewed),
                "renewed": text_array(member_id for _, member_id in renewed),
            }
            await connection.execute(Q.upsert_members.encode(), parameters)
        # An unchanged assignment is not sent: each write would store it out of line once more.
        assigned = {(pk, member.member_id) for pk, _, changes in written for member in changes.reassigned}
        progressed = [(pk, member, changes) for pk, _, changes in written for member in changes.progressed]
        async for part in off_loop.in_parts(progressed, MEMBERS_AT_ONCE):
            parameters = {
                **progress_arrays([member for _, member, _ in part]),
                "id": number_array(pk for pk, _, _ in part),
                "assignment": bytea_array(
                    one.assignment if (pk, one.member_id) in assigned else None for pk, one, _ in part
                ),
                "is_renewed": number_array(one.member_id in changes.renewed for _, one, changes in part),
            }
            await connection.execute(Q.update_member_progress.encode(), parameters)

    async def _write_pending(self, connection: Connection, written: Sequence[Written]) -> None:
        if removed := [(pk, member_id) for pk, _, changes in written for member_id in changes.pending_removed]:
            await connection.execute(Q.delete_pending.encode(), keys(removed))
        if given := [(pk, *pending) for pk, _, changes in written for pending in changes.pending_set.items()]:
            deadlines = number_array(deadline for _, _, deadline in given)
            parameters = {**keys((pk, member_id) for pk, member_id, _ in given), "deadline": deadlines}
            await connection.execute(Q.upsert_pending.encode(), parameters)

    async def _write_topics(self, connection: Connection, written: Sequence[Written]) -> None:
        changed = [(pk, after.generation_topics) for pk, after, changes in written if changes.topics]
        if unknown := [pk for pk, topics in changed if topics is None]:
            await connection.execute(Q.delete_generation_topics.encode(), {"ids": unknown})
        if known := [{"group_id": pk, "topics": sorted(topics)} for pk, topics in changed if topics is not None]:
            await connection.execute(Q.upsert_generation_topics.encode(), {"rows": rows.as_json(known)})

    async def _write_assignments(self, connection: Connection, written: Sequence[Written]) -> None:
        reassigned = [(pk, member.member_id) for pk, _, changes in written for member in changes.reassigned]
        if emptied := [(pk, one) for pk, _, changes in written for one in changes.removed] + reassigned:
            await connection.execute(Q.delete_assignments.encode(), keys(emptied))
        size = off_loop.PER_MEMBER * len(reassigned)
        owned = await off_loop.run_within(connection, size, all_owned_partitions, written)
        if owned:
            ids, generations, topics, partitions, members = zip(*owned, strict=True)
            parameters = {
                "id": number_array(ids),
                "generation_id": number_array(generations),
                "topic": text_array(topics),
                "partition": number_array(partitions),
                "member_id": text_array(members),
            }
            await connection.execute(Q.insert_assignments.encode(), parameters)


def all_owned_partitions(written: Iterable[Written]) -> list[tuple[int, int, str, int, str]]:
    """The rows of assignments that changed: key of the group's row, generation, topic, partition, member id."""
    return [
        (pk, after.generation_id, *owned)
        for pk, after, changes in written
        for owned in owned_partitions(after, changes.reassigned)
    ]


def owned_partitions(group: ClassicGroup, members: Sequence[ClassicMember]) -> list[tuple[str, int, str]]:
    """(topic, partition, member id) of assignments that are Kafka's ConsumerProtocol bytes; others own nothing here."""
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return []
    owned: dict[tuple[str, int], str] = {}
    for member in members:
        assignment = decode_assignment(member.assignment)
        if assignment is None:
            continue
        for topic, partitions in assignment.partitions.items():
            if not topic or len(topic) > MAX_TOPIC_LENGTH:
                continue  # opaque bytes may decode to invalid topic names
            for partition in partitions:
                owned.setdefault((topic, partition), member.member_id)
    return [(topic, partition, member_id) for (topic, partition), member_id in owned.items()]
