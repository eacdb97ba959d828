"""Restores groups to an instant: a plan for each, to review, apply and undo.

The plans are those of the strategy `to-committed-at`. Source: architecture.md 7; docs/restore.md.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.access.rights import Principal
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.resets.strategies import Reset, Strategy
from offsets.commits.store import OffsetStore
from offsets.core.types import Millis, TopicPartition
from offsets.journal.archived_offsets import ArchivedOffsets, ReadAhead
from offsets.plans.service import PlanService
from offsets.plans.sources import NothingMeant, Past
from offsets.plans.store import PlanStore
from offsets.plans.summary import PlanHeader

Q = queries("offsets")


@dataclass(frozen=True, slots=True)
class RestoreOrder:
    """What to restore: to which instant (ms), which topics (none: all that exist), who requests it and why."""

    at: Millis
    topics: tuple[str, ...]
    principal: Principal
    reason: str = ""


@dataclass(frozen=True, slots=True)
class GroupRestore:
    """The result for a group: a plan, or the reason for its absence (`error`).

    `gone`: partitions that had an offset at the instant and do not exist now; they are left out. Without plan and
    error, the group has and had nothing to restore.
    """

    group_id: str
    plan: PlanHeader | None = None
    error: ProtocolError | None = None
    gone: Sequence[TopicPartition] = field(default=())

    @property
    def changes(self) -> bool:
        """Applying the plan changes an offset."""
        return self.plan is not None and bool(self.plan.totals["changed"])


class RestoreService:
    """Creates the plans of a restore, and applies and undoes them. May raise COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._groups = runtime.get(GroupService)
        self._topics = runtime.get(TopicService)
        self._offsets = runtime.get(OffsetStore)
        self._store = runtime.get(PlanStore)
        self._plans = runtime.get(PlanService)
        self._past = runtime.get(Past)
        self._archived = runtime.get(ArchivedOffsets)

    async def check(self, at: Millis) -> None:
        """Raise INVALID_REQUEST for an instant in the future, or one for which nothing is kept."""
        await self._past.check(await self._store.now(), at)

    def use(self, read_ahead: ReadAhead | None) -> None:
        """Use these states as the archive's contents for every group, instead of reading it for each."""
        self._archived.read_ahead = read_ahead

    async def groups(self) -> list[str]:
        """Groups that the journal knows, and groups with committed offsets."""
        async with self._db.connection() as connection:
            return await self._db.column(connection, Q.groups_with_offsets)

    async def plan(self, group_id: str, order: RestoreOrder, *, pick: bool) -> GroupRestore:
        """Create the plan of a group and store it; nothing is committed.

        `pick`: of the named topics, take those that the group ever read; else each must exist.
        """
        try:
            traced = await self._traced(group_id, order.at)
            topics = tuple(topic for topic in order.topics if topic in traced) if pick else order.topics
            if pick and order.topics and not topics:
                return GroupRestore(group_id)
            gone = await self._gone(group_id, order, traced)
            scope = tuple((topic, None) for topic in topics) or None
            reset = Reset(Strategy.TO_COMMITTED_AT, scope, at=order.at)
            made = await self._plans.create(group_id, reset, order.principal, order.reason)
        except NothingMeant:
            return GroupRestore(group_id, gone=gone)
        except ProtocolError as error:
            return GroupRestore(group_id, error=error)
        return GroupRestore(group_id, made, gone=gone)

    async def members(self, group_id: str) -> int:
        """How many members a group has: if it has any, nothing can be applied."""
        group = (await self._groups.describe(group_id)).group
        return 0 if group is None else len(group.members)

    async def apply(self, plan: PlanHeader, principal: Principal) -> PlanHeader:
        """Apply a plan. Raises ProtocolError as `PlanService.apply` does."""
        return await self._plans.apply(plan.group_id, plan.id, principal)

    async def undo(self, group_id: str, plan_id: str, principal: Principal) -> PlanHeader:
        """Undo a plan. Raises ProtocolError as `PlanService.undo` does."""
        return await self._plans.undo(group_id, plan_id, principal)

    async def _traced(self, group_id: str, at: Millis) -> Collection[str]:
        """All known topics: committed now, in the journal, or in the archive up to the instant."""
        journal = await self._store.journal_topics(group_id)
        archived = await self._archived.at(group_id, at)
        now = await self._offsets.fetch(group_id, None)
        return {*journal, *(topic for topic, _ in archived), *(offset.topic for offset in now)}

    async def _gone(self, group_id: str, order: RestoreOrder, traced: Collection[str]) -> list[TopicPartition]:
        """Partitions with an offset committed at the instant, of topics deleted since."""
        there = (await self._topics.current()).by_name
        missing = [topic for topic in sorted(traced) if topic not in there]
        if order.topics:
            missing = [topic for topic in missing if topic in order.topics]
        if not missing:
            return []
        async with self._db.connection() as connection:
            parameters = {"group_id": group_id, "topics": missing}
            rows = await self._db.rows(connection, Q.journal_partitions, parameters)
        past = await self._past.of(group_id, [(topic, partition) for topic, partition in rows], order.at)
        found = {key: offset for key, offset in past.archive.items() if key[0] in missing} | dict(past.journal)
        return sorted(key for key, offset in found.items() if offset is not None)


def non_empty(group_id: str, members: int) -> ProtocolError:
    """The refusal for a group that has members."""
    return ProtocolError(Error.NON_EMPTY_GROUP, f"group {group_id!r} has {members} members: stop them first")
