"""The list of groups: its filters, order and pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from frontend import queries
from frontend.queries import Cursor, GroupFilter, GroupList, Order
from frontend.states import BY_NAME, STATES, State, state
from frontend.verdicts.presenters import KINDS
from frontend.views.groups import Pace, group_url
from frontend.views.page import (
    BadAddress,
    choice,
    choices_of,
    cursor,
    cursor_address,
    number,
    page,
    show,
    text,
)
from frontend.wording import plural
from groups.core.model.verdicts import VerdictKind
from groups.models import Group
from groups.readmodel import GroupSummary
from kcoord.process import bridge

SORTS = (Order.CHANGED.value, Order.LAG.value)
TOPICS_SHOWN = 3


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
            "narrowed": _is_narrowed(wanted),
            "label": text(request, "label"),
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
        topic=text(request, "topic"),
        member=text(request, "member"),
        min_lag=number(request, "min_lag"),
        label=_label(text(request, "label")),
        order=Order(choice(request, "sort", SORTS) or Order.NAME.value),
        after=Cursor(*after) if after else None,  # type: ignore[arg-type]
        before=Cursor(*before) if before else None,  # type: ignore[arg-type]
    )


def _label(written: str) -> tuple[str, str | None] | None:
    """`name=value`, or `name` for any value."""
    name, equals, value = written.partition("=")
    if equals and not name:
        raise BadAddress("label: write a label as name=value, or as name for any value.")
    return (name, value if equals else None) if name else None


def _line(group: GroupSummary) -> ListLine:
    more = len(group.topics) >= queries.TOPICS_PER_LINE
    shown = ", ".join(group.topics[:TOPICS_SHOWN])
    if len(group.topics) > TOPICS_SHOWN:
        shown += f" and {len(group.topics) - TOPICS_SHOWN}{'+' if more else ''} more"
    verdicts = [Seen(KINDS[VerdictKind(kind)], since) for kind, since in group.verdicts]
    return ListLine(group, state(group.state), group_url(group.group_id), shown, ", ".join(group.topics), verdicts)


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
    if wanted.topic:
        words.append(f"the topic {wanted.topic}")
    if wanted.member:
        words.append(f"a member with “{wanted.member}” in its ids")
    if wanted.min_lag is not None:
        words.append(f"a lag of {wanted.min_lag:,} or more")
    if wanted.label:
        words.append(f"the label {'='.join(part for part in wanted.label if part is not None)} on a topic")
    return ", and ".join(words) or "a place on this page of the list"


def _is_filtered(wanted: GroupFilter) -> bool:
    return bool(wanted.q or wanted.type or wanted.states or wanted.verdicts) or _is_narrowed(wanted)


def _is_narrowed(wanted: GroupFilter) -> bool:
    """By one of the filters that are folded away otherwise."""
    return bool(wanted.topic or wanted.member or wanted.label or wanted.min_lag is not None)


def _summary(found: GroupList, wanted: GroupFilter, total: int) -> str:
    chosen = sum(found.counts.get(name, 0) for name in wanted.states) if wanted.states else total
    if _is_filtered(wanted):
        return f"{plural(chosen, 'group')} found"
    return plural(total, "group")
