"""Offset plans: a reset as plan, review, apply and undo.

A plan is computed and kept; nothing moves. Applying writes what the plan shows, or refuses: the group must have no
members, and every partition must be as the plan found it. Undoing restores the earlier offsets, provided nothing else
was committed. Both write offsets, journal, event and the plan's state in one transaction under the group's lock.

Source: http-api.md 4; offsets.md 13.5.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import structlog

from groups.core.model.commands import ResetOffsets
from groups.core.model.events import EventKind
from groups.core.model.replies import Done
from groups.engine.service import GroupService
from groups.readmodel import unknown_group
from groups.store.locked import LockedGroup
from kcoord.access.rights import Operation, Principal
from kcoord.database import request_age
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, PartitionProblem, ProblemFields, ProtocolError
from kcoord.resets.instants import parse_duration
from kcoord.resets.strategies import PARAMETER, Reset, Strategy, check
from kcoord.rest.paging import DEFAULT_LIMIT, EVERYTHING, Page, Visible, cut, decode_cursor, encode_cursor
from offsets.core.days import DAY_MS
from offsets.core.plan import application, plan, restoration, totals
from offsets.core.plan_types import Change, Line, PlanHeader, PlanState, Problem
from offsets.core.types import ChangeKind, Millis, Provenance, TopicPartition
from offsets.journal.events import offsets_event
from offsets.plans.sources import PlanSources, check_readable
from offsets.plans.store import BEFORE_ALL, PlanStore, chunks
from offsets.store import OffsetStore

log = structlog.get_logger(__name__)

MOST_NAMED = 10
"""The most partitions that the message of a refusal names."""
MOST_LISTED = 100
"""The most partitions that a refusal lists as data."""
MOST_TRIMMED = 1_000
"""The most plans that one run of maintenance deletes, so that it ends; the next run continues."""


class PlanRefused(ProtocolError):
    """INVALID_REQUEST with a different status: 404 for a plan that does not exist, 409 if something changed."""

    def __init__(self, status: int, detail: str, **fields: Unpack[ProblemFields]) -> None:
        super().__init__(Error.INVALID_REQUEST, detail, fields=fields)
        self.status = status


EXTRA_MS = 30_000
"""A plan may be large: it takes effect up to this much later than other requests."""


@dataclass(frozen=True, slots=True)
class _Step:
    """Applying or undoing: the state it requires, what it writes, and how it is recorded."""

    verb: str
    takes: PlanState
    change: Callable[[Iterable[Line]], Change]
    event: EventKind


_APPLY = _Step("applied", PlanState.PLANNED, application, EventKind.OFFSETS_RESET)
_UNDO = _Step("undone", PlanState.APPLIED, restoration, EventKind.OFFSETS_RESTORED)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """What work in the group's transaction returns instead of raising."""

    error: ProtocolError


class PlanService:
    """Creates, applies and undoes offset plans.

    Every method that takes a principal checks its permissions: changes require `alter-offsets` on the group and `read`
    on the topics. Every method may raise ProtocolError COORDINATOR_NOT_AVAILABLE.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._groups = runtime.get(GroupService)
        self._offsets = runtime.get(OffsetStore)
        self._store = runtime.get(PlanStore)
        self._sources = runtime.get(PlanSources)
        self._retention_ms = runtime.config.int("offsets.journal.retention.days") * DAY_MS

    async def create(self, group_id: str, reset: Reset, principal: Principal, reason: str = "") -> PlanHeader:
        """Compute a plan and store it. The group may have members, and need not exist.

        Raises ProtocolError INVALID_REQUEST (a parameter, a partition that cannot be planned, each of them named),
        UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED, GROUP_ID_NOT_FOUND (of
        the group to copy from).
        """
        self._groups.check_active()
        request_age.allow(EXTRA_MS)
        principal.require_group(Operation.ALTER_OFFSETS, group_id)
        check(reset)
        now = await self._store.now()
        at = reset.at if reset.duration is None else now - parse_duration(reset.duration)
        positions, found = await self._sources.gather(group_id, reset, now, at, principal)
        # A large plan takes a while to compute; the event loop must serve others meanwhile.
        lines, problems = await asyncio.to_thread(plan, reset, positions, found)
        if problems:
            raise _cannot_be_planned(problems)
        in_numbers = await asyncio.to_thread(totals, lines)
        plan_id = str(uuid.uuid4())
        await self._store.insert(
            plan_id,
            group_id,
            reset.strategy.value,
            _parameters(reset, at),
            lines,
            in_numbers,
            reason,
            principal.name,
        )
        return await self._read(group_id, plan_id)

    async def get(self, group_id: str, plan_id: str) -> PlanHeader:
        """A plan of this group. Raises INVALID_REQUEST with status 404 if it has none with this id."""
        self._groups.check_active()
        return await self._read(group_id, _id_of(group_id, plan_id))

    async def lines(
        self, found: PlanHeader, *, cursor: str | None = None, limit: int = DEFAULT_LIMIT, visible: Visible = EVERYTHING
    ) -> Page[Line]:
        """A page of the lines of a plan whose topics are in `visible`. Raises INVALID_REQUEST for a bad cursor."""
        after: Any = BEFORE_ALL if cursor is None else decode_cursor(cursor, str, int)
        page, more = cut(await self._store.page(found.id, after, limit + 1, visible), limit)
        return Page(page, encode_cursor(*page[-1].key) if more else None)

    async def recent(self, group_id: str, *, cursor: str | None = None, limit: int = DEFAULT_LIMIT) -> Page[PlanHeader]:
        """A page of the plans of a group, newest first; also for a deleted group.

        Raises GROUP_ID_NOT_FOUND if neither the group nor a plan exists, INVALID_REQUEST for a bad cursor.
        """
        self._groups.check_active()
        before = None if cursor is None else _before(cursor)
        plans, more = cut(await self._store.recent(group_id, before, limit + 1), limit)
        if not plans and cursor is None and await self._store.group_key(group_id) is None:
            raise unknown_group(group_id)
        return Page(plans, encode_cursor(plans[-1].created_at, plans[-1].id) if more else None)

    async def apply(self, group_id: str, plan_id: str, principal: Principal) -> PlanHeader:
        """Commit the new offsets of a plan, all or none, and return the updated plan.

        Creates a missing group, as the first commit of a simple consumer does, unless the plan sets nothing.
        Raises NON_EMPTY_GROUP; UNSTABLE_OFFSET_COMMIT while a transaction on one of the partitions is open;
        INVALID_REQUEST with status 409 if the plan is already applied, or if a partition was committed or removed, or
        its topic deleted, since the plan was made; GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED.
        """
        return await self._carry_out(_APPLY, group_id, plan_id, principal)

    async def undo(self, group_id: str, plan_id: str, principal: Principal) -> PlanHeader:
        """Restore what was committed before a plan was applied, all or nothing, and return the updated plan.

        Offset, leader epoch, metadata, commit and expire timestamps are what they were; where nothing was committed,
        the offset is removed. Raises as `apply` does: the plan must be applied, and nothing committed on its partitions
        since.
        """
        return await self._carry_out(_UNDO, group_id, plan_id, principal)

    async def trim(self) -> int:
        """Delete plans that were idle for as long as the journal is kept; returns the number deleted."""
        before = await self._store.now() - self._retention_ms
        deleted = 0
        while deleted < MOST_TRIMMED and await self._store.delete_expired(before):
            deleted += 1
        return deleted

    async def _carry_out(self, step: _Step, group_id: str, plan_id: str, principal: Principal) -> PlanHeader:
        self._groups.check_active()
        request_age.allow(EXTRA_MS)
        principal.require_group(Operation.ALTER_OFFSETS, group_id)
        found = await self._read(group_id, _id_of(group_id, plan_id))
        topics = await self._store.topics(found.id)
        check_readable(topics, principal, known=False)
        if found.state is not step.takes:
            raise _wrong_state(step, found.state)
        change = await asyncio.to_thread(step.change, await self._store.lines(found.id))
        create = await self._creates_group(step, found, topics, change)

        async def write(locked: LockedGroup) -> _Refusal | None:
            refusal = await self._refusal(step, found, topics, locked)
            if refusal is not None:
                return _Refusal(refusal)
            await self._write(step, found, change, locked, principal.name)
            return None

        outcome: Any = await self._groups.execute(ResetOffsets(group_id, create), write, long=True)
        if isinstance(outcome, _Refusal):
            raise outcome.error
        if isinstance(outcome, Done):
            raise ProtocolError(outcome.error, outcome.detail)
        log.info("offset_plan_changed", state=step.verb, group_id=group_id, plan_id=found.id, principal=principal.name)
        return await self._read(group_id, found.id)

    async def _creates_group(self, step: _Step, found: PlanHeader, topics: Sequence[str], change: Change) -> bool:
        """Whether the group is missing and will be created. A refusal must not leave an empty group behind, so this is
        checked before anything is locked; changes in between are refused under the lock."""
        if await self._store.group_key(found.group_id) is not None:
            return False
        gone = await self._store.gone(topics, found.created_at)
        if gone:
            raise _gone(step, gone)
        moved = await self._store.moved(found.id, step.takes, None, MOST_LISTED + 1)
        if moved:
            raise _moved(step, moved)
        return bool(change.records)

    async def _refusal(
        self, step: _Step, found: PlanHeader, topics: Sequence[str], locked: LockedGroup
    ) -> ProtocolError | None:
        """Why it cannot be done now, under the locks of the group and of the plan, in this order."""
        state = await self._store.lock(locked, found.id)
        if state is None:
            return unknown_plan(found.group_id, found.id)
        if state is not step.takes:
            return _wrong_state(step, state)
        gone = await self._store.gone(topics, found.created_at, locked.connection)
        if gone:
            return _gone(step, gone)
        pending = await self._store.pending(locked, found.id, MOST_LISTED + 1)
        if pending:
            return ProtocolError(
                Error.UNSTABLE_OFFSET_COMMIT,
                f"a transaction is open on {_names(pending)}: the plan can be {step.verb} when that has ended",
                fields=_listed(pending),
            )
        moved = await self._store.moved(found.id, step.takes, locked.pk, MOST_LISTED + 1, locked.connection)
        return _moved(step, moved) if moved else None

    async def _write(self, step: _Step, found: PlanHeader, change: Change, locked: LockedGroup, principal: str) -> None:
        provenance = Provenance(_kind(step, found), principal=principal, plan_id=found.id)
        for records in chunks(change.records):
            await self._offsets.write(locked, records, provenance)
            await asyncio.sleep(0)  # pipelined statements never wait, so yield to others
        for removed in chunks(change.removed):
            await self._offsets.remove(locked, removed, provenance)
        if step is _APPLY:
            await self._store.applied(locked, found.id, principal)
        else:
            await self._store.undone(locked, found.id, principal)
        touched = [*((record.topic, record.partition) for record in change.records), *change.removed]
        locked.events.append(
            offsets_event(
                step.event,
                locked.group,
                touched,
                principal=principal,
                plan_id=found.id,
                reason=found.reason,
            )
        )

    async def _read(self, group_id: str, plan_id: str) -> PlanHeader:
        found = await self._store.read(group_id, plan_id)
        if found is None:
            raise unknown_plan(group_id, plan_id)
        return found


def unknown_plan(group_id: str, plan_id: str) -> ProtocolError:
    """The error for a plan that does not exist, or that belongs to another group."""
    return PlanRefused(
        404,
        f"group {group_id!r} has no plan {plan_id[:50]!r}; GET /v1/groups/{{group_id}}/offsets/plans lists them",
    )


def _id_of(group_id: str, plan_id: str) -> str:
    try:
        return str(uuid.UUID(plan_id))
    except ValueError:
        raise unknown_plan(group_id, plan_id) from None


def _before(cursor: str) -> tuple[Millis, str]:
    at, plan_id = decode_cursor(cursor, int, str)
    try:
        return int(at), str(uuid.UUID(str(plan_id)))
    except ValueError:
        raise ProtocolError(
            Error.INVALID_REQUEST, "cursor: not a cursor of this list", fields={"field": "cursor"}
        ) from None


def _parameters(reset: Reset, at: Millis | None) -> dict[str, object]:
    """What the plan shows of its request: the names of its topics, the parameter, the instant of a duration."""
    if reset.csv is not None:
        return {"topics": sorted({topic for topic, _ in reset.csv}), "lines": len(reset.csv)}
    shown: dict[str, object] = {"topics": None if reset.scope is None else [topic for topic, _ in reset.scope]}
    name = PARAMETER[reset.strategy]
    if name is not None:
        shown[name] = getattr(reset, name)
    if at is not None:
        shown["at"] = at
    return shown


def _kind(step: _Step, found: PlanHeader) -> ChangeKind:
    if step is _UNDO:
        return ChangeKind.RESTORE
    return ChangeKind.IMPORT if found.strategy == Strategy.FROM_FILE.value else ChangeKind.RESET


def _cannot_be_planned(problems: Sequence[Problem]) -> ProtocolError:
    """One refusal for all partitions that prevent a plan; one that does not exist determines its error."""
    told = "; ".join(f"{p.topic}-{p.partition}: {p.text}" for p in problems[:MOST_NAMED])
    more = f"; and {len(problems) - MOST_NAMED} more partitions" if len(problems) > MOST_NAMED else ""
    missing = any(problem.error is Error.UNKNOWN_TOPIC_OR_PARTITION for problem in problems)
    listed: list[PartitionProblem] = [
        {"topic": p.topic, "partition": p.partition, "problem": p.text} for p in problems[:MOST_LISTED]
    ]
    return ProtocolError(
        Error.UNKNOWN_TOPIC_OR_PARTITION if missing else Error.INVALID_REQUEST,
        f"no plan was made: {told}{more}",
        fields={"problems": listed, "problem_count": len(problems)},
    )


def _wrong_state(step: _Step, state: PlanState) -> ProtocolError:
    told = {
        PlanState.PLANNED: "it has not been applied",
        PlanState.APPLIED: "it has already been applied",
        PlanState.UNDONE: "it was undone; make a new plan",
    }
    return PlanRefused(409, f"the plan cannot be {step.verb}: {told[state]}", state=state.value)


def _moved(step: _Step, moved: Sequence[TopicPartition]) -> ProtocolError:
    since, remedy = (
        ("the plan was made", "make a new plan")
        if step is _APPLY
        else ("the plan was applied", "undoing the plan would lose that; make a new plan with to-committed-at")
    )
    return PlanRefused(409, f"{_names(moved)} was committed or removed since {since}: {remedy}", **_listed(moved))


def _gone(step: _Step, topics: Sequence[str]) -> ProtocolError:
    named = ", ".join(topics[:MOST_NAMED]) + (" and others" if len(topics) > MOST_NAMED else "")
    return PlanRefused(
        409,
        f"the plan cannot be {step.verb}: {named} was deleted since the plan was made, and a new topic of that name "
        "has other offsets: make a new plan",
        topics=list(topics[:MOST_LISTED]),
    )


def _names(partitions: Sequence[TopicPartition]) -> str:
    named = ", ".join(f"{topic}-{partition}" for topic, partition in partitions[:MOST_NAMED])
    return f"{named} and others" if len(partitions) > MOST_NAMED else named


def _listed(partitions: Sequence[TopicPartition]) -> ProblemFields:
    return {"partitions": [{"topic": topic, "partition": p} for topic, p in partitions[:MOST_LISTED]]}
