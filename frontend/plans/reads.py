"""Reads the plans of all groups, a page at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from frontend.rows import Millis
from frontend.viewer import Viewer
from kcoord.process.runtime import Runtime
from kcoord.rest.paging import INT64_MAX
from kcoord.sql import queries
from offsets.plans.visible import seen_totals, shown_parameters

Q = queries("frontend")

PlanKey = tuple[Millis, str]
"""When a plan was made, and its id: its place in the list."""

PAGE_SIZE = 50
LAST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff"


@dataclass(frozen=True, slots=True)
class PlanRow:
    """A plan without its lines. `totals` as in `offsets.core.plan_types.Totals`.

    `parameters`: that of its strategy if it is short, without a group that the viewer may not describe.
    """

    id: str
    group_id: str
    strategy: str
    parameters: Mapping[str, Any]
    totals: Mapping[str, Any]
    state: str
    reason: str
    created_at: Millis
    created_by: str
    approved_at: Millis | None
    approved_by: str | None
    applied_at: Millis | None
    applied_by: str | None
    undone_at: Millis | None
    undone_by: str | None


@dataclass(frozen=True, slots=True)
class PlanFilter:
    """Which plans to list; "" and None do not restrict them. `who` made, approved, applied or undid it.

    `unapproved`: only those that nobody approved. `until` (ms) is exclusive, `since` inclusive; both are of the instant
    at which a plan was made.
    """

    q: str = ""
    state: str = ""
    unapproved: bool = False
    who: str = ""
    since: Millis | None = None
    until: Millis | None = None
    before: PlanKey | None = None


@dataclass(frozen=True, slots=True)
class PlanList:
    """A page of plans, newest first. `next`: where the next page begins; None on the last page."""

    now: Millis
    plans: tuple[PlanRow, ...]
    next: PlanKey | None


async def all_plans(runtime: Runtime, viewer: Viewer, wanted: PlanFilter, limit: int = PAGE_SIZE) -> PlanList:
    """A page of the plans of groups that the viewer may describe, with totals over the topics that it may describe.

    Raises ProtocolError COORDINATOR_NOT_AVAILABLE.
    """
    start = (INT64_MAX, LAST_ID) if wanted.until is None else (wanted.until, "0" * 8 + "-0000-0000-0000-" + "0" * 12)
    at, plan_id = start if wanted.before is None else min(start, wanted.before)
    parameters = {
        "before_at": at,
        "before_id": plan_id,
        "since": wanted.since or 0,
        "state": wanted.state or None,
        "unapproved": wanted.unapproved,
        "q": wanted.q or None,
        "who": wanted.who or None,
        "limit": limit + 1,
        **viewer.with_groups(),
    }
    db = runtime.db
    async with db.snapshot() as connection:
        found = await db.records(connection, PlanRow, Q.all_plans, parameters)
        now = await db.now_ms(connection)
    more = len(found) > limit
    plans = await _seen(runtime, viewer, found[:limit])
    return PlanList(now, plans, (plans[-1].created_at, plans[-1].id) if more else None)


async def _seen(runtime: Runtime, viewer: Viewer, plans: Sequence[PlanRow]) -> tuple[PlanRow, ...]:
    seen = tuple(replace(plan, parameters=shown_parameters(plan.parameters, viewer.principal)) for plan in plans)
    if viewer.topics.unlimited:
        return seen
    totals = await seen_totals(runtime, [plan.id for plan in seen], viewer.topics)
    return tuple(replace(plan, totals=totals[plan.id]) for plan in seen)
