"""The page of a group and its events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from frontend import presenters, queries
from frontend.offsets.presenters import choices, lag
from frontend.offsets.queries import BY_NAME as BY_RANGE
from frontend.offsets.queries import RANGES
from frontend.partitions import read_colours
from frontend.queries import Limits
from frontend.rows import Coordinator
from frontend.timeline import lines
from frontend.verdicts.presenters import lines as verdict_lines
from frontend.verdicts.queries import judged
from frontend.views.page import (
    address,
    choice,
    choices_of,
    cursor,
    cursor_address,
    is_panel,
    page,
    show,
    text,
)
from groups.core.coordinator import partition_of
from groups.core.subscription import NONE as NO_TOPICS
from groups.engine.decision_context import DecisionContexts
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from offsets.core.retention import RetentionRule
from offsets.core.verdicts import Verdict
from offsets.retention.sweep import RetentionService
from offsets.runs.findings import FindingReads, GroupFindings
from offsets.verdicts.reads import summaries

HOLD, KICK = "groups.change_group", "groups.delete_member"
"""Django permissions that keep members out, and remove one."""
PIN = "offsets.change_retentionpin"
SETTLED = ("Stable", "Empty", "Dead")
"""States in which nothing but heartbeats and commits happens without outside action."""
LARGE = 2_000
"""Rendering a group with more members costs too much to do on every change."""
PANELS = ("members", "handovers", "partitions", "offsets")
"""Panels of a group that can be shown in full (`?show=members`)."""
EVERYTHING = 10_000
"""The maximum number of rows even of a panel shown in full; the API has the others."""


@dataclass(frozen=True, slots=True)
class Action:
    """An action available to the user; `permission` "": to everybody. `bad`: it is destructive."""

    label: str
    url: str
    permission: str
    bad: bool = False


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a live page refreshes on its own, and the minimum time between two refreshes."""

    every_ms: int
    gap_ms: int


def group_url(group_id: str) -> str:
    """The URL of a group's page."""
    return f"{reverse('frontend:groups')}/{quote(group_id, safe='')}"


def _actions(request: HttpRequest, group_id: str) -> list[Action]:
    """What the user may do to a group."""
    here = group_url(group_id)
    actions = [
        Action("Simulate…", f"{here}/simulate", ""),
        Action("Snapshot for a ticket (Markdown)", f"{here}/snapshot.md", ""),
        Action("Snapshot (JSON)", f"{here}/snapshot.json", ""),
        Action("Reset offsets…", f"{here}/reset", "offsets.add_offsetplan"),
        Action("Hold…", f"{here}/hold", HOLD),
        Action("Pins…", f"{here}/pins", PIN),
        Action("Delete group…", f"{here}/delete", "groups.delete_group", bad=True),
    ]
    return [action for action in actions if not action.permission or request.user.has_perm(action.permission)]


@require_safe
@page
def group_page(request: HttpRequest, group_id: str) -> HttpResponse:
    """One group in full."""
    shown = _shown(request)
    drawn = BY_RANGE[choice(request, "range", BY_RANGE) or RANGES[0].name]
    limits = replace(_limits(shown), lag=drawn, q=text(request, "topic"))
    looked = None
    if "\0" not in group_id:
        looked = bridge.call(lambda runtime: look(runtime, group_id, limits))
    if looked is None:
        return missing(request, group_id)
    found = looked.page
    context: dict[str, Any] = presenters.group(
        found,
        settings.KCOORD.int("offsets.topic.num.partitions"),
        read_colours(request.headers.get("Kcoord-Colours", "")),
        looked.assignors,
        looked.rule,
        looked.coordinator,
    )
    subscribed = looked.rule.subscribed if looked.rule else NO_TOPICS
    context |= lag(found.lag, subscribed, found.counts.members, settings.KCOORD.int("lag.stale.ms"))
    context |= {
        "lag_range": limits.lag,
        "lag_ranges": choices(limits.lag, {drawn.name: address(request, range=drawn.name) for drawn in RANGES}),
        "sample_every_ms": settings.KCOORD.int("lag.sample.interval.ms"),
        "pace": _pace(found.header.state, found.counts.members, found.totals.partitions, shown),
        "shown": shown,
        "q": limits.q,
        "searchable": bool(limits.q) or found.totals.topics > Limits().topics,
        "actions": _actions(request, group_id),
        "group_url": group_url(group_id),
        "hold_url": f"{group_url(group_id)}/hold",
        "may_hold": request.user.has_perm(HOLD),
        "kick_url": f"{group_url(group_id)}/kick" if request.user.has_perm(KICK) else "",
        "show_urls": {panel: address(request, show=(*shown, panel)) for panel in PANELS},
        "verdicts": verdict_lines(summaries(looked.verdicts), found.header.state, explained=True),
        "findings": looked.findings,
        "findings_url": f"{reverse('frontend:findings')}?{urlencode({'group': group_id})}",
        "history_url": f"{group_url(group_id)}/events",
        "rebalances_url": f"{group_url(group_id)}/rebalances",
        "commits_url": f"{group_url(group_id)}/commits",
        "report_url": f"{group_url(group_id)}/report",
        "stream": f"{reverse('frontend:live')}?group={quote(group_id, safe='')}",
        "only_owners": settings.KCOORD.only_owners,
    }
    if limits.q and len(found.offsets) < limits.offsets:
        context["hidden_offsets"] = 0  # rows excluded by the search do not count as hidden
    return show(request, "group", context, section="groups")


@dataclass(frozen=True, slots=True)
class Look:
    """A group as its page needs it: rows, and what the coordinator knows about it."""

    page: queries.GroupPage
    assignors: Sequence[str]
    rule: RetentionRule | None
    findings: GroupFindings | None
    coordinator: Coordinator | None
    verdicts: Sequence[Verdict]


async def look(runtime: Runtime, group_id: str, limits: Limits) -> Look | None:
    """What the page of a group shows, None if it does not exist. Raises COORDINATOR_NOT_AVAILABLE."""
    found = await queries.group_page(runtime.db, group_id, limits)
    if found is None:
        return None
    assignors: Sequence[str] = ()
    if found.consumer is not None:
        assignors = tuple((await runtime.get(DecisionContexts).context_of(group_id)).assignors)
    rule = await runtime.get(RetentionService).rule(group_id)
    findings = await runtime.get(FindingReads).of_group(group_id)
    partition = partition_of(group_id, runtime.config.int("offsets.topic.num.partitions"))
    coordinator = await queries.coordinator(runtime.db, partition)
    found, verdicts = await judged(runtime, found)
    return Look(found, assignors, rule, findings, coordinator, verdicts)


def _limits(shown: tuple[str, ...]) -> Limits:
    limits = Limits()
    if "members" in shown:
        limits = replace(limits, members=EVERYTHING)
    if "handovers" in shown:
        limits = replace(limits, handovers=EVERYTHING // 10)
    if "partitions" in shown:
        limits = replace(limits, topics=EVERYTHING // 10, cells=EVERYTHING)
    if "offsets" in shown:
        limits = replace(limits, offsets=EVERYTHING)
    return limits


def _pace(state_name: str, members: int, partitions: int, shown: tuple[str, ...]) -> Pace:
    if shown:
        return Pace(every_ms=30_000, gap_ms=5_000)
    settled = state_name in SETTLED
    if partitions > queries.COMPARED:
        return Pace(every_ms=15_000 if settled else 10_000, gap_ms=5_000)
    if members > LARGE:
        return Pace(every_ms=10_000 if settled else 5_000, gap_ms=2_000)
    return Pace(every_ms=5_000 if settled else 2_000, gap_ms=250)


def _shown(request: HttpRequest) -> tuple[str, ...]:
    return choices_of(request, "show", PANELS)


@require_safe
@page
def group_events(request: HttpRequest, group_id: str) -> HttpResponse:
    """The events of a group, newest first; they outlive the group."""
    before = cursor(request, "before", int)
    if "\0" in group_id:
        return missing(request, group_id)
    number = int(before[0]) if before else None
    found = bridge.call(lambda runtime: queries.event_page(runtime.db, group_id, number))
    if not found.exists and not found.events:
        return missing(request, group_id)
    older = cursor_address(request, "before", found.events[-1].id) if found.more else None
    context = {
        "now": found.now,
        "group_id": group_id,
        "exists": found.exists,
        "events": lines(found.events),
        "group_url": group_url(group_id),
        "newest_url": request.path if before else None,
        "older_url": older,
    }
    return show(request, "events", context, section="groups")


def missing(request: HttpRequest, group_id: str) -> HttpResponse:
    """The page of a group that does not exist, with its last events, if any."""
    found = None
    if "\0" not in group_id:
        found = bridge.call(lambda runtime: queries.event_page(runtime.db, group_id, None, limit=10))
    context = {
        "group_id": group_id,
        "now": found.now if found else 0,
        "events": lines(found.events) if found else (),
        "stream": f"{reverse('frontend:live')}?group={quote(group_id, safe='')}",
        "pace": Pace(every_ms=15_000, gap_ms=1_000),
    }
    # A page that is already open gets its panel with status 200: htmx would not show one with an error status.
    return show(request, "missing", context, section="groups", status=200 if is_panel(request) else 404)
