"""The page of an offset plan: review, apply, verify, end the hold; undo, and plan again."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse

from frontend.pages.offsets.form import chosen, invalid
from frontend.pages.offsets.reads import NO_LAG, Progress, Rate, at_risk, catching_up, progress, risks
from frontend.pages.offsets.reset import request_of, steps
from frontend.ui import commands as as_command
from frontend.ui import reads, zones
from frontend.ui.commands import Command, service_url
from frontend.ui.form import HOLD_MS, Refusal, actor, attempt, done, hold_choices, hold_now, release_now
from frontend.ui.page import BadAddress, address, form_page, group_url, message, show, text
from frontend.ui.reads import GroupBrief, group_brief
from frontend.ui.states import state
from frontend.ui.viewer import APPLY, APPROVE, HOLD, PLAN, Need, Viewer, missing, require, viewer_of
from frontend.ui.wording import joined, plural
from kcoord.database.paging import Page
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.resets.strategies import Reset
from offsets.core.plan_types import Line, PlanState
from offsets.plans.approval import PlanApproval, is_maker
from offsets.plans.service import PlanService
from offsets.plans.summary import PlanHeader, seen_plans

LINES, RISKY = 100, 20
APPLY_STEP, VERIFY_STEP, ALL_STEPS = 4, 6, 7
"""How many steps of `frontend.pages.offsets.reset.STEPS` are done: before applying, after it, and at the end."""
MOST_ASKED = 5_000
"""Partitions of a plan whose request is read again to show it as a command; that of more would be too long for one."""


@dataclass(frozen=True, slots=True)
class Button:
    """A button of the page: what it does, what it takes, and what is said then; "": what the plan's state says."""

    carry_out: Callable[..., Awaitable[PlanHeader]]
    need: Need
    told: str = ""


Asked = tuple[Reset | None, str]
"""The request that made a plan, and its reason; None: it cannot be a command, and why."""


@dataclass(frozen=True, slots=True)
class Review:
    """A plan as its page shows it. `awaited`: it cannot be applied before someone approves it."""

    plan: PlanHeader
    lines: Page[Line]
    risky: Page[Line]
    group: GroupBrief | None
    now: int
    progress: Progress | None
    rate: Rate | None
    asked: Asked
    awaited: bool


@form_page("offsets.apply", approve="offsets.approve", undo="offsets.undo")
def offset_plan(request: HttpRequest, group_id: str, plan_id: uuid.UUID) -> HttpResponse:
    """Review a plan; apply it, undo it, or plan again; end the hold."""
    act = request.POST.get("act", "") if request.method == "POST" else None
    if act is not None and act not in _BUTTONS:
        raise BadAddress(f"act: must be one of {', '.join(_BUTTONS)}.")
    if act:
        require(request, _BUTTONS[act].need, group_id)
    viewer = viewer_of(request)
    refusal = Refusal()
    if act is not None:
        step = partial(_BUTTONS[act].carry_out, request=request, group_id=group_id, plan_id=str(plan_id))
        carried, refusal = attempt(step)
        if carried is not None:
            told = _BUTTONS[act].told or _told(carried)
            return done(request, told, f"{group_url(group_id)}/plans/{carried.id}")
    cursor, only_risky = text(request, "after") or None, text(request, "only") == "risky"
    found, missed = attempt(lambda runtime: _review(runtime, viewer, group_id, plan_id, cursor, only_risky))
    if found is None:
        title = "No such plan" if missed.status == 404 else "The plan cannot be read now"
        return message(request, missed.status, title, missed.text)
    context = {
        **_facts(request, found),
        **_allowed(viewer, group_id),
        "group_type": found.group.type if found.group else None,
        "lines": found.lines.items,
        "risky_lines": found.risky.items,
        "more_risky_url": address(request, only="risky", after=None) if found.risky.next_cursor else None,
        "only_risky": only_risky,
        "all_url": address(request, only=None, after=None),
        "refusal": refusal,
        "first_url": address(request, after=None) if cursor else None,
        "next_url": address(request, after=found.lines.next_cursor) if found.lines.next_cursor else None,
        "here": request.path,
    }
    return show(request, "pages/offsets/offset_plan", context, section="groups", status=refusal.status)


def _facts(request: HttpRequest, found: Review) -> dict[str, Any]:
    plan, group, now_at = found.plan, found.group, found.progress
    applied = plan.state is PlanState.APPLIED
    lag = None if now_at is None else now_at.lag if applied else now_at.planned_lag
    held = bool(group and group.held)
    to_come = plan.state is PlanState.PLANNED
    passed = APPLY_STEP if to_come else VERIFY_STEP if held else ALL_STEPS
    return {
        "plan": plan,
        "strategy": chosen(plan.strategy).label,
        "parameters": _parameters(plan),
        "risks": risks(plan, whole=viewer_of(request).topics.unlimited),
        "no_lag": NO_LAG,
        "group": group,
        "state": state(group.state, held=group.held) if group else None,
        "can_apply": plan.state is PlanState.PLANNED,
        "awaited": found.awaited,
        "own": is_maker(plan, viewer_of(request).principal),
        "can_undo": applied,
        "progress": now_at,
        "catching_up": None if plan.state is PlanState.UNDONE else catching_up(lag, found.rate),
        "steps": steps(passed, without=() if held or not to_come else ("Hold",)),
        "hold_choices": hold_choices(),
        "commands": _commands(service_url(request), found),
        "now": found.now,
    }


def _allowed(viewer: Viewer, group_id: str) -> dict[str, Any]:
    lacking = {"approve": APPROVE, "apply": APPLY, "plan": PLAN, "hold": HOLD}
    return {"lacking": {name: missing(viewer, need, group_id) for name, need in lacking.items()}}


def _commands(url: str, found: Review) -> list[Command]:
    plan, shown = found.plan, list[Command]()
    if plan.state is PlanState.PLANNED:
        if found.awaited:
            shown.append(as_command.with_plan(url, plan.group_id, plan.id, "approve"))
        shown.append(as_command.with_plan(url, plan.group_id, plan.id, "apply"))
        shown += _again_commands(url, found)
    if plan.state is PlanState.APPLIED:
        shown += [as_command.verify(url, plan.group_id), as_command.with_plan(url, plan.group_id, plan.id, "undo")]
    if found.group and found.group.held:
        shown.append(as_command.end_hold(url, plan.group_id))
    return shown


def _again_commands(url: str, found: Review) -> list[Command]:
    """The buttons that make another plan, and the hold before it that a group with members needs."""
    plan, (reset, reason) = found.plan, found.asked
    offered = {risk.label: risk.act for risk in risks(plan) if risk.act}
    if reset is None:
        return [Command(label, "", "", reason) for label in ("Plan again", *offered)]
    made = []
    if found.group and found.group.members:
        made.append(as_command.hold(url, plan.group_id, HOLD_MS))
    made.append(replace(as_command.plan(url, plan.group_id, reset, reason), label="Plan again"))
    careful = {"clamp": replace(reset, clamp=True), "keep": replace(reset, keep_unknown=True)}
    for label, act in offered.items():
        made.append(replace(as_command.plan(url, plan.group_id, careful[act], reason), label=label))
    return made


async def _apply(runtime: Runtime, request: HttpRequest, group_id: str, plan_id: str) -> PlanHeader:
    plans = runtime.get(PlanService)
    found = await plans.get(group_id, plan_id)
    if found.totals["removed"] and request.POST.get("removals") != "on":
        raise invalid("Tick the box: the plan removes committed offsets.")
    return await plans.apply(group_id, plan_id, viewer_of(request).principal)


async def _approve(runtime: Runtime, request: HttpRequest, group_id: str, plan_id: str) -> PlanHeader:
    return await runtime.get(PlanApproval).approve(group_id, plan_id, viewer_of(request).principal)


async def _undo(runtime: Runtime, request: HttpRequest, group_id: str, plan_id: str) -> PlanHeader:
    return await runtime.get(PlanService).undo(group_id, plan_id, viewer_of(request).principal)


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
    return await plans.revise(group_id, plan_id, viewer_of(request).principal, clamp=clamp, keep_unknown=keep_unknown)


async def _again(runtime: Runtime, request: HttpRequest, group_id: str, plan_id: str) -> PlanHeader:
    """Plan the same once more, with a hold before if the form asks for one."""
    plans = runtime.get(PlanService)
    reset, reason = await request_of(runtime, viewer_of(request), group_id, plan_id)
    if request.POST.get("hold") == "on":
        require(request, HOLD, group_id)
        await hold_now(runtime, request, group_id)
    return await plans.create(group_id, reset, viewer_of(request).principal, reason)


async def _release(runtime: Runtime, request: HttpRequest, group_id: str, plan_id: str) -> PlanHeader:
    await release_now(runtime, group_id, actor(request))
    return await runtime.get(PlanService).get(group_id, plan_id)


_BUTTONS: Mapping[str, Button] = {
    "approve": Button(_approve, APPROVE, "Approved: the plan can be applied."),
    "apply": Button(_apply, APPLY),
    "undo": Button(_undo, APPLY),
    "clamp": Button(partial(_revise, clamp=True), PLAN),
    "keep": Button(partial(_revise, keep_unknown=True), PLAN),
    "again": Button(_again, PLAN),
    "release": Button(_release, HOLD, "The hold has ended: members can join."),
}
"""By the field `act` of their forms."""


async def _review(
    runtime: Runtime, viewer: Viewer, group_id: str, plan_id: uuid.UUID, cursor: str | None, only_risky: bool
) -> Review:
    plans = runtime.get(PlanService)
    (found,) = await seen_plans(runtime, [await plans.get(group_id, str(plan_id))], viewer.principal)
    now_at, rate = await progress(runtime.db, viewer, group_id, found.id)
    some = 0 < at_risk(found) < int(str(found.totals["partitions"])) and found.state is PlanState.PLANNED
    return Review(
        plan=found,
        lines=await plans.lines(found, cursor=cursor, limit=LINES, risky=only_risky, visible=viewer.topics),
        risky=await plans.lines(found, limit=RISKY, risky=True, visible=viewer.topics)
        if some and cursor is None and not only_risky
        else Page((), None),
        group=await group_brief(runtime.db, viewer, group_id),
        now=await reads.now(runtime.db),
        progress=now_at,
        rate=rate,
        awaited=runtime.get(PlanApproval).awaited(found),
        asked=await _asked(runtime, viewer, found) if found.state is PlanState.PLANNED else (None, ""),
    )


async def _asked(runtime: Runtime, viewer: Viewer, plan: PlanHeader) -> Asked:
    if int(str(plan.totals["partitions"])) > MOST_ASKED:
        return None, as_command.TOO_LONG
    try:
        return await request_of(runtime, viewer, plan.group_id, plan.id)
    except ProtocolError as error:
        if error.error is not Error.INVALID_REQUEST:
            raise
        return None, error.detail


def _parameters(plan: PlanHeader) -> list[tuple[str, str]]:
    """The strategy's parameters, as text."""
    names = {"at": "Instant", "offset": "Offset", "by": "Records", "duration": "Duration", "from_group": "Group"}
    told = []
    for key, value in plan.parameters.items():
        if key in names and value is not None:
            told.append((names[key], zones.instant(int(str(value))) if key == "at" else str(value)))
    for key, choice in (("clamp", "Clamped to the log"), ("keep_unknown", "What is not known is kept")):
        if plan.parameters.get(key):
            told.append((choice, "yes"))
    topics = plan.parameters.get("topics")
    if isinstance(topics, list) and topics:
        told.append(("Topics", joined([str(topic) for topic in topics], 5)))
    return told


def _told(plan: PlanHeader) -> str:
    if plan.state is PlanState.PLANNED:
        return "A new plan was made. Nothing is applied yet."
    changed = plural(int(str(plan.totals["partitions"])), "partition")
    if plan.state is PlanState.APPLIED:
        return f"Applied: the offsets of {changed} are set. Undo is possible until a new offset is committed there."
    return f"Undone: the offsets of {changed} are restored. A hold goes on until it ends or you end it."
