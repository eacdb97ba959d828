"""The store of offset plans: their only writer, and what plans read about offsets, logs and the journal.

Lock order: the group's row, then the plan's. Applying or undoing a plan holds the first and takes the second;
maintenance takes unlocked plans, and no group.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from psycopg.types.json import Jsonb

from groups.store.locked import LockedGroup
from kcoord.access.audit.recording import Act, record
from kcoord.access.rights import Principal
from kcoord.database.paging import EVERYTHING, Visible
from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from offsets.core.days import bounds, day_of
from offsets.core.plan import MAX_LINES
from offsets.core.plan_types import Committed, Line, Log, PlanState, Position, Totals
from offsets.core.types import Millis, TopicPartition
from offsets.plans.refusals import unknown_plan
from offsets.plans.summary import PlanHeader, plan_header
from offsets.share.store import Rules, composite

Q = queries("offsets")

CHUNK = 2_000
"""Lines that one statement takes or returns: the event loop must serve others in between."""

BEFORE_ALL: TopicPartition = ("", -1)
"""Sorts before every partition in the order of topics and partitions."""

T = TypeVar("T")


class PlanStore:
    """Reads and writes plans. Methods may raise ProtocolError COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, runtime: Runtime) -> None:
        self._db: Database = runtime.db

    async def committed(self, group_id: str, *, share: bool = False) -> list[Position]:
        """Where the group is on every partition on which it has a committed offset; about MAX_LINES at most.

        `share`: it is a share group, which is where the first unfinished item is.
        """
        found: list[Position] = []
        statement = Q.plan_begun if share else Q.plan_committed
        while len(found) <= MAX_LINES:
            topic, partition = found[-1].key if found else BEFORE_ALL
            parameters = {"group_id": group_id, "after_topic": topic, "after_partition": partition, "limit": CHUNK}
            async with self._db.connection() as connection:
                some = await self._db.records(connection, _position, statement, parameters)
            found += some
            if len(some) < CHUNK:
                break
        return found

    async def positions(
        self, group_id: str, partitions: Sequence[TopicPartition], *, share: bool = False
    ) -> list[Position]:
        """Where the group is on these partitions, by topic and partition; they need not exist. `share`: as above."""
        found: list[Position] = []
        statement = Q.plan_begun_named if share else Q.plan_named
        for some in chunks(sorted(partitions)):
            async with self._db.connection() as connection:
                parameters = {"group_id": group_id, **_arrays(some)}
                found += await self._db.records(connection, _position, statement, parameters)
        return found

    async def journal_topics(self, group_id: str) -> list[str]:
        """Topics for which the journal has anything about the group."""
        async with self._db.connection() as connection:
            return await self._db.column(connection, Q.journal_topics, {"group_id": group_id})

    async def journal_at(
        self, group_id: str, partitions: Sequence[TopicPartition], since: Millis, until: Millis
    ) -> dict[TopicPartition, int | None]:
        """What each partition's last line written from `since` to `until` (ms, both inclusive) says.

        None: it removed the offset. Partitions without a line are absent. It is fast if `since` is the start of a day.
        """
        found: dict[TopicPartition, int | None] = {}
        span = {"group_id": group_id, "since": since, "until": until}
        for some in chunks(partitions):
            async with self._db.connection() as connection:
                rows = await self._db.rows(connection, Q.journal_at, {**span, **_arrays(some)})
            found.update(((topic, partition), offset) for topic, partition, offset in rows)
        return found

    async def journal_since(
        self, group_id: str, partitions: Sequence[TopicPartition], after: Millis
    ) -> set[TopicPartition]:
        """Which of these partitions have a line after an instant (ms)."""
        found: set[TopicPartition] = set()
        span = {"group_id": group_id, "after": after, "day": bounds(day_of(after))[0]}
        for some in chunks(partitions):
            async with self._db.connection() as connection:
                rows = await self._db.rows(connection, Q.journal_since, {**span, **_arrays(some)})
            found.update((topic, partition) for topic, partition in rows)
        return found

    async def group_key(self, group_id: str) -> int | None:
        """The key of the group's row; None: the group does not exist."""
        async with self._db.connection() as connection:
            key: int | None = await self._db.value(connection, Q.group_key, {"group_id": group_id})
        return key

    async def now(self) -> Millis:
        """The current time."""
        async with self._db.connection() as connection:
            return await self._db.now_ms(connection)

    async def insert(
        self,
        plan_id: str,
        group_id: str,
        strategy: str,
        parameters: Mapping[str, object],
        lines: Sequence[Line],
        totals: Totals,
        reason: str,
        principal: Principal,
    ) -> None:
        """Store a new plan with its lines, and record it in the audit."""

        async def work(connection: Connection) -> None:
            header = {
                "id": plan_id,
                "group_id": group_id,
                "strategy": strategy,
                "parameters": Jsonb(dict(parameters)),
                "totals": Jsonb(asdict(totals)),
                "reason": reason,
                "now": await self._db.now_ms(connection),
                "principal": principal.name,
                "maker": principal.person,
            }
            await connection.execute(Q.insert_plan.encode(), header)
            for some in chunks(lines):
                await connection.execute(Q.insert_plan_lines.encode(), {"id": plan_id, **_columns(some)})
                await asyncio.sleep(0)
            after = {"plan_id": plan_id, "strategy": strategy, "parameters": dict(parameters), **asdict(totals)}
            act = Act("offsets.plan", "group", group_id, after=after, reason=reason, principal=principal.name)
            await record(self._db, connection, act)

        await self._db.transaction(work, long=True)

    async def read(self, group_id: str, plan_id: str) -> PlanHeader | None:
        """A plan of this group; None if it has none with this id."""
        async with self._db.connection() as connection:
            return await self._db.record(connection, plan_header, Q.read_plan, {"id": plan_id, "group_id": group_id})

    async def find(self, group_id: str, plan_id: str) -> PlanHeader:
        """A plan of this group. Raises INVALID_REQUEST with status 404 if it has none with this id."""
        try:
            found = await self.read(group_id, str(uuid.UUID(plan_id)))
        except ValueError:
            found = None
        if found is None:
            raise unknown_plan(group_id, plan_id)
        return found

    async def recent(self, group_id: str, before: tuple[Millis, str] | None, limit: int) -> list[PlanHeader]:
        """Plans of a group, newest first; `before`: those after that one in this order."""
        at, plan_id = before or (None, None)
        parameters = {"group_id": group_id, "before": at, "before_id": plan_id, "limit": limit}
        async with self._db.connection() as connection:
            return await self._db.records(connection, plan_header, Q.list_plans, parameters)

    async def topics(self, plan_id: str) -> list[str]:
        """The topics of a plan."""
        async with self._db.connection() as connection:
            return await self._db.column(connection, Q.plan_topics, {"id": plan_id})

    async def lines(self, plan_id: str) -> list[Line]:
        """All lines. They never change, so they may be read without a lock."""
        found: list[Line] = []
        while True:
            some = await self.page(plan_id, found[-1].key if found else BEFORE_ALL, CHUNK)
            found += some
            if len(some) < CHUNK:
                return found

    async def page(
        self,
        plan_id: str,
        after: TopicPartition,
        limit: int,
        visible: Visible = EVERYTHING,
        *,
        risky: bool = False,
    ) -> list[Line]:
        """Lines after one of them, for topics in `visible`; `risky`: only those that are."""
        parameters = {
            "id": plan_id,
            "after_topic": after[0],
            "after_partition": after[1],
            "limit": limit,
            "risky": risky,
            **visible.parameters(),
        }
        async with self._db.connection() as connection:
            return await self._db.records(connection, _line, Q.plan_lines_page, parameters)

    async def lock(self, locked: LockedGroup, plan_id: str) -> PlanState | None:
        """Lock a plan until the transaction ends; None: it no longer exists."""
        state = await self._db.value(locked.connection, Q.lock_plan, {"id": plan_id})
        return None if state is None else PlanState(state)

    async def approve(self, connection: Connection, plan_id: str, principal: str, now: Millis) -> Millis | None:
        """Note an approval in the caller's transaction; None: there is one already, or the plan was applied."""
        parameters = {"id": plan_id, "principal": principal, "now": now}
        at: Millis | None = await self._db.value(connection, Q.approve_plan, parameters)
        return at

    async def moved(
        self, plan_id: str, state: PlanState, group: int | None, limit: int, connection: Connection | None = None
    ) -> list[TopicPartition]:
        """Partitions on which something was committed or removed since the plan was made, or applied (its `state`).

        `group`: key of the group's row, None if it does not exist. `connection`: look in the caller's transaction.
        """
        statement = Q.moved_since_planned if state is PlanState.PLANNED else Q.moved_since_applied
        parameters = {"id": plan_id, "group": -1 if group is None else group, "limit": limit}
        if connection is not None:
            return [(topic, partition) for topic, partition in await self._db.rows(connection, statement, parameters)]
        async with self._db.connection() as own:
            return [(topic, partition) for topic, partition in await self._db.rows(own, statement, parameters)]

    async def items_moved(
        self, locked: LockedGroup, plan_id: str, state: PlanState, limit: int
    ) -> list[TopicPartition]:
        """Partitions of a share group to whose items something happened since the plan was made, or applied."""
        parameters = {
            "id": plan_id,
            "group": locked.pk,
            "applied": state is not PlanState.PLANNED,
            "limit": limit,
        }
        return [
            (topic, partition) for topic, partition in await self._db.rows(locked.connection, Q.items_moved, parameters)
        ]

    async def set_starts(self, locked: LockedGroup, plan_id: str, rules: Rules) -> None:
        """Let the partitions of a share group begin where the plan says."""
        parameters = {"id": plan_id, "group": locked.pk, "rules": composite(rules), "now": locked.now}
        await locked.connection.execute(Q.apply_share_plan.encode(), parameters)
        await locked.connection.execute(Q.note_applied_items.encode(), {"id": plan_id, "group": locked.pk})

    async def restore_items(self, locked: LockedGroup, plan_id: str) -> None:
        """Bring back the items that a plan has removed, and where partitions were."""
        parameters = {"id": plan_id, "group": locked.pk, "now": locked.now}
        await locked.connection.execute(Q.undo_share_plan.encode(), parameters)

    async def gone(self, topics: Sequence[str], since: Millis, connection: Connection | None = None) -> list[str]:
        """Which of these topics were deleted since an instant (ms), including those created again since.

        `connection`: look in the caller's transaction.
        """
        parameters = {"topics": list(topics), "since": since}
        if connection is not None:
            return await self._db.column(connection, Q.topics_gone, parameters)
        async with self._db.connection() as own:
            return await self._db.column(own, Q.topics_gone, parameters)

    async def pending(self, locked: LockedGroup, plan_id: str, limit: int) -> list[TopicPartition]:
        """Partitions of the plan on which a transaction of the group is open."""
        parameters = {"id": plan_id, "group": locked.pk, "limit": limit}
        rows = await self._db.rows(locked.connection, Q.pending_on_plan, parameters)
        return [(topic, partition) for topic, partition in rows]

    async def note_offsets(self, locked: LockedGroup, plan_id: str) -> None:
        """Record which lines of the journal applied a plan."""
        await locked.connection.execute(Q.note_applied_offsets.encode(), {"id": plan_id, "group": locked.pk})

    async def applied(self, locked: LockedGroup, plan_id: str, principal: str) -> None:
        """Record that a plan is applied."""
        parameters = {"id": plan_id, "now": locked.now, "principal": principal}
        await locked.connection.execute(Q.plan_applied.encode(), parameters)

    async def undone(self, locked: LockedGroup, plan_id: str, principal: str) -> None:
        """Record that a plan is undone."""
        parameters = {"id": plan_id, "now": locked.now, "principal": principal}
        await locked.connection.execute(Q.plan_undone.encode(), parameters)

    async def delete_expired(self, before: Millis) -> bool:
        """Delete one plan that was idle since `before` (ms), completely; False if no such plan exists."""

        async def work(connection: Connection) -> bool:
            plan_id = await self._db.value(connection, Q.lock_expired_plan, {"before": before})
            if plan_id is None:
                return False
            await connection.execute(Q.delete_plan_lines.encode(), {"id": plan_id})
            await connection.execute(Q.delete_plan.encode(), {"id": plan_id})
            return True

        return await self._db.transaction(work, long=True)


def chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """The items in chunks of CHUNK."""
    return (items[start : start + CHUNK] for start in range(0, len(items), CHUNK))


def _arrays(partitions: Sequence[TopicPartition]) -> dict[str, Any]:
    return {"topic": [topic for topic, _ in partitions], "partition": [partition for _, partition in partitions]}


def _log(start: int | None, end: int | None) -> Log | None:
    return None if start is None or end is None else Log(start, end)


def _committed(
    offset: int | None,
    *,
    leader_epoch: int,
    metadata: str,
    commit_timestamp: Millis,
    expire_timestamp: Millis | None,
    record_offset: int,
) -> Committed | None:
    """Without the defaults of `Committed`, which would stand for a column that a statement forgot."""
    if offset is None:
        return None
    return Committed(offset, leader_epoch, metadata, commit_timestamp, expire_timestamp, record_offset)


def _position(
    *,
    topic: str,
    partition: int,
    exists: bool,
    committed_offset: int | None,
    log_start_offset: int | None,
    log_end_offset: int | None,
    **stored: Any,
) -> Position:
    return Position(
        topic, partition, exists, _committed(committed_offset, **stored), _log(log_start_offset, log_end_offset)
    )


def _line(
    *,
    topic: str,
    partition: int,
    old_offset: int | None,
    requested_offset: int | None,
    new_offset: int | None,
    log_start_offset: int | None,
    log_end_offset: int | None,
    note: str,
    **stored: Any,
) -> Line:
    old = _committed(old_offset, **stored)
    return Line(topic, partition, old, requested_offset, new_offset, _log(log_start_offset, log_end_offset), note)


def _columns(lines: Sequence[Line]) -> dict[str, list[Any]]:
    return {
        "topic": [line.topic for line in lines],
        "partition": [line.partition for line in lines],
        "old_offset": [line.old_offset for line in lines],
        "old_leader_epoch": [-1 if line.old is None else line.old.leader_epoch for line in lines],
        "old_metadata": ["" if line.old is None else line.old.metadata for line in lines],
        "old_commit_timestamp": [None if line.old is None else line.old.commit_timestamp for line in lines],
        "old_expire_timestamp": [None if line.old is None else line.old.expire_timestamp for line in lines],
        "old_record_offset": [None if line.old is None else line.old.record_offset for line in lines],
        "requested_offset": [line.requested for line in lines],
        "new_offset": [line.new for line in lines],
        "log_start_offset": [None if line.log is None else line.log.start for line in lines],
        "log_end_offset": [None if line.log is None else line.log.end for line in lines],
        "note": [line.note for line in lines],
    }
