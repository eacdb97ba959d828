"""The first page of a reset: partitions, new offsets, hold, preview. Its steps go on on the page of the plan."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render

from frontend.pages.offsets.form import (
    ALL,
    CHOICES,
    CHOSEN,
    Choice,
    Given,
    Ticks,
    exact,
    invalid,
    presets,
    read,
    ticks,
    write,
)
from frontend.pages.offsets.plans import new_offsets
from frontend.pages.offsets.reads import TickList, TickPartition, TickTopic, tick_list
from frontend.ui import commands as as_command
from frontend.ui import reads
from frontend.ui.commands import Command, service_url
from frontend.ui.form import (
    HOLD_MS,
    LONGEST_REASON,
    Refusal,
    actor,
    attempt,
    header,
    hold_choices,
    hold_now,
    release_now,
)
from frontend.ui.page import form_page, group_url, show
from frontend.ui.reads import GroupBrief, group_brief
from frontend.ui.states import state
from frontend.ui.viewer import HOLD, PLAN, Viewer, missing, require, viewer_of
from frontend.ui.wording import ranges
from frontend.ui.zones import zone_of
from kcoord.database.paging import Page
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.resets.strategies import OF_COMMITTED, Reset
from offsets.plans.service import PlanService
from offsets.plans.summary import PlanHeader, seen_plans

RECENT = 10
STEPS = ("Partitions", "New offsets", "Hold", "Preview", "Apply", "Verify", "End the hold")
"""The steps of a reset; the pages of the form and of the plan show them all."""


def steps(now: int, *, without: Collection[str] = ()) -> list[tuple[str, str]]:
    """All steps with their marks, `done`, `now` or `later`: the first `now` are done.

    `without`: those that were passed over, which are not done.
    """
    marks = ["done" if at < now else "now" if at == now else "later" for at, _ in enumerate(STEPS)]
    return [(name, "later" if name in without else mark) for name, mark in zip(STEPS, marks, strict=True)]


@dataclass(frozen=True, slots=True)
class TickLine:
    """A topic to tick. `whole`: all of it is ticked; `numbers`: of a topic without boxes."""

    topic: TickTopic
    whole: bool
    boxes: Sequence[tuple[TickPartition, bool]]
    numbers: str
    some: bool


@form_page("offsets.plan", release="group.release")
def reset_offsets(request: HttpRequest, group_id: str) -> HttpResponse:
    """Create a plan. The group may have members: nothing moves before the plan is applied."""
    require(request, PLAN, group_id)
    viewer = viewer_of(request)
    refusal, zone, act = Refusal(), zone_of(request), request.POST.get("act", "")
    if act == "command":
        commands = _commands(request, request.POST, group_id, header(request, group_id))
        return render(request, "frontend/ui/commands.html", {"commands": commands})
    if request.method == "POST" and act == "release":
        require(request, HOLD, group_id)
        _, refusal = attempt(lambda runtime: release_now(runtime, group_id, actor(request)))
    elif request.method == "POST":
        made, refusal = attempt(lambda runtime: _make(runtime, request, group_id))
        if made is not None:
            return HttpResponseRedirect(f"{group_url(group_id)}/plans/{made.id}")
    given: Given = request.POST if request.method == "POST" else request.GET
    if request.method == "GET" and "plan" in request.GET:
        found, refusal = attempt(lambda runtime: _again(runtime, viewer, group_id, request.GET["plan"], zone))
        given = found if found is not None else given
    seen = bridge.call(lambda runtime: _seen(runtime, viewer, group_id))
    given = _with_preset(given, seen.now, zone)
    context = {**_form(given, seen, zone), **_hold_part(viewer, group_id, given, seen.group), "refusal": refusal}
    context |= {
        "group": seen.group,
        "group_type": seen.group.type if seen.group else None,
        "state": state(seen.group.state, held=seen.group.held) if seen.group else None,
        "reason": given.get("reason", ""),
        "recent": [(plan, _recent_words(plan, zone)) for plan in seen.recent.items],
        "now": seen.now,
        "steps": steps(0),
        "commands": _commands(request, given, group_id, seen.group),
        "commands_id": "commands",
    }
    return show(request, "pages/offsets/reset_offsets", context, section="groups", status=refusal.status)


@dataclass(frozen=True, slots=True)
class _Seen:
    group: GroupBrief | None
    ticks: TickList
    recent: Page[PlanHeader]
    now: int


async def _seen(runtime: Runtime, viewer: Viewer, group_id: str) -> _Seen:
    return _Seen(
        await group_brief(runtime.db, viewer, group_id),
        await tick_list(runtime.db, viewer, group_id),
        await _recent(runtime, viewer, group_id),
        await reads.now(runtime.db),
    )


async def _make(runtime: Runtime, request: HttpRequest, group_id: str) -> PlanHeader:
    reset = read(request.POST, group_id, zone_of(request))
    reason = request.POST.get("reason", "").strip()[:LONGEST_REASON]
    if request.POST.get("hold") == "on":
        require(request, HOLD, group_id)
        await hold_now(runtime, request, group_id)  # first: commits after the preview would make it outdated
    return await runtime.get(PlanService).create(group_id, reset, viewer_of(request).principal, reason)


async def _again(runtime: Runtime, viewer: Viewer, group_id: str, plan_id: str, zone: tzinfo) -> QueryDict:
    reset, reason = await request_of(runtime, viewer, group_id, plan_id)
    return write(reset, reason, zone)


async def request_of(runtime: Runtime, viewer: Viewer, group_id: str, plan_id: str) -> tuple[Reset, str]:
    """The request that made a plan, and its reason, if all that it names can be seen. Raises INVALID_REQUEST."""
    reset, reason = await runtime.get(PlanService).request_of(group_id, plan_id)
    topics = {topic for topic, _ in (*(reset.scope or ()), *(reset.csv or ()))}
    hidden = reset.from_group is not None and not viewer.sees_group(reset.from_group)
    if hidden or not all(map(viewer.sees_topic, topics)):
        raise invalid("That plan names topics or a group that your account may not describe: make a new plan.")
    return reset, reason


def _recent_words(plan: PlanHeader, zone: tzinfo) -> str:
    return ", ".join(filter(None, new_offsets(plan.strategy, plan.parameters, zone)))


async def _recent(runtime: Runtime, viewer: Viewer, group_id: str) -> Page[PlanHeader]:
    try:
        found = await runtime.get(PlanService).recent(group_id, limit=RECENT)
        return Page(await seen_plans(runtime, found.items, viewer.principal), found.next_cursor)
    except ProtocolError as error:
        if error.error is not Error.GROUP_ID_NOT_FOUND:
            raise
        return Page((), None)  # a plan may be made before the group exists


def _with_preset(given: Given, now: int, zone: tzinfo) -> Given:
    """A form that names a strategy with an instant, but none, gets the one that the page ticks."""
    field = next((c.field for c in CHOICES if c.kind == "instant" and c.strategy.value == given.get("strategy")), "")
    if not field or given.get(field) or given.get(f"{field}_when"):
        return given
    filled = given.copy() if isinstance(given, QueryDict) else QueryDict(mutable=True)
    filled[f"{field}_when"] = str(presets(now, zone)[0].at)
    return filled


def _form(given: Given, seen: _Seen, zone: tzinfo) -> dict[str, Any]:
    try:
        ticked, unread = ticks(given), ""
    except ProtocolError:
        ticked, unread = Ticks(), given.get("topics", "")  # as it was typed, to be corrected
    offered = presets(seen.now, zone)
    listed, instants = {line.topic for line in seen.ticks.topics}, {str(preset.at) for preset in offered}
    refused = OF_COMMITTED if seen.group and seen.group.type == "share" else ()
    return {
        "choices": [_offered(one, given, instants, zone) for one in CHOICES if one.strategy not in refused],
        "chosen": given.get("strategy", ""),
        "presets": offered,
        "zone": exact(seen.now, zone).rpartition(" ")[2],
        "ticks": [tick_line(topic, seen.ticks, ticked) for topic in seen.ticks.topics],
        "more_topics": seen.ticks.more,
        "topics": unread or ticked.lines(without=listed),
        "scope": given.get("scope") or (CHOSEN if ticked.chosen or unread else ALL),
        "careful": {key: given.get(key) == "on" for key in ("clamp", "keep_unknown")},
    }


def _offered(choice: Choice, given: Given, offered: set[str], zone: tzinfo) -> Mapping[str, Any]:
    """A choice as the form shows it. `value`: of its field; `when`: the chosen instant in ms, "" for the field's."""
    value = given.get(choice.field, "") if choice.field else ""
    when = given.get(f"{choice.field}_when", "") if choice.kind == "instant" else ""
    known = when.isascii() and when.isdigit() and len(when) < 14
    said = exact(int(when), zone) if known and when not in offered else ""
    return {"choice": choice, "value": value, "when": when, "exact": said}


def tick_line(topic: TickTopic, found: TickList, ticked: Ticks) -> TickLine:
    """A topic of the tick list, with what is ticked."""
    some = ticked.chosen.get(topic.topic, set())
    boxes = found.boxes.get(topic.topic)
    shown = [(box, some is None or box.partition in some) for box in boxes or ()]
    text = ranges(sorted(some)) if boxes is None and some else ""
    rest = bool(some) and some is not None
    return TickLine(topic, some is None, shown, text, some=rest)


def _hold_part(viewer: Viewer, group_id: str, given: Given, group: GroupBrief | None) -> dict[str, Any]:
    lacking = missing(viewer, HOLD, group_id)
    return {
        "hold_missing": lacking,
        "hold_choices": hold_choices(),
        "hold_chosen": given.get("duration_ms", str(HOLD_MS)),
        "hold_ticked": given.get("hold") == "on" if given.get("strategy") else bool(group and group.members),
    }


def _commands(request: HttpRequest, given: Given, group_id: str, group: GroupBrief | None) -> list[Command]:
    """The form as commands, as far as it is filled in."""
    url, reason, made = service_url(request), given.get("reason", "").strip()[:LONGEST_REASON], []
    duration = given.get("duration_ms", str(HOLD_MS))
    if given.get("hold") == "on" and duration.isascii() and duration.isdigit():
        made.append(as_command.hold(url, group_id, int(duration), reason))
    try:
        made.append(as_command.plan(url, group_id, read(given, group_id, zone_of(request)), reason))
    except ProtocolError as error:
        made.append(Command("Make the plan", "", "", error.detail))
    if group and group.held:
        made.append(as_command.end_hold(url, group_id))
    return made
