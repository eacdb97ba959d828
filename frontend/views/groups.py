"""The list of groups, the page of a group and its events."""

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
from frontend.queries import Cursor, GroupFilter, GroupList, Limits, Order
from frontend.rows import Coordinator
from frontend.states import BY_NAME, STATES, State, state
from frontend.timeline import lines
from frontend.verdicts.presenters import KINDS
from frontend.verdicts.presenters import lines as verdict_lines
from frontend.verdicts.queries import judged
from frontend.views.page import (
    BadAddress,
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
from frontend.wording import plural
from groups.core.coordinator import partition_of
from groups.core.model.verdicts import VerdictKind
from groups.core.subscription import NONE as NO_TOPICS
from groups.engine.decision_context import DecisionContexts
from groups.models import Group
from groups.readmodel import GroupSummary
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
SORTS = (Order.CHANGED.value, Order.LAG.value)
SETTLED = ("Stable", "Empty", "Dead")
"""States in which nothing but heartbeats and commits happens without outside action."""
LARGE = 2_000
"""Rendering a group with more members costs too much to do on every change."""
TOPICS_SHOWN = 3
PANELS = ("members", "handovers", "partitions", "offsets")
"""Panels of a group that can be shown in full (`?show=members`)."""
EVERYTHING = 10_000
"""The maximum number of rows even of a panel shown in full; the API has the others."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A state or a verdict to filter by."""

    state: State
    count: int
    chosen: bool


@dataclass(frozen=True, slots=True)
class Seen:
    """A verdict on a group in the list."""

    state: State
    since: int


@dataclass(frozen=True, slots=True)
class ListLine:
    """A group in the list."""

    group: GroupSummary
    state: State
    url: str
    topics: str
    all_topics: str
    verdicts: Sequence[Seen]


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


@require_safe
@page
def group_list(request: HttpRequest) -> HttpResponse:
    """All groups, one page at a time."""
    wanted = wanted_groups(request)
    found = bridge.call(lambda runtime: queries.group_list(runtime.db, wanted))
    total = sum(found.counts.values())
    filtered = _is_filtered(wanted)
    return show(
        request,
        "groups",
        {
            "now": found.now,
            "wanted": wanted,
            "lines": [_line(group) for group in found.groups],
            "state_choices": [Choice(s, found.counts.get(s.name, 0), s.name in wanted.states) for s in STATES],
            "verdict_choices": [
                Choice(shown, found.verdict_counts.get(kind.value, 0), kind.value in wanted.verdicts)
                for kind, shown in KINDS.items()
            ],
            "sorts": [
                ("", "Name"),
                (Order.CHANGED.value, "Last change"),
                (Order.LAG.value, "Lag, as last sampled"),
            ],
            "order": wanted.order.value,
            "type_choices": [("", "All"), *((t.value, t.label) for t in Group.Type)],
            "filtered": filtered or bool(wanted.after or wanted.before),
            "filter_words": _filter_words(wanted),
            "summary": _summary(found, wanted, total),
            "previous_url": _edge(request, "before", found.previous, wanted),
            "next_url": _edge(request, "after", found.next, wanted),
            "base_url": settings.KCOORD.str("advertised.url") or f"{request.scheme}://{request.get_host()}",
            "stream": reverse("frontend:live"),
            "pace": Pace(every_ms=15_000, gap_ms=1_000),
        },
        section="groups",
    )


def wanted_groups(request: HttpRequest) -> GroupFilter:
    """What the URL of the list asks for. Raises BadAddress."""
    after = cursor(request, "after", str, int)
    before = cursor(request, "before", str, int)
    if after and before:
        raise BadAddress("after, before: use only one of them.")
    return GroupFilter(
        q=text(request, "q"),
        states=choices_of(request, "state", BY_NAME),
        verdicts=choices_of(request, "verdict", [kind.value for kind in KINDS]),
        type=choice(request, "type", tuple(Group.Type.values)),
        order=Order(choice(request, "sort", SORTS) or Order.NAME.value),
        after=Cursor(*after) if after else None,  # type: ignore[arg-type]
        before=Cursor(*before) if before else None,  # type: ignore[arg-type]
    )


def _line(group: GroupSummary) -> ListLine:
    more = len(group.topics) >= queries.TOPICS_PER_LINE
    shown = ", ".join(group.topics[:TOPICS_SHOWN])
    if len(group.topics) > TOPICS_SHOWN:
        shown += f" and {len(group.topics) - TOPICS_SHOWN}{'+' if more else ''} more"
    verdicts = [Seen(KINDS[VerdictKind(kind)], since) for kind, since in group.verdicts]
    return ListLine(group, state(group.state), group_url(group.group_id), shown, ", ".join(group.topics), verdicts)


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


def _edge(request: HttpRequest, name: str, edge: Cursor | None, wanted: GroupFilter) -> str | None:
    return cursor_address(request, name, edge.group_id, edge.at) if edge else None


def _filter_words(wanted: GroupFilter) -> str:
    words = []
    if wanted.q:
        words.append(f"“{wanted.q}” in its id")
    if wanted.states:
        words.append("the state " + " or ".join(state(name).label for name in wanted.states))
    if wanted.verdicts:
        words.append("the verdict " + " or ".join(KINDS[VerdictKind(name)].label for name in wanted.verdicts))
    if wanted.type:
        words.append(f"the type {wanted.type}")
    return ", and ".join(words) or "a place on this page of the list"


def _is_filtered(wanted: GroupFilter) -> bool:
    return bool(wanted.q or wanted.type or wanted.states or wanted.verdicts)


def _summary(found: GroupList, wanted: GroupFilter, total: int) -> str:
    chosen = sum(found.counts.get(name, 0) for name in wanted.states) if wanted.states else total
    if _is_filtered(wanted):
        return f"{plural(chosen, 'group')} found"
    return plural(total, "group")


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
