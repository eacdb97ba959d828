"""Offset plans: a reset as plan, review, apply and undo.

A plan is computed and kept; nothing moves. Applying writes what the plan shows, or refuses: the group must have no
members, and every partition must be as the plan found it. Undoing restores the earlier offsets, provided nothing else
was committed. Both write offsets, journal, event and the plan's state in one transaction under the group's lock.

Source: http-api.md 4; offsets.md 13.5.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from groups.configs import GroupConfigs
from groups.core.model.commands import ResetOffsets, ResetShare
from groups.core.model.consumer_group import ShareGroup
from groups.core.model.events import EventKind
from groups.core.model.replies import Done
from groups.engine.service import GroupService
from groups.readmodel import unknown_group
from groups.store.locked import LockedGroup
from kcoord.access.audit.recording import Act
from kcoord.access.rights import Operation, Principal
from kcoord.database.paging import DEFAULT_LIMIT, EVERYTHING, Page, Visible, cut, decode_cursor, encode_cursor
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.requests import current
from kcoord.resets.instants import parse_duration
from kcoord.resets.strategies import OF_COMMITTED, PARAMETER, Reset, Strategy, check
from offsets.commits.store import OffsetStore
from offsets.core.days import DAY_MS
from offsets.core.plan import application, plan, restoration, revised, totals
from offsets.core.plan_types import Change, Line, PlanState, Problem
from offsets.core.types import ChangeKind, Millis, Provenance
from offsets.journal.events import offsets_event
from offsets.plans.approval import PlanApproval
from offsets.plans.refusals import (
    MOST_LISTED,
    PlanRefused,
    cannot_be_planned,
    has_moved,
    is_gone,
    listed,
    names_of,
    unknown_plan,
    wrong_state,
)
from offsets.plans.sources import PlanSources, check_readable
from offsets.plans.store import BEFORE_ALL, PlanStore, chunks
from offsets.plans.summary import PlanHeader
from offsets.share.store import rules_of


def request_of(found: PlanHeader, lines: Sequence[Line]) -> Reset:
    """What was asked for, with the choices of later revisions (`clamp`, `keep_unknown`).

    A plan for all committed partitions stays one for all of them; any other one keeps exactly its partitions. Of
    a file, the lines of partitions without a requested offset are left out.
    """
    strategy, kept = Strategy(found.strategy), found.parameters
    careful: Mapping[str, Any] = {key: bool(kept.get(key)) for key in ("clamp", "keep_unknown")}
    if strategy is Strategy.FROM_FILE:
        return Reset(
            strategy, csv={line.key: line.requested for line in lines if line.requested is not None}, **careful
        )
    given: Mapping[str, Any] = {name: value for name, value in kept.items() if name == PARAMETER[strategy]}
    scope = None if kept.get("topics") is None else _scope(lines)
    return Reset(strategy, scope, **given, **careful)


def _scope(lines: Sequence[Line]) -> tuple[tuple[str, tuple[int, ...] | None], ...]:
    by_topic: dict[str, list[int]] = {}
    for line in lines:
        by_topic.setdefault(line.topic, []).append(line.partition)
    return tuple((topic, tuple(sorted(numbers))) for topic, numbers in by_topic.items())


log = structlog.get_logger(__name__)

MOST_TRIMMED = 1_000
"""The most plans that one run of maintenance deletes, so that it ends; the next run continues."""


SHARE = "share_group"
"""The parameter of plans of share groups."""
BELOW_ALL = "no item has an offset below 0"

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
class _Made:
    """A plan that is computed and not stored yet."""

    group_id: str
    strategy: str
    parameters: Mapping[str, object]
    lines: Sequence[Line]
    reason: str


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
        self._approval = runtime.get(PlanApproval)
        self._configs = runtime.get(GroupConfigs)
        self._retention_ms = runtime.config.int("offsets.journal.retention.days") * DAY_MS

    async def create(self, group_id: str, reset: Reset, principal: Principal, reason: str = "") -> PlanHeader:
        """Compute a plan and store it. The group may have members, and need not exist.

        Raises ProtocolError INVALID_REQUEST (a parameter, a partition that cannot be planned, each of them named),
        UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED, GROUP_ID_NOT_FOUND (of
        the group to copy from).
        """
        self._groups.check_active()
        current.allow(EXTRA_MS)
        principal.require_group(Operation.ALTER_OFFSETS, group_id)
        check(reset)
        share = isinstance((await self._groups.describe(group_id, partitions=False)).group, ShareGroup)
        if share and reset.strategy in OF_COMMITTED:
            detail = (
                f"strategy: share group {group_id!r} has no committed offsets: {reset.strategy.value} is for others"
            )
            raise ProtocolError(Error.INVALID_REQUEST, detail, fields={"field": "strategy"})
        now = await self._store.now()
        at = reset.at if reset.duration is None else now - parse_duration(reset.duration)
        positions, found = await self._sources.gather(group_id, reset, now, at, principal, share=share)
        # A large plan takes a while to compute; the event loop must serve others meanwhile.
        lines, problems = await asyncio.to_thread(plan, reset, positions, found)
        if share:
            problems += tuple(
                Problem(*line.key, Error.INVALID_REQUEST, BELOW_ALL) for line in lines if (line.new or 0) < 0
            )
        if problems:
            raise cannot_be_planned(problems)
        lines = revised(lines, clamp=reset.clamp, keep_unknown=reset.keep_unknown)
        parameters = {**_parameters(reset, at), **({SHARE: True} if share else {})}
        made = _Made(group_id, reset.strategy.value, parameters, lines, reason)
        return await self._insert(made, principal)

    async def revise(
        self, group_id: str, plan_id: str, principal: Principal, *, clamp: bool = False, keep_unknown: bool = False
    ) -> PlanHeader:
        """Make a plan with less risk out of one that is not applied; that one stays as it is.

        `clamp`: offsets outside the log become the nearest one that it has. `keep_unknown`: partitions of which nothing
        is known keep their offsets. Like the first one, it is applied only if nothing was committed meanwhile.

        Raises ProtocolError INVALID_REQUEST: with status 404 if the group has no such plan, with status 409 if it was
        applied, and if no partition would be left; GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED.
        """
        self._groups.check_active()
        current.allow(EXTRA_MS)
        principal.require_group(Operation.ALTER_OFFSETS, group_id)
        found = await self._store.find(group_id, plan_id)
        check_readable(await self._store.topics(found.id), principal, known=False)
        if found.state is not PlanState.PLANNED:
            raise PlanRefused(409, "only a plan that is not applied can be changed: make a new one")
        lines = revised(await self._store.lines(found.id), clamp=clamp, keep_unknown=keep_unknown)
        careful = {key: True for key, asked in (("clamp", clamp), ("keep_unknown", keep_unknown)) if asked}
        parameters = {**found.parameters, **careful}
        return await self._insert(_Made(group_id, found.strategy, parameters, lines, found.reason), principal)

    async def request_of(self, group_id: str, plan_id: str) -> tuple[Reset, str]:
        """The request that made a plan, and its reason: to plan the same once more.

        Raises INVALID_REQUEST with status 404 if the group has no such plan.
        """
        found = await self.get(group_id, plan_id)
        return request_of(found, await self._store.lines(found.id)), found.reason

    async def _insert(self, made: _Made, principal: Principal) -> PlanHeader:
        if not made.lines:
            raise ProtocolError(Error.INVALID_REQUEST, "no partition is left: nothing is known of any of them then")
        plan_id, in_numbers = str(uuid.uuid4()), await asyncio.to_thread(totals, made.lines)
        await self._store.insert(
            plan_id,
            made.group_id,
            made.strategy,
            made.parameters,
            made.lines,
            in_numbers,
            made.reason,
            principal,
        )
        return await self._store.find(made.group_id, plan_id)

    async def get(self, group_id: str, plan_id: str) -> PlanHeader:
        """A plan of this group. Raises INVALID_REQUEST with status 404 if it has none with this id."""
        self._groups.check_active()
        return await self._store.find(group_id, plan_id)

    async def lines(
        self,
        found: PlanHeader,
        *,
        cursor: str | None = None,
        limit: int = DEFAULT_LIMIT,
        visible: Visible = EVERYTHING,
        risky: bool = False,
    ) -> Page[Line]:
        """A page of the lines of a plan whose topics are in `visible`. Raises INVALID_REQUEST for a bad cursor.

        `risky`: only lines after which members do not read on from a committed offset.
        """
        after: Any = BEFORE_ALL if cursor is None else decode_cursor(cursor, str, int)
        page, more = cut(await self._store.page(found.id, after, limit + 1, visible, risky=risky), limit)
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
        INVALID_REQUEST with status 409 if the plan is already applied or waits for approval, or if a partition was
        committed or removed, or its topic deleted, since the plan was made; GROUP_AUTHORIZATION_FAILED,
        TOPIC_AUTHORIZATION_FAILED.
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
        current.allow(EXTRA_MS)
        principal.require_group(Operation.ALTER_OFFSETS, group_id)
        found = await self._store.find(group_id, plan_id)
        topics = await self._store.topics(found.id)
        check_readable(topics, principal, known=False)
        if found.state is not step.takes:
            raise wrong_state(step.verb, found.state)
        if step is _APPLY:
            self._approval.check(found, principal)
        change = await asyncio.to_thread(step.change, await self._store.lines(found.id))
        command: ResetOffsets | ResetShare = ResetShare(group_id)
        if SHARE not in found.parameters:
            command = ResetOffsets(group_id, await self._creates_group(step, found, topics, change))
        rules = rules_of(await self._configs.resolved(group_id))

        async def write(locked: LockedGroup) -> _Refusal | None:
            refusal = await self._refusal(step, found, topics, locked)
            if refusal is not None:
                return _Refusal(refusal)
            if SHARE not in found.parameters:
                await self._write(step, found, change, locked, principal.name)
            elif step is _APPLY:
                await self._store.set_starts(locked, found.id, rules)
            else:
                await self._store.restore_items(locked, found.id)
            await self._note(step, found, change, locked, principal.name)
            return None

        outcome: Any = await self._groups.execute(command, write, long=True)
        if isinstance(outcome, _Refusal):
            raise outcome.error
        if isinstance(outcome, Done) and outcome.error is not Error.NONE:
            raise ProtocolError(outcome.error, outcome.detail)
        log.info("offset_plan_changed", state=step.verb, group_id=group_id, plan_id=found.id, principal=principal.name)
        return await self._store.find(group_id, found.id)

    async def _creates_group(self, step: _Step, found: PlanHeader, topics: Sequence[str], change: Change) -> bool:
        """Whether the group is missing and will be created. A refusal must not leave an empty group behind, so this is
        checked before anything is locked; changes in between are refused under the lock."""
        if await self._store.group_key(found.group_id) is not None:
            return False
        gone = await self._store.gone(topics, found.created_at)
        if gone:
            raise is_gone(step.verb, gone)
        moved = await self._store.moved(found.id, step.takes, None, MOST_LISTED + 1)
        if moved:
            raise has_moved(step.takes, moved)
        return bool(change.records)

    async def _refusal(
        self, step: _Step, found: PlanHeader, topics: Sequence[str], locked: LockedGroup
    ) -> ProtocolError | None:
        """Why it cannot be done now, under the locks of the group and of the plan, in this order."""
        state = await self._store.lock(locked, found.id)
        if state is None:
            return unknown_plan(found.group_id, found.id)
        if state is not step.takes:
            return wrong_state(step.verb, state)
        gone = await self._store.gone(topics, found.created_at, locked.connection)
        if gone:
            return is_gone(step.verb, gone)
        if SHARE in found.parameters:
            moved = await self._store.items_moved(locked, found.id, step.takes, MOST_LISTED + 1)
            return has_moved(step.takes, moved) if moved else None
        pending = await self._store.pending(locked, found.id, MOST_LISTED + 1)
        if pending:
            return ProtocolError(
                Error.UNSTABLE_OFFSET_COMMIT,
                f"a transaction is open on {names_of(pending)}: the plan can be {step.verb} when that has ended",
                fields=listed(pending),
            )
        moved = await self._store.moved(found.id, step.takes, locked.pk, MOST_LISTED + 1, locked.connection)
        return has_moved(step.takes, moved) if moved else None

    async def _write(self, step: _Step, found: PlanHeader, change: Change, locked: LockedGroup, principal: str) -> None:
        provenance = Provenance(_kind(step, found), principal=principal, plan_id=found.id)
        for records in chunks(change.records):
            await self._offsets.write(locked, records, provenance)
            await asyncio.sleep(0)  # pipelined statements never wait, so yield to others
        for removed in chunks(change.removed):
            await self._offsets.remove(locked, removed, provenance)
        if step is _APPLY:
            await self._store.note_offsets(locked, found.id)

    async def _note(self, step: _Step, found: PlanHeader, change: Change, locked: LockedGroup, principal: str) -> None:
        """State, event and audit of a plan that is carried out."""
        locked.acts.append(_act(step, found, change, principal))
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
    careful = {key: True for key in ("clamp", "keep_unknown") if getattr(reset, key)}
    if reset.csv is not None:
        return {"topics": sorted({topic for topic, _ in reset.csv}), "lines": len(reset.csv), **careful}
    shown: dict[str, object] = {
        "topics": None if reset.scope is None else [topic for topic, _ in reset.scope],
        **careful,
    }
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


MOST_RECORDED = 100
"""Of how many partitions the audit has the offsets; the plan has those of all."""


def _act(step: _Step, found: PlanHeader, change: Change, principal: str) -> Act:
    """What the audit says: the offsets that the change sets, None where it removes one, and the state of the plan."""
    offsets: dict[str, int | None] = {
        f"{record.topic}-{record.partition}": record.offset for record in change.records[:MOST_RECORDED]
    }
    offsets.update((f"{topic}-{partition}", None) for topic, partition in change.removed[:MOST_RECORDED])
    before = {"plan_id": found.id, "state": found.state.value}
    after = {"state": step.verb, "set": len(change.records), "removed": len(change.removed), "offsets": offsets}
    name = "offsets.apply" if step is _APPLY else "offsets.undo"
    return Act(name, "group", found.group_id, before, after, found.reason, principal=principal)
