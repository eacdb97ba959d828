"""The list of groups: its filters, order and pages."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse

from frontend.pages.groups import reads, saved
from frontend.pages.groups.bulk import offered
from frontend.pages.groups.merged import HERE, merged, positions
from frontend.ui.chart import Line, Point, spark
from frontend.ui.labels import Label, label_of, owner_of
from frontend.ui.labels import shown as shown_labels
from frontend.ui.page import (
    BadAddress,
    Choice,
    Link,
    Pace,
    address,
    around,
    choice,
    choices_of,
    cursor_given,
    edges,
    group_url,
    number,
    page,
    show,
    text,
)
from frontend.ui.rows import Millis
from frontend.ui.services import Found, elsewhere
from frontend.ui.shown import ALL_TOPICS, HIDDEN_TOPICS, Hidden, Known, Shown, cell, limited, shown, time_behind
from frontend.ui.states import BY_NAME, HELD, STATES, State, is_held, state
from frontend.ui.table import all_rows, csv_of, heads
from frontend.ui.verdicts import KINDS, verdict_state
from frontend.ui.viewer import CREATE_GROUP, Viewer, action, viewer_of
from frontend.ui.wording import elided, plural
from groups.configs import DecisionContexts
from groups.core.model.group import partition_of
from groups.core.model.types import VerdictKind
from groups.models import Group
from groups.readmodel import OF_ALL_TOPICS, ON_PAGES, GroupFilter, GroupSort, GroupSummary
from kcoord.database.paging import MAX_LIMIT
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError

TOPICS_SHOWN = 3
MOST_LABELS = 8
STEP_MS = 120_000
"""The distance of two points of a plot in the list."""
MOST_SECONDS = 10**12


@dataclass(frozen=True, slots=True)
class ListLine:
    """A group in the list. `plot`: its lag in the last hour, None if it has too many topics to be drawn here.

    `service`: the other service that it is of, "" for this one; its lag is not drawn.
    """

    group: GroupSummary
    state: State
    topics: str
    verdicts: Sequence[State]
    plot: Line | None
    assignor: str | None
    coordinator: str | None
    labels: Sequence[Label]
    owner: Label | None
    lag: Shown[int]
    time_lag: Shown[int]
    partitions: Shown[int]
    url: str
    service: str


@page
def group_list(request: HttpRequest) -> HttpResponse:
    """All groups, one page at a time."""
    wanted, viewer = wanted_groups(request), viewer_of(request)
    columns, after = wanted_columns(request), positions(wanted.after)
    wanted = replace(wanted, after=after.get(HERE) or None)
    there = _elsewhere(viewer, wanted, after)
    found, problem = _found(viewer, wanted)
    services: Sequence[Found] = () if problem else there.get("elsewhere", ())
    rows, following = merged(wanted.sort, found.groups, services, after, more=found.next is not None)
    lines = [_line(group, found, viewer, service) for service, group in rows]
    total = sum(found.counts.values())
    views, sorts = _views(request), _sorts(viewer)
    table = [saved.GROUP, *(column for column in saved.COLUMNS if column.name in columns)]
    return show(
        request,
        "pages/groups/groups",
        {
            "now": found.now,
            "wanted": wanted,
            "problem": problem,
            "lines": lines,
            "pickable": sum(not line.service for line in lines),
            "state_choices": [
                *(Choice(s, found.counts.get(s.name, 0), s.name in (wanted.groups.states or ())) for s in STATES),
                Choice(HELD, found.held, wanted.groups.held),
            ],
            "verdict_choices": [
                Choice(shown, found.verdict_counts.get(kind.value, 0), kind.value in (wanted.groups.verdicts or ()))
                for kind, shown in KINDS.items()
            ],
            "sorts": [("" if sort is saved.USUAL_SORT else sort.value, label) for sort, label in sorts.items()],
            "by_time_lag": viewer.topics.unlimited,
            "order": "" if wanted.sort is saved.USUAL_SORT else wanted.sort.value,
            "caption": dict(saved.SORTS)[wanted.sort].lower(),
            **views,
            "bulk": offered(viewer),
            "create": action(viewer, "Create group", reverse("frontend:create-group"), CREATE_GROUP),
            "heads": heads(request, table, wanted.sort, sorts, saved.USUAL_SORT),
            "columns": columns,
            "written_columns": saved.written_columns(columns),
            "toggles": _toggles(request, columns),
            "type_choices": [("", "All"), *((t.value, t.label) for t in Group.Type)],
            "label_links": _label_links(request, [group for _, group in rows]),
            "drawn_topics": reads.DRAWN_TOPICS,
            "narrowed": _is_narrowed(wanted),
            "fields": {name: text(request, name) for name in ("label", "min_time_lag")},
            "filtered": _is_filtered(wanted) or bool(after or wanted.before),
            "filter_words": filter_words(wanted.groups),
            "shows_filters": bool(total or lines or views["views"] or _is_filtered(wanted)),
            "summary": ", ".join([_summary(found, wanted, total, services), *_counted(services, after)]),
            **_pages(request, found, following, services),
            "base_url": settings.KCOORD.str("advertised.url") or f"{request.scheme}://{request.get_host()}",
            **there,
            "stream": reverse("frontend:live"),
            "pace": Pace(every_ms=15_000, gap_ms=1_000),
        },
        section="groups",
    )


def _found(viewer: Viewer, wanted: reads.Wanted) -> tuple[reads.GroupList, str]:
    """The page of the list, and what is wrong with the regular expression, whose field stays on the page."""
    try:
        with cursor_given("after" if wanted.after else "before"):
            return bridge.call(lambda runtime: reads.group_list(runtime.db, viewer, wanted, assignors_of(runtime))), ""
    except ProtocolError as error:
        if error.error is not Error.INVALID_REGULAR_EXPRESSION:
            raise
        return bridge.call(lambda runtime: reads.unreadable(runtime.db)), error.detail.removeprefix("regex: ")


def _pages(
    request: HttpRequest, found: reads.GroupList, following: str | None, services: Sequence[Found]
) -> Mapping[str, str | None]:
    """Where the pages before and after are. Other services list groups forwards only."""
    if not services:
        return around(request, found.previous, found.next)
    first = address(request, after=None, before=None) if request.GET.get("after") else None
    next_url = around(request, None, following)["next_url"]
    return {"back": "First page", "back_url": first, "on": "Next", "on_url": next_url}


def _counted(services: Sequence[Found], after: Mapping[str, str]) -> Sequence[str]:
    """How many groups match in each of the other services, as far as their first page says."""
    if after:
        return [f"more in {one.service}" for one in services if one.more or one.groups]
    return [
        f"unknown in {one.service}" if one.failed else f"{len(one.groups)}{'+' if one.more else ''} in {one.service}"
        for one in services
    ]


def _elsewhere(viewer: Viewer, wanted: reads.Wanted, after: Mapping[str, str]) -> dict[str, Any]:
    """The groups of other services that match the same filters, in the same order."""
    groups = wanted.groups
    labels = ["=".join(part for part in label if part is not None) for label in groups.labels or ()]
    parameters = {
        "q": groups.q, "state": groups.states, "held": "true" if groups.held else None, "verdict": groups.verdicts,
        "type": groups.types, "topic": groups.topic, "member": groups.member, "client_id": groups.client_id,
        "host": groups.host, "regex": groups.regex, "label": labels, "min_lag": groups.min_lag,
        "min_time_lag_ms": groups.min_time_lag_ms, "assignor": groups.assignor, "sort": wanted.sort.value,
        "limit": reads.PAGE_SIZE,
    }  # fmt: skip
    lacking = ["no filter by coordinator"] if groups.coordinator else []
    if wanted.sort in ON_PAGES:
        lacking.append(f"no order “{dict(saved.SORTS)[wanted.sort].lower()}”")
    asked = {name: value for name, value in parameters.items() if value not in (None, "")}
    return elsewhere(viewer, asked, after, " and ".join(lacking))


def assignors_of(runtime: Runtime) -> Iterable[str]:
    """The names of the server's assignors, the default first."""
    return runtime.get(DecisionContexts).assignors


def coordinator_of(group_id: str, also: reads.Also) -> str | None:
    """The node that coordinates a group; None: none does now."""
    return also.coordinators.get(partition_of(group_id, settings.KCOORD.int("offsets.topic.num.partitions")))


def wanted_groups(request: HttpRequest) -> reads.Wanted:
    """What the URL of the list asks for. Raises BadAddress."""
    states = choices_of(request, "state", (*BY_NAME, HELD.name))
    kind = choice(request, "type", tuple(Group.Type.values))
    label = label_of(request)
    seconds = number(request, "min_time_lag")
    groups = GroupFilter(
        q=text(request, "q"), states=tuple(name for name in states if name != HELD.name) if states else None,
        held=HELD.name in states, verdicts=choices_of(request, "verdict", [kind.value for kind in KINDS]) or None,
        types=[kind] if kind else None, topic=text(request, "topic") or None, member=text(request, "member") or None,
        client_id=text(request, "client") or None, host=text(request, "host") or None,
        regex=text(request, "regex") or None, min_lag=number(request, "min_lag"),
        min_time_lag_ms=None if seconds is None else min(seconds, MOST_SECONDS) * 1_000,
        labels=[label] if label else None, assignor=text(request, "assignor") or None,
        coordinator=text(request, "coordinator") or None,
    )  # fmt: skip
    return reads.Wanted(groups, _sort(request), *edges(request))


def _sort(request: HttpRequest) -> GroupSort:
    written = choice(request, "sort", (*(sort.value for sort in GroupSort), *saved.ALIASES))
    return saved.ALIASES.get(written) or GroupSort(written or saved.USUAL_SORT.value)


def wanted_columns(request: HttpRequest) -> tuple[str, ...]:
    """The columns that the URL of the list asks for. Raises BadAddress."""
    columns = saved.shown_columns(text(request, "columns"))
    if columns is None:
        raise BadAddress(f"columns: write some of {', '.join(saved.NAMES)} with a full stop between them.")
    return columns


def _views(request: HttpRequest) -> dict[str, Any]:
    """The saved views of the account, and what the present one would be saved as."""
    present = saved.written_view(request.GET)
    found = saved.saved_views_of(request.user)
    views = [(view.name, saved.list_url(view.query), view.query == present) for view in found]
    return {"views": views, "present": present, "longest_name": saved.LONGEST_NAME}


def _sorts(viewer: Viewer) -> Mapping[GroupSort, str]:
    """The orders that the person may ask for."""
    return {sort: label for sort, label in saved.SORTS if viewer.topics.unlimited or sort not in OF_ALL_TOPICS}


def _toggles(request: HttpRequest, columns: Sequence[str]) -> list[Link]:
    toggles = []
    for column in saved.COLUMNS:
        shown = column.name in columns
        names = [name for name in saved.NAMES if (name in columns) != (name == column.name)]
        toggles.append(Link(column.label, address(request, columns=saved.written_columns(names)), shown))
    return toggles


def _label_links(request: HttpRequest, groups: Iterable[GroupSummary]) -> list[tuple[str, int, str, bool]]:
    """The labels that most groups on the page have, addresses aside: how many have it, and the list of those."""
    found = Counter(one.text for group in groups for one in shown_labels(group.labels) if one.value and not one.link)
    chosen, links = text(request, "label"), []
    for label, count in sorted(found.items(), key=lambda one: (one[0] != chosen, -one[1], one[0]))[:MOST_LABELS]:
        url = address(request, label=None if label == chosen else label, after=None, before=None)
        links.append((label, count, url, label == chosen))
    return links


def _line(group: GroupSummary, found: reads.GroupList, viewer: Viewer, service: Found | None) -> ListLine:
    more = len(group.topics) >= reads.TOPICS_PER_LINE
    named = ", ".join(map(elided, group.topics[:TOPICS_SHOWN]))
    if len(group.topics) > TOPICS_SHOWN:
        named += f" and {len(group.topics) - TOPICS_SHOWN}{'+' if more else ''} more"
    hidden = None if viewer.topics.unlimited else HIDDEN_TOPICS
    return ListLine(
        group, state(group.state, held=is_held(group.held_until, found.now)), named,
        [verdict_state(kind) for kind, _ in group.verdicts],
        None if service else _plot(found.looks[group.pk], found.now),
        group.protocol_name if service else found.also.assignors.get(group.pk),
        None if service else coordinator_of(group.group_id, found.also),
        shown_labels(group.labels), owner_of(group.labels), _least(group, _shown(group, group.lag, viewer)),
        _time_lag(group, hidden), _shown(group, group.partitions, viewer, is_counted_now=hidden is not None),
        service.group_url(group.group_id) if service else group_url(group.group_id),
        service.service if service else "",
    )  # fmt: skip


NOT_SAMPLED = "Not sampled yet, nothing committed, or no watermark is known"


def _shown(group: GroupSummary, value: int | None, viewer: Viewer, *, is_counted_now: bool = False) -> Shown[int]:
    """A sum of the last sample, or `is_counted_now`, of the topics that the viewer may see."""
    at = None if is_counted_now else group.lag_sampled_at
    return limited(shown(value, at, why=NOT_SAMPLED), viewer.topics_counted)


def _least(group: GroupSummary, what: Shown[int]) -> Shown[int]:
    """How far it is behind, which may be more than what is known."""
    unknown = group.unknown_partitions
    stale = any(kind == VerdictKind.STALE.value for kind, _ in group.verdicts)
    why = f"the end of {plural(unknown, 'partition')} is not known" if unknown else "new watermarks are missing"
    return replace(what, least=why) if isinstance(what, Known) and not what.least and (unknown or stale) else what


def _time_lag(group: GroupSummary, hidden: Hidden | None) -> Shown[int]:
    return hidden or _least(
        group, time_behind(group.time_lag_ms, group.time_lag_at_least_ms, group.lag_sampled_at, NOT_SAMPLED)
    )


def _plot(looks: reads.Looks, now: Millis) -> Line | None:
    """A look does not count if a topic was not known then that was known before, and is later or is still read."""
    if looks.topics > reads.DRAWN_TOPICS:
        return None
    largest: dict[int, int] = {}
    before = accumulate(looks.parts, max)
    after = [*accumulate(reversed(looks.parts), max, initial=looks.topics)][:0:-1]
    for at, lag, parts, first, last in zip(looks.at, looks.lag, looks.parts, before, after, strict=True):
        if parts >= min(first, last):
            step = (at - now) // STEP_MS
            largest[step] = max(lag, largest.get(step, 0))
    points = [Point(now + step * STEP_MS + STEP_MS // 2, lag) for step, lag in largest.items()]
    return spark(points, first=now - reads.DRAWN_MS, last=now, step_ms=STEP_MS)


def filter_words(wanted: GroupFilter) -> str:
    """The conditions of a list in words, that a group has."""
    states = [*(state(name).label for name in wanted.states or ()), *([HELD.label] if wanted.held else [])]
    verdicts = [KINDS[VerdictKind(name)].label for name in wanted.verdicts or ()]
    parts = (wanted.member, "ids"), (wanted.client_id, "client id"), (wanted.host, "host")
    members = [f"“{part}” in its {name}" for part, name in parts if part]
    lag, seconds = wanted.min_lag, wanted.min_time_lag_ms
    conditions = (
        (wanted.q, f"“{wanted.q}” in its id"),
        (wanted.regex, f"an id that matches {wanted.regex}"),
        (states, f"the state {' or '.join(states)}"),
        (verdicts, f"the verdict {' or '.join(verdicts)}"),
        (wanted.types, f"the type {' or '.join(wanted.types or ())}"),
        (wanted.assignor, f"an assignor with “{wanted.assignor}” in its name"),
        (wanted.coordinator, f"the coordinator {wanted.coordinator}"),
        (wanted.topic, f"the topic {wanted.topic}"),
        (members, f"a member with {' and '.join(members)}"),
        (lag is not None, f"a lag of {lag or 0:,} or more"),
        (seconds is not None, f"a time lag of {(seconds or 0) // 1_000:,} s or more"),
    )
    words = [said for given, said in conditions if given]
    words += [f"the label {'='.join(part for part in label if part is not None)}" for label in wanted.labels or ()]
    return ", and ".join(words) or "a place on this page of the list"


def _is_filtered(wanted: reads.Wanted) -> bool:
    return wanted.groups != GroupFilter()


def _is_narrowed(wanted: reads.Wanted) -> bool:
    """By one of the filters that are folded away otherwise."""
    shown = replace(wanted.groups, q="", states=None, held=False, verdicts=None, types=None)
    return shown != GroupFilter()


def _summary(found: reads.GroupList, wanted: reads.Wanted, total: int, services: Sequence[Found]) -> str:
    states, held = wanted.groups.states or (), wanted.groups.held
    chosen = sum(found.counts.get(name, 0) for name in states) if states or held else total
    if held and "Empty" not in states:  # a group that is held is Empty
        chosen += found.held
    count = plural(chosen, "group") if _is_filtered(wanted) else plural(total, "group")
    return count + (" here" if services else " found" if _is_filtered(wanted) else "")


@page
def groups_csv(request: HttpRequest) -> HttpResponseBase:
    """The groups that match the filters of the list."""
    wanted, viewer = replace(wanted_groups(request), after=None, before=None), viewer_of(request)

    async def read(runtime: Runtime, after: str | None) -> tuple[Sequence[tuple[GroupSummary, reads.Also]], str | None]:
        return await reads.group_rows(runtime.db, viewer, wanted, after, MAX_LIMIT, assignors_of(runtime))

    hidden = None if viewer.topics.unlimited else HIDDEN_TOPICS
    columns = """
        group_id=of.group_id type=of.type assignor state=of.state @state_since=of.state_since
        generation=of.generation_id members=of.members partitions=of.partitions lag=of.lag
        unknown_partitions=of.unknown_partitions time_lag_ms time_lag_at_least_ms
        @lag_sampled_at=of.lag_sampled_at verdicts topics=of.topics coordinator
        @updated_at=of.updated_at owner labels counted
    """
    return csv_of(
        "groups", columns, ({"of": group, "also": also} for group, also in all_rows(read)),
        assignor=lambda row: row["also"].assignors.get(row["of"].pk),
        time_lag_ms=lambda row: cell(shown(row["of"].time_lag_ms, hidden=hidden)),
        time_lag_at_least_ms=lambda row: cell(shown(row["of"].time_lag_at_least_ms, hidden=hidden)),
        verdicts=lambda row: " ".join(kind for kind, _ in row["of"].verdicts),
        coordinator=lambda row: coordinator_of(row["of"].group_id, row["also"]),
        owner=lambda row: _labels(row["of"].labels)[0], labels=lambda row: _labels(row["of"].labels)[1],
        counted=viewer.topics_counted or ALL_TOPICS,
    )  # fmt: skip


def _labels(labels: Mapping[str, str]) -> tuple[str, str]:
    """The owner, and all labels as JSON."""
    owner = owner_of(labels)
    return owner.value if owner else "", json.dumps(dict(sorted(labels.items())), ensure_ascii=False) if labels else ""
