"""Plans for a caller that may not describe all topics: their totals are those of the visible lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any
from uuid import UUID

from kcoord.access.rights import Operation, Principal
from kcoord.database.paging import Visible
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from offsets.core.plan_types import UNKNOWN_THEN, PlanHeader, Totals

Q = queries("offsets")


async def with_seen_totals(runtime: Runtime, plans: Sequence[PlanHeader], visible: Visible) -> list[PlanHeader]:
    """The plans, with totals over their lines on topics in `visible`; no query for a caller that sees all of them.

    How many lines a file had is left out: it includes other lines.
    """
    if visible.unlimited or not plans:
        return list(plans)
    totals = await seen_totals(runtime, [plan.id for plan in plans], visible)
    return [
        replace(
            plan,
            totals=totals[plan.id],
            parameters={name: value for name, value in plan.parameters.items() if name != "lines"},
        )
        for plan in plans
    ]


def shown_parameters(parameters: Mapping[str, Any], principal: Principal) -> dict[str, Any]:
    """The parameters of a plan, without names of topics and of a group that the caller may not describe."""
    shown = dict(parameters)
    topics, source = shown.get("topics"), shown.get("from_group")
    if isinstance(topics, list):
        shown["topics"] = [topic for topic in topics if principal.may_topic(Operation.DESCRIBE, topic)]
    if source is not None and not principal.may_group(Operation.DESCRIBE, str(source)):
        del shown["from_group"]
    return shown


async def seen_totals(runtime: Runtime, plan_ids: Sequence[str], visible: Visible) -> dict[str, dict[str, Any]]:
    """The totals of each of these plans over its lines on topics in `visible`."""
    parameters = {"ids": list(plan_ids), "unknown": UNKNOWN_THEN, **visible.parameters()}
    async with runtime.db.connection() as connection:
        found = dict(await runtime.db.records(connection, _seen, Q.seen_totals, parameters))
    nothing = asdict(Totals(0, 0, 0, 0, None))
    return {plan_id: found.get(plan_id, nothing) for plan_id in plan_ids}


def _seen(*, plan_id: UUID, **totals: Any) -> tuple[str, dict[str, Any]]:
    return str(plan_id), asdict(Totals(**totals))
