"""All offset plans, over all groups."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import tzinfo

from django.http import HttpRequest, HttpResponse

from frontend.offsets.risks import NO_LAG
from frontend.plans.reads import PlanFilter, PlanList, PlanRow, all_plans
from frontend.plans.words import new_offsets
from frontend.states import State
from frontend.viewer import viewer_of
from frontend.views.groups import group_url
from frontend.views.page import BadAddress, address, choice, cursor, cursor_address, instant, page, show, text
from frontend.zones import zone_of
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from offsets.core.plan_types import PlanState
from offsets.plans.approval import PlanApproval

STATES = {
    PlanState.PLANNED.value: State("planned", "Planned", "warn", "Computed; nothing has been changed yet."),
    PlanState.APPLIED.value: State("applied", "Applied", "good", "Its offsets were committed; it may be undone."),
    PlanState.UNDONE.value: State("undone", "Undone", "idle", "It was applied, and then the earlier offsets restored."),
}
UNAPPROVED = State("unapproved", "Waits for approval", "warn", "Nothing is changed until someone else approves it.")


@dataclass(frozen=True, slots=True)
class PlanLine:
    """A plan as the list shows it. `amount`: by how much, since when, from where; "" if the strategy says all.

    `risks`: how many offsets it removes or puts outside the log.
    """

    plan: PlanRow
    state: State
    strategy: str
    amount: str
    url: str
    group_url: str
    risks: int


@page
def plan_list(request: HttpRequest) -> HttpResponse:
    """A page of the plans that match the filters of the URL, newest first."""
    wanted, viewer = wanted_plans(request), viewer_of(request)

    async def read(runtime: Runtime) -> tuple[PlanList, bool]:
        return await all_plans(runtime, viewer, wanted), runtime.get(PlanApproval).required

    found, second_person = bridge.call(read)
    filters = {"q": wanted.q, "who": wanted.who, "from": wanted.since, "to": wanted.until}
    context = {
        "now": found.now,
        "lines": [_line(plan, second_person, zone_of(request)) for plan in found.plans],
        "no_lag": NO_LAG,
        "filters": filters,
        "states": _choices(second_person),
        "state": UNAPPROVED.name if wanted.unapproved else wanted.state,
        "filtered": bool(wanted.state or any(filters.values())),
        "clear_url": request.path,
        "newest_url": address(request, before=None) if wanted.before else None,
        "older_url": cursor_address(request, "before", *found.next) if found.next else None,
    }
    return show(request, "plans", context, section="plans", title="Plans")


def wanted_plans(request: HttpRequest) -> PlanFilter:
    """What the URL asks for. Raises BadAddress."""
    state = choice(request, "state", (*STATES, UNAPPROVED.name))
    unapproved = state == UNAPPROVED.name
    return PlanFilter(
        q=text(request, "q"),
        state=PlanState.PLANNED.value if unapproved else state,
        unapproved=unapproved,
        who=text(request, "who"),
        since=instant(request, "from"),
        until=instant(request, "to"),
        before=_before(request),
    )


def _before(request: HttpRequest) -> tuple[int, str] | None:
    key = cursor(request, "before", int, str)
    if key is None:
        return None
    try:
        return int(key[0]), str(uuid.UUID(str(key[1])))
    except ValueError:
        raise BadAddress("before: no such page of the list; start again from the first.") from None


def _choices(second_person: bool) -> list[tuple[str, str]]:
    states = (*STATES.values(), UNAPPROVED) if second_person else STATES.values()
    return [("", "All"), *((state.name, state.label) for state in states)]


def _line(plan: PlanRow, second_person: bool, zone: tzinfo) -> PlanLine:
    here = group_url(plan.group_id)
    state = STATES.get(plan.state) or State(plan.state, plan.state, "idle", "")
    if second_person and plan.state == PlanState.PLANNED.value and plan.approved_at is None:
        state = UNAPPROVED
    risks = int(plan.totals.get("removed") or 0) + int(plan.totals.get("outside") or 0)
    return PlanLine(
        plan,
        state,
        *new_offsets(plan.strategy, plan.parameters, zone),
        f"{here}/plans/{plan.id}",
        here,
        risks,
    )
