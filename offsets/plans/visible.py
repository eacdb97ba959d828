"""Plans for a caller that may not describe all that they name: their totals are those of the visible lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any
from uuid import UUID

from kcoord.access.rights import Operation, Principal, Resource
from kcoord.database.paging import Visible
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from offsets.core.plan_types import UNKNOWN_THEN, PlanHeader, Totals

Q = queries("offsets")


async def seen_plans(runtime: Runtime, plans: Sequence[PlanHeader], principal: Principal) -> list[PlanHeader]:
    """The plans without names that the caller may not describe, and with totals over their lines on the other topics.

    No query for a caller that sees all topics; for others it is left out how many lines a file had.
    """
    visible = principal.visible(Resource.TOPIC)
    totals = {} if visible.unlimited or not plans else await _totals(runtime, [plan.id for plan in plans], visible)
    return [
        replace(
            plan,
            totals=plan.totals if visible.unlimited else totals[plan.id],
            parameters=_parameters(plan.parameters, principal),
        )
        for plan in plans
    ]


def _parameters(parameters: Mapping[str, Any], principal: Principal) -> dict[str, Any]:
    shown = dict(parameters)
    topics, source = shown.get("topics"), shown.get("from_group")
    if isinstance(topics, list):
        shown["topics"] = [topic for topic in topics if principal.may_topic(Operation.DESCRIBE, topic)]
    if source is not None and not principal.may_group(Operation.DESCRIBE, str(source)):
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
