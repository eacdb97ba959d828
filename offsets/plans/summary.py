"""A plan without its lines: stored, answered, and for a caller that may not describe all that it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, TypedDict
from uuid import UUID

from msgspec import Meta

from kcoord.access.rights import Operation, Principal, Resource
from kcoord.control.rest.answers import Instant, Natural32, Offset, doc, one_of
from kcoord.database.paging import Visible
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from kcoord.resets.strategies import Strategy
from offsets.core.plan_types import UNKNOWN_THEN, PlanState, Totals

Q = queries("offsets")


class PlanTotals(TypedDict):
    """A plan in numbers of partitions."""

    partitions: Natural32
    changed: Annotated[Natural32, doc("Partitions whose offset changes.")]
    clamped: Natural32
    removed: Annotated[Natural32, doc("Partitions whose offset is removed.")]
    unknown: Annotated[
        Natural32 | None,
        doc("Of these, partitions of which nothing is known at the instant; null: it was not counted."),
    ]
    outside: Annotated[
        Natural32 | None, doc("Partitions whose new offset is outside the log; null: it was not counted.")
    ]
    lag_change: Annotated[
        int | None, doc("Change of lag in records, over partitions where both lags are known; null: none.")
    ]


class _TopicsOfPlan(TypedDict):
    topics: Annotated[list[str] | None, doc("null: all partitions with a committed offset.")]


class PlanParameters(_TopicsOfPlan, total=False):
    """The request behind the plan. Only the parameter of its strategy is included."""

    offset: Offset
    by: int
    at: Annotated[Instant, doc("by-duration: the resulting instant.")]
    duration: str
    from_group: str
    lines: Annotated[int, Meta(ge=1, description="from-file: number of lines of this group.")]
    clamp: Annotated[bool, doc("Only if true.")]
    keep_unknown: Annotated[bool, doc("Only if true.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSummary:
    """A plan without its lines."""

    id: Annotated[str, Meta(extra_json_schema={"format": "uuid"})]
    group_id: str
    strategy: Annotated[str, one_of([strategy.value for strategy in Strategy])]
    parameters: PlanParameters
    totals: PlanTotals
    state: Annotated[PlanState, one_of([state.value for state in PlanState])]
    reason: str
    created_at: Instant
    created_by: str
    approved_at: Annotated[Instant | None, doc("null: nobody approved it; `plans.second.person` requires it.")]
    approved_by: str | None
    applied_at: Instant | None
    applied_by: str | None
    undone_at: Instant | None
    undone_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanHeader(PlanSummary):
    """A plan as it is stored. `maker`: who answers for it (`Principal.person`); never shown, "" in lists."""

    maker: str = ""


_NOT_COUNTED: dict[str, Any] = {"outside": None, "unknown": None}
"""Totals that plans lack which were made before these were counted."""


def plan_header(*, state: str, totals: Any, **columns: Any) -> PlanHeader:
    """A plan from its columns in the database."""
    return PlanHeader(state=PlanState(state), totals=_NOT_COUNTED | totals, **columns)


async def seen_plans(runtime: Runtime, plans: Sequence[PlanHeader], principal: Principal) -> list[PlanHeader]:
    """The plans without names that the caller may not describe, and with totals over their lines on the other topics.

    No query for a caller that sees all topics; for others it is left out how many lines a file had.
    """
    visible = principal.visible(Resource.TOPIC)
    totals: Mapping[str, Any] = (
        {} if visible.unlimited or not plans else await _totals(runtime, [plan.id for plan in plans], visible)
    )
    return [
        replace(
            plan,
            totals=plan.totals if visible.unlimited else totals[plan.id],
            parameters=_parameters(plan.parameters, principal),
        )
        for plan in plans
    ]


def _parameters(parameters: PlanParameters, principal: Principal) -> PlanParameters:
    shown = parameters.copy()
    topics, source = shown.get("topics"), shown.get("from_group")
    if topics is not None:
        shown["topics"] = [topic for topic in topics if principal.may_topic(Operation.DESCRIBE, topic)]
    if source is not None and not principal.may_group(Operation.DESCRIBE, source):
        del shown["from_group"]
    if not principal.visible(Resource.TOPIC).unlimited:
        shown.pop("lines", None)
    return shown


async def _totals(runtime: Runtime, plan_ids: Sequence[str], visible: Visible) -> dict[str, dict[str, Any]]:
    parameters = {"ids": list(plan_ids), "unknown": UNKNOWN_THEN, **visible.parameters()}
    async with runtime.db.connection() as connection:
        found = dict(await runtime.db.records(connection, _seen, Q.seen_totals, parameters))
    nothing = asdict(Totals(0, 0, 0, 0, None))
    return {plan_id: found.get(plan_id, nothing) for plan_id in plan_ids}


def _seen(*, plan_id: UUID, **totals: Any) -> tuple[str, dict[str, Any]]:
    return str(plan_id), asdict(Totals(**totals))
