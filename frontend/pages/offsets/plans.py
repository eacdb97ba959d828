"""The list of plans of all groups, and plans as files."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo

from django.http import HttpRequest, HttpResponse, HttpResponseBase

from frontend.pages.offsets.form import CHOICES
from frontend.pages.offsets.reads import NO_LAG
from frontend.ui.page import BadAddress, address, choice, cursor, cursor_address, instant, page, show, text
from frontend.ui.rows import Millis
from frontend.ui.shown import ALL_TOPICS
from frontend.ui.states import State
from frontend.ui.table import all_rows, csv_of, rows_of
from frontend.ui.viewer import Viewer, viewer_of
from frontend.ui.wording import elided, number, plural, wall, zone_name
from frontend.ui.zones import zone_of
from kcoord.database.paging import INT64_MAX, MAX_LIMIT
from kcoord.database.sql import queries
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from offsets.core.plan_types import PlanState
from offsets.plans.approval import PlanApproval
from offsets.plans.service import PlanService
from offsets.plans.summary import PlanHeader, plan_header, seen_plans

_LABELS = {choice.strategy.value: choice.label for choice in CHOICES}


def new_offsets(strategy: str, parameters: Mapping[str, object], zone: tzinfo = UTC) -> tuple[str, str]:
    """The strategy for people, and its parameter: `Backwards`, `100 records`; "" if it has no parameter to show.

    `parameters`: those of the plan that the person may see. `zone`: of its instant.
    """
    label = _LABELS.get(strategy, strategy)
    if (by := parameters.get("by")) is not None:
        records = int(str(by))
        return "Backwards" if records < 0 else "Forwards", plural(abs(records), "record")
    if (offset := parameters.get("offset")) is not None:
        return label, number(int(str(offset)))
    if (at := parameters.get("at")) is not None:
        return label, f"{wall(int(str(at)), zone)} {zone_name(zone, int(str(at)))}"
    return label, elided(str(parameters.get("duration") or parameters.get("from_group") or ""))


Q = queries("frontend")

PlanKey = tuple[Millis, str]
"""When a plan was made, and its id: its place in the list."""

PAGE_SIZE = 50
LAST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff"


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
    plans: Sequence[PlanHeader]
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
        found = await db.records(connection, plan_header, Q.all_plans, parameters)
        now = await db.now_ms(connection)
    more = len(found) > limit
    plans = await seen_plans(runtime, found[:limit], viewer.principal)
    return PlanList(now, plans, (plans[-1].created_at, plans[-1].id) if more else None)


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

    plan: PlanHeader
    state: State
    strategy: str
    amount: str
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
    return show(request, "pages/offsets/plans", context, section="plans", title="Plans")


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


def _line(plan: PlanHeader, second_person: bool, zone: tzinfo) -> PlanLine:
    state = STATES.get(plan.state) or State(plan.state, plan.state, "idle", "")
    if second_person and plan.state == PlanState.PLANNED.value and plan.approved_at is None:
        state = UNAPPROVED
    risks = (plan.totals["removed"] or 0) + (plan.totals["outside"] or 0)
    return PlanLine(plan, state, *new_offsets(plan.strategy, plan.parameters, zone), risks)


@page
def plan_csv(request: HttpRequest, group_id: str, plan_id: uuid.UUID) -> HttpResponseBase:
    """The lines of an offset plan."""
    topics = viewer_of(request).topics
    plan = bridge.call(lambda runtime: runtime.get(PlanService).get(group_id, str(plan_id)))
    columns = """
        topic partition old_offset requested_offset=requested new_offset=new log_start_offset=log.start
        log_end_offset=log.end old_lag new_lag note
    """
    found = rows_of(
        lambda runtime, cursor: runtime.get(PlanService).lines(plan, cursor=cursor, limit=MAX_LIMIT, visible=topics)
    )
    return csv_of(f"{group_id}-plan", columns, found)


@page
def plans_csv(request: HttpRequest) -> HttpResponseBase:
    """The plans of all groups that match the filters of the page."""
    wanted, viewer = replace(wanted_plans(request), before=None), viewer_of(request)

    async def read(runtime: Runtime, before: PlanKey | None) -> tuple[Sequence[PlanHeader], PlanKey | None]:
        found = await all_plans(runtime, viewer, replace(wanted, before=before), MAX_LIMIT)
        return found.plans, found.next

    columns = """
        plan_id=id group_id strategy state partitions=totals.partitions changed=totals.changed removed=totals.removed
        outside=totals.outside lag_change=totals.lag_change reason @created_at created_by @approved_at approved_by
        @applied_at applied_by @undone_at undone_by
    """
    return csv_of("plans", columns, all_rows(read), counted=viewer.topics_counted or ALL_TOPICS)
