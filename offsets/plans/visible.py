"""Plans for a caller that may not describe all topics: their totals are those of the visible lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any
from uuid import UUID

from kcoord.process.runtime import Runtime
from kcoord.rest.paging import Visible
from kcoord.sql import queries
from offsets.core.plan_types import UNKNOWN_THEN, PlanHeader, Totals

Q = queries("offsets")


async def with_seen_totals(runtime: Runtime, plans: Sequence[PlanHeader], visible: Visible) -> list[PlanHeader]:
    """The plans, with totals over their lines on topics in `visible`; no query for a caller that sees all of them.

    How many lines a file had is left out: it includes other lines.
    """
    if visible.unlimited or not plans:
        return list(plans)
    parameters = {"ids": [plan.id for plan in plans], "unknown": UNKNOWN_THEN, **visible.parameters()}
    async with runtime.db.connection() as connection:
        found = dict(await runtime.db.records(connection, _seen, Q.seen_totals, parameters))
    nothing = asdict(Totals(0, 0, 0, 0, None))
    return [
        replace(
            plan,
            totals=found.get(plan.id, nothing),
            parameters={name: value for name, value in plan.parameters.items() if name != "lines"},
        )
        for plan in plans
    ]


def _seen(*, plan_id: UUID, **totals: Any) -> tuple[str, dict[str, Any]]:
    return str(plan_id), asdict(Totals(**totals))
