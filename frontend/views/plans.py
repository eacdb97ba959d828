"""Offset plans: a reset is computed, reviewed, applied, and can be undone."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.views.decorators.http import require_http_methods

from frontend import queries
from frontend.offsets.risks import at_risk, risks
from frontend.states import state
from frontend.views.actions import Refusal, actor, attempt, done, header, require
from frontend.views.groups import group_url
from frontend.views.page import BadAddress, address, message, page, show, text
from frontend.wording import joined, plural, utc, utc_instant
from kcoord.access.rights import ALL_ALLOWED, Principal
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.resets.offset_file import read_offset_file
from kcoord.resets.strategies import PARAMETER, Reset, Scope, Strategy
from kcoord.rest.paging import Page
from offsets.core.plan_types import Line, PlanHeader, PlanState
from offsets.plans.service import PlanService

MAKE, CHANGE = "offsets.add_offsetplan", "offsets.change_offsetplan"
LINES, RISKY, RECENT = 100, 20, 10


@dataclass(frozen=True, slots=True)
class Choice:
    """A strategy that can be chosen. `field`: the name of its parameter's input, "" for none; `kind` its type."""

    strategy: Strategy
    label: str
    help: str
    field: str = ""
    field_label: str = ""
    kind: str = "text"
    example: str = ""


CHOICES = (
    Choice(
        Strategy.TO_COMMITTED_AT,
        "Committed at a time",
        "What the group had committed at that instant, from its commit history.",
        "committed_at",
        "Instant (UTC)",
        "datetime-local",
    ),
    Choice(
        Strategy.TO_DATETIME,
        "Records written since a time",
        "The first record written at or after the instant, by interpolated samples of where the logs ended.",
        "at",
        "Instant (UTC)",
        "datetime-local",
    ),
    Choice(
        Strategy.BY_DURATION,
        "Records written recently",
        "As above, for this long before now.",
        "duration",
        "ISO 8601 duration",
        example="PT1H30M",
    ),
    Choice(Strategy.TO_EARLIEST, "Earliest", "The start of each log: all records are read again."),
    Choice(Strategy.TO_LATEST, "Latest", "The end of each log: all present records are skipped."),
    Choice(Strategy.TO_OFFSET, "An offset", "The same for every partition.", "offset", "Offset", example="42"),
    Choice(
        Strategy.SHIFT_BY,
        "Forwards or backwards",
        "This many records from the committed offset; negative goes back.",
        "by",
        "Records",
        example="-100",
    ),
    Choice(
        Strategy.COPY_FROM_GROUP,
        "Copy another group",
        "What another group has committed.",
        "from_group",
        "Group id",
    ),
    Choice(
        Strategy.FROM_FILE,
        "From a file",
        "Lines topic,partition,offset or group,topic,partition,offset, as exported by Kafka's tool.",
        "csv",
        "Lines",
        "textarea",
        "orders,0,42",
    ),
    Choice(
        Strategy.TO_CURRENT,
        "Current",
        "The committed offset, or the end of the log for a partition without one. Commits it again, so that it does "
        "not expire.",
    ),
)


def principal(request: HttpRequest) -> Principal:
    """Who acts, for the journal. Django's permissions have been checked, so the service does not check again."""
    return Principal(0, actor(request), ALL_ALLOWED)


@require_http_methods(["GET", "POST"])
@page
def reset_offsets(request: HttpRequest, group_id: str) -> HttpResponse:
    """Create a plan. The group may have members: nothing moves before the plan is applied."""
    require(request, MAKE)
    if "\0" in group_id:
        return message(request, 404, "No such group", "Not a valid group id.")
    refusal = Refusal()
    if request.method == "POST":
        made, refusal = attempt(lambda runtime: _make(runtime, request, group_id))
        if made is not None:
            return HttpResponseRedirect(f"{group_url(group_id)}/plans/{made.id}")
    brief = header(group_id)
    context = {
        "group_id": group_id,
        "group_url": group_url(group_id),
        "group": brief,
        "state": state(brief.state) if brief else None,
        "choices": [(choice, request.POST.get(choice.field, "") if choice.field else "") for choice in CHOICES],
        "chosen": request.POST.get("strategy", ""),
        "topics": request.POST.get("topics", ""),
        "reason": request.POST.get("reason", ""),
        "refusal": refusal,
        "recent": bridge.call(lambda runtime: _recent(runtime, group_id)),
        "now": bridge.call(lambda runtime: queries.now(runtime.db)),
    }
    return show(request, "reset_offsets", context, section="groups", status=refusal.status)


async def _make(runtime: Runtime, request: HttpRequest, group_id: str) -> PlanHeader:
    reset = _reset(request.POST.dict(), group_id)
    reason = request.POST.get("reason", "").strip()[:1_000]
    return await runtime.get(PlanService).create(group_id, reset, principal(request), reason)


def _reset(given: Mapping[str, Any], group_id: str) -> Reset:
    """The parameters in the form. Raises INVALID_REQUEST naming the field."""
    choice = next((c for c in CHOICES if c.strategy.value == given.get("strategy")), None)
    if choice is None:
        raise _invalid("Choose where the new offsets come from.")
    written = str(given.get(choice.field, "")).strip() if choice.field else ""
    if choice.field and not written:
        raise _invalid(f"{choice.label}: {choice.field_label} is missing.")
    parameters: dict[str, Any] = {}
    name = PARAMETER[choice.strategy]
    if name in ("offset", "by"):
        parameters[name] = _number(written, choice)
    elif name == "at":
        parameters[name] = _instant(written, choice)
    elif name == "csv":
        parameters[name] = read_offset_file(written).of_group(group_id)
    elif name is not None:
        parameters[name] = written
    scope = None if choice.strategy is Strategy.FROM_FILE else _scope(str(given.get("topics", "")))
    return Reset(choice.strategy, scope, **parameters)


def _scope(written: str) -> Scope:
    """Topics as Kafka's tool writes them, one per line: `orders` or `orders:0,2`. Empty: everything committed."""
    topics: list[tuple[str, tuple[int, ...] | None]] = []
    for line in written.split():
        name, colon, numbers = line.partition(":")
        if not colon:
            topics.append((name, None))
            continue
        if not all(number.isascii() and number.isdigit() and len(number) < 10 for number in numbers.split(",")):
            raise _invalid(f"Topics: {line!r} is not a topic with partitions, such as orders:0,2.")
        topics.append((name, tuple(int(number) for number in numbers.split(","))))
    return tuple(topics) or None


def _number(written: str, choice: Choice) -> int:
    digits = written.removeprefix("-").replace(",", "")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 19 or int(digits) >= 2**63:
        raise _invalid(f"{choice.field_label}: {written[:50]!r} is not a 64-bit integer.")
    return int(written.replace(",", ""))


def _instant(written: str, choice: Choice) -> int:
    try:
        return utc_instant(written)
    except ValueError:
        raise _invalid(f"{choice.field_label}: {written[:50]!r} is not a date and time, as 2026-01-31T12:00.") from None


def _invalid(detail: str) -> ProtocolError:
    return ProtocolError(Error.INVALID_REQUEST, detail)


async def _recent(runtime: Runtime, group_id: str) -> Page[PlanHeader]:
    try:
        return await runtime.get(PlanService).recent(group_id, limit=RECENT)
    except ProtocolError as error:
        if error.error is not Error.GROUP_ID_NOT_FOUND:
            raise
        return Page((), None)  # a plan may be made before the group exists


@dataclass(frozen=True, slots=True)
class Review:
    """A plan as its page shows it."""

    plan: PlanHeader
    lines: Page[Line]
    risky: Page[Line]
    group: queries.GroupBrief | None
    now: int


@require_http_methods(["GET", "POST"])
@page
def offset_plan(request: HttpRequest, group_id: str, plan_id: uuid.UUID) -> HttpResponse:
    """Review a plan; apply it or undo it."""
    act = request.POST.get("act", "") if request.method == "POST" else None
    require(request, "offsets.view_offsetplan" if act is None else MAKE if act in REVISIONS else CHANGE)
    if "\0" in group_id:
        return message(request, 404, "No such group", "Not a valid group id.")
    refusal = Refusal()
    if act is not None:
        if act not in _ACTS:
            raise BadAddress(f"act: must be one of {', '.join(_ACTS)}.")
        step = partial(_ACTS[act], request=request, group_id=group_id, plan_id=str(plan_id))
        carried, refusal = attempt(step)
        if carried is not None:
            return done(request, _told(carried), f"{group_url(group_id)}/plans/{carried.id}")
    cursor, only_risky = text(request, "after") or None, text(request, "only") == "risky"
    found, missing = attempt(lambda runtime: _review(runtime, group_id, plan_id, cursor, only_risky))
    if found is None:
        return message(request, missing.status, "No such plan", missing.text)
    strategy = next(c for c in CHOICES if c.strategy.value == found.plan.strategy)
    context = {
        "group_id": group_id,
        "group_url": group_url(group_id),
        "plan": found.plan,
        "strategy": strategy.label,
        "parameters": _parameters(found.plan),
        "lines": found.lines.items,
        "risky_lines": found.risky.items,
        "more_risky_url": address(request, only="risky", after=None) if found.risky.next_cursor else None,
        "only_risky": only_risky,
        "all_url": address(request, only=None, after=None),
        "risks": risks(found.plan),
        "group": found.group,
        "state": state(found.group.state) if found.group else None,
        "refusal": refusal,
        "may_act": request.user.has_perm(CHANGE),
        "may_revise": request.user.has_perm(MAKE),
        "can_apply": found.plan.state is PlanState.PLANNED,
        "can_undo": found.plan.state is PlanState.APPLIED,
        "first_url": address(request, after=None) if cursor else None,
        "next_url": address(request, after=found.lines.next_cursor) if found.lines.next_cursor else None,
        "now": found.now,
    }
    return show(request, "offset_plan", context, section="groups", status=refusal.status)


async def _apply(runtime: Runtime, request: HttpRequest, group_id: str, plan_id: str) -> PlanHeader:
    plans = runtime.get(PlanService)
    found = await plans.get(group_id, plan_id)
    if found.totals["removed"] and request.POST.get("removals") != "on":
        raise _invalid("Tick the box: the plan removes committed offsets.")
    return await plans.apply(group_id, plan_id, principal(request))


async def _undo(runtime: Runtime, request: HttpRequest, group_id: str, plan_id: str) -> PlanHeader:
    return await runtime.get(PlanService).undo(group_id, plan_id, principal(request))


async def _revise(
    runtime: Runtime,
    request: HttpRequest,
    group_id: str,
    plan_id: str,
    *,
    clamp: bool = False,
    keep_unknown: bool = False,
) -> PlanHeader:
    plans = runtime.get(PlanService)
    return await plans.revise(group_id, plan_id, principal(request), clamp=clamp, keep_unknown=keep_unknown)


REVISIONS = ("clamp", "keep")
_ACTS: Mapping[str, Callable[..., Awaitable[PlanHeader]]] = {
    "apply": _apply,
    "undo": _undo,
    "clamp": partial(_revise, clamp=True),
    "keep": partial(_revise, keep_unknown=True),
}
"""What the buttons of a plan's page do."""


async def _review(runtime: Runtime, group_id: str, plan_id: uuid.UUID, cursor: str | None, only_risky: bool) -> Review:
    plans = runtime.get(PlanService)
    found = await plans.get(group_id, str(plan_id))
    some = 0 < at_risk(found) < int(str(found.totals["partitions"])) and found.state is PlanState.PLANNED
    return Review(
        plan=found,
        lines=await plans.lines(found, cursor=cursor, limit=LINES, risky=only_risky),
        risky=await plans.lines(found, limit=RISKY, risky=True)
        if some and cursor is None and not only_risky
        else Page((), None),
        group=await queries.group_brief(runtime.db, group_id),
        now=await queries.now(runtime.db),
    )


def _parameters(plan: PlanHeader) -> list[tuple[str, str]]:
    """The strategy's parameters, as text."""
    names = {"at": "Instant", "offset": "Offset", "by": "Records", "duration": "Duration", "from_group": "Group"}
    told = []
    for key, value in plan.parameters.items():
        if key in names and value is not None:
            told.append((names[key], utc(int(str(value))) if key == "at" else str(value)))
    topics = plan.parameters.get("topics")
    if isinstance(topics, list):
        told.append(("Topics", joined([str(topic) for topic in topics], 5)))
    return told


def _told(plan: PlanHeader) -> str:
    if plan.state is PlanState.PLANNED:
        return "A new plan was made. Nothing is applied yet."
    changed = plural(int(str(plan.totals["partitions"])), "partition")
    if plan.state is PlanState.APPLIED:
        return f"Applied: the offsets of {changed} are set. Undo is possible until a new offset is committed there."
    return f"Undone: the offsets of {changed} are restored."
