"""The page of a group, of which each tab reads what the URL says, and the page of its states."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse

from frontend.pages.group import present as presenters
from frontend.pages.group import reads as queries
from frontend.pages.group.explained import explain, explain_consumer, next_timer
from frontend.pages.group.lag import BY_NAME as BY_RANGE
from frontend.pages.group.lag import DEFAULT_RANGE, RANGES, lag
from frontend.pages.group.look import PARTITIONS_SHOWN, look
from frontend.pages.group.machine import picture
from frontend.pages.group.map import focus_context, focus_of, read_colours, totals_of
from frontend.pages.group.reads import COMPARED, MOST_CELLS, GroupPage, Limits, handovers_of
from frontend.pages.group.tables import LAST_PAGE, PAGE_ROWS, Table
from frontend.ui.labels import MOST_SHOWN
from frontend.ui.labels import shown as shown_labels
from frontend.ui.page import Link, Pace, access_link, address, choice, choices_of, group_url, page, show, text
from frontend.ui.page import missing as no_group
from frontend.ui.shown import ALL_TOPICS
from frontend.ui.states import state
from frontend.ui.table import MOST_ROWS, all_rows, csv_file, csv_of, numbered, page_number, rows_of
from frontend.ui.tabs import tab_of, tab_urls
from frontend.ui.verdicts import lines as verdict_lines
from frontend.ui.viewer import (
    ALERT_RULE,
    DELETE_GROUP,
    DELETE_OFFSETS,
    HOLD,
    KICK,
    PLAN,
    Action,
    Need,
    action,
    missing,
    viewer_of,
)
from frontend.ui.wording import iso_if_known, joined
from groups.core.subscription import NONE as NO_TOPICS
from groups.readmodel import unknown_group
from kcoord.access.rights import Resource
from kcoord.database.paging import MAX_LIMIT
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from offsets.lag.service import LagReads, TopicLag
from offsets.readmodel import OffsetReads
from offsets.verdicts import summaries, thresholds

MEMBER_SORTS: Mapping[str, str] = {
    "": "As they joined",
    "client": "Client and host",
    "partitions": "Most partitions",
    "lag": "Furthest behind",
    "heartbeat": "Oldest heartbeat",
    "session": "Session ends first",
}
OFFSET_SORTS: Mapping[str, str] = {"": "Topic and partition", "lag": "Furthest behind", "committed": "Oldest commit"}
ONLY: Mapping[str, str] = {
    "": "All partitions",
    "unowned": "Without an owner",
    "lagging": "With records to read",
    "never": "Nothing committed",
}


def limits_of(request: HttpRequest, tab: str, limits: Limits) -> Limits:
    """What a tab reads: its own table, and of the others only what the head of the page says. Raises BadAddress."""
    if tab == "overview":
        return replace(limits, offsets=1)
    narrow = replace(limits, cells=1, offsets=1)
    if tab == "members":
        return replace(narrow, members=PAGE_ROWS, member_table=_member_table(request))
    if tab == "offsets":
        return replace(narrow, offsets=PAGE_ROWS, offset_table=_offset_table(request))
    return narrow


def _member_table(request: HttpRequest) -> Table:
    return Table(q=text(request, "q"), sort=choice(request, "sort", MEMBER_SORTS), page=page_number(request, LAST_PAGE))


def _offset_table(request: HttpRequest) -> Table:
    return Table(
        sort=choice(request, "sort", OFFSET_SORTS),
        page=page_number(request, LAST_PAGE),
        only=choice(request, "only", ONLY),
        member_id=text(request, "member"),
    )


def pages(request: HttpRequest, table: Table, shown: int, matching: int) -> Mapping[str, Any]:
    """Where a table is and what leads on: `first` and `last` are numbers of rows."""
    more = matching > table.skip + shown and table.page < LAST_PAGE
    bounds = {"first": table.skip + 1 if shown else 0, "last": table.skip + shown, "matching": matching}
    return {**bounds, **numbered(request, table.page, more)}


def context_of(request: HttpRequest, tab: str, limits: Limits, page: GroupPage, partitions: int) -> dict[str, Any]:
    """What the tabs add to the context of the page. `partitions`: how many the group has, for the tab of that name."""
    context: dict[str, Any] = {
        "tab": tab,
        "tab_urls": tab_urls(request, page.header.group_id),
        "tab_counts": {"members": page.counts.members, "offsets": partitions},
    }
    if tab == "members":
        table, shown = limits.member_table, len(page.members)
        context |= {"table": table, "sorts": MEMBER_SORTS.items()}
        context["pages"] = pages(request, table, shown, page.member_table.matching)
    elif tab == "offsets":
        table, shown, matching = limits.offset_table, len(page.offsets), page.offset_table.matching
        if matching is None:
            matching = shown if limits.q and shown < limits.offsets else page.totals.partitions
        context |= {"table": table, "sorts": OFFSET_SORTS.items(), "onlies": ONLY.items()}
        context["pages"] = pages(request, table, shown, matching)
    return context


def suggested_lag(lag: int | None) -> int:
    """From which lag on to alert, for a group that has this lag now: ten times as much, in two digits, or 1,000."""
    wanted = 10 * (lag or 0)
    size: int = 10 ** max(len(str(wanted)) - 2, 0)
    return max(-(-wanted // size) * size, 1_000)


SETTLED = ("Stable", "Empty", "Dead")
"""States in which nothing but heartbeats and commits happens without outside action."""
OVERVIEW_PARTITIONS = 10
"""Of a share group; the tab has more."""
LARGE = 2_000
"""Rendering a group with more members costs too much to do on every change."""
ONE_OFFSET = urlencode({"scope": "chosen", "strategy": "to-offset"})
"""The form of a reset to one offset, of a partition that is added as `p`."""
PANELS = ("handovers", "partitions")
"""Panels of a group that can be shown in full (`?show=members`)."""
MANY_HANDOVERS, MANY_TOPICS = 200, 60
"""The maximum number of rows even of a panel that is shown longer; the search finds the others."""


NO_OFFSETS = "A share group has no committed offsets."
NO_SIMULATION = "Members of a share group share partitions: there is nothing to simulate."


def _actions(request: HttpRequest, group_id: str, kind: str, lag: int | None) -> list[Action]:
    """What can be done to a group of a type, with what the account lacks for it. `lag` (records) None: not known."""
    here, viewer = group_url(group_id), viewer_of(request)
    rule = urlencode({"group": group_id, "lag": suggested_lag(lag)})

    def one(label: str, tail: str, need: Need | None = None, *, bad: bool = False, shares: str = "") -> Action:
        """`shares`: why it cannot be done to a share group."""
        if kind == "share" and shares:
            return Action(label, "", shares, bad)
        return action(viewer, label, f"{here}/{tail}", need, group_id, bad=bad)

    return [
        one("Labels…", "labels"),
        one("Simulate…", "simulate", shares=NO_SIMULATION),
        one("Snapshot for a ticket (Markdown)", "snapshot.md"),
        one("Snapshot (JSON)", "snapshot.json"),
        Action(*access_link(viewer, Resource.GROUP, group_id)),
        action(viewer, "Alert on this…", f"{reverse('frontend:create-alert-rule')}?{rule}", ALERT_RULE, group_id),
        one("Reset offsets…", "reset", PLAN),
        one("Hold…", "hold", HOLD),
        one("Pins…", "pins", shares=NO_OFFSETS),
        one("Delete offsets…", "delete-offsets", DELETE_OFFSETS, bad=True, shares=NO_OFFSETS),
        one("Delete group…", "delete", DELETE_GROUP, bad=True),
    ]


@page
def group_page(request: HttpRequest, group_id: str) -> HttpResponse:
    """One group in full."""
    shown = choices_of(request, "show", PANELS)
    drawn = BY_RANGE[choice(request, "range", BY_RANGE) or DEFAULT_RANGE.name]
    tab, wanted = tab_of(request), focus_of(request)
    limits = limits_of(request, tab, replace(_limits(shown), lag=drawn, q=text(request, "topic")))
    viewer = viewer_of(request)
    looked = bridge.call(lambda runtime: look(runtime, viewer, group_id, limits))
    if looked is None:
        return no_group(request, group_id)
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
    stale_ms, sample_ms = (settings.KCOORD.int(f"lag.{name}.ms") for name in ("stale", "sample.interval"))
    context |= lag(found.lag, subscribed, found.counts.members, stale_ms, sample_ms)
    context |= {
        "lag_range": limits.lag,
        "lag_ranges": [Link(one.label, address(request, range=one.name), one is limits.lag) for one in RANGES],
        "sample_every_ms": sample_ms,
        "pace": _pace(found.header.state, found.counts.members, found.totals.partitions, shown),
        "shown": shown,
        "settled": found.header.state in SETTLED,
        "q": limits.q,
        "searchable": bool(limits.q) or found.totals.topics > Limits().topics,
        "actions": _actions(request, group_id, found.header.type, found.totals.lag),
        "reset_missing": missing(viewer, PLAN, group_id),
        "hold_missing": missing(viewer, HOLD, group_id),
        "kick_missing": missing(viewer, KICK, group_id),
        "show_urls": {panel: address(request, show=(*shown, panel)) for panel in PANELS},
        "verdicts": verdict_lines(
            summaries(looked.verdicts),
            found.header.state,
            window_ms=thresholds(settings.KCOORD).flapping_window_ms,
            explained=True,
            names=context["names"],
            held=context["held"],
        ),
        "failed_parts": joined(looked.failed, len(looked.failed)) if looked.failed else "",
        "findings": looked.findings,
        **_labels(looked.labels, group_id),
        **_addresses(group_id, reports=viewer.topics.unlimited),
        "only_owners": settings.KCOORD.only_owners,
        "group_type": found.header.type,
    }
    if looked.share is not None:
        context |= looked.share.context(most=OVERVIEW_PARTITIONS if tab == "overview" else PARTITIONS_SHOWN)
    partitions = found.totals.partitions if looked.share is None else len(looked.share.offsets)
    context |= context_of(request, tab, limits, found, partitions)
    if looked.share is not None and context["items"]["dead"]:
        context["tab_counts"]["dead-letters"] = context["items"]["dead"]
    context |= focus_context(
        request,
        wanted,
        context["strips"],
        context["owners"],
        found.owners,
        many_owners=context["many_owners"],
        totals={} if limits.q else totals_of(found),
    )
    return show(request, "pages/group/group", context, section="groups", title=group_id)


def _addresses(group_id: str, *, reports: bool) -> dict[str, str]:
    """Of the pages about the group. `reports`: the person may see what the archive says about it."""
    here = group_url(group_id)
    return {
        "hold_url": f"{here}/hold",
        "reset_url": f"{here}/reset?{ONE_OFFSET}",
        "kick_url": f"{here}/kick",
        "findings_url": f"{reverse('frontend:findings')}?{urlencode({'group': group_id})}",
        "history_url": f"{here}/events",
        "rebalances_url": f"{here}/rebalances",
        "commits_url": f"{here}/commits",
        "report_url": f"{here}/report" if reports else "",
        "stream": f"{reverse('frontend:live')}?group={quote(group_id, safe='')}",
    }


def _labels(labels: Mapping[str, str], group_id: str) -> dict[str, Any]:
    """The labels in the head: the conventional ones and the first of the others."""
    found = shown_labels(labels)
    return {
        "labels": found[:MOST_SHOWN],
        "labels_more": max(len(found) - MOST_SHOWN, 0),
        "labels_url": f"{group_url(group_id)}/labels",
    }


def _limits(shown: tuple[str, ...]) -> Limits:
    limits = Limits()
    if "handovers" in shown:
        limits = replace(limits, handovers=MANY_HANDOVERS)
    if "partitions" in shown:
        limits = replace(limits, topics=MANY_TOPICS, cells=MOST_CELLS)
    return limits


def _pace(state_name: str, members: int, partitions: int, shown: tuple[str, ...]) -> Pace:
    if shown:
        return Pace(every_ms=30_000, gap_ms=5_000)
    settled = state_name in SETTLED
    if partitions > COMPARED:
        return Pace(every_ms=15_000 if settled else 10_000, gap_ms=5_000)
    if members > LARGE:
        return Pace(every_ms=10_000 if settled else 5_000, gap_ms=2_000)
    return Pace(every_ms=5_000 if settled else 2_000, gap_ms=250)


PACE = Pace(every_ms=5_000, gap_ms=250)


@page
def group_states(request: HttpRequest, group_id: str) -> HttpResponse:
    """The picture, and its transitions as tables."""
    viewer = viewer_of(request)
    found = bridge.call(lambda runtime: queries.group_page(runtime.db, viewer, group_id, Limits()))
    if found is None:
        return no_group(request, group_id)
    group, part = found.header, found.consumer
    drawn = None if group.type == "share" else picture(group.type, group.state)
    context = {
        "now": found.now,
        "pace": PACE,
        "stream": f"{reverse('frontend:live')}?group={quote(group_id, safe='')}",
        "group": group,
        "state": state(group.state, held=group.is_held(found.now)),
        "explanation": (part and explain_consumer(found, part)) or explain(found),
        "next_timer": next_timer(found),
        "picture": drawn,
        "narrow": picture(group.type, group.state, narrow=True) if drawn else None,
        "possible": [arrow for arrow in drawn.arrows if arrow.possible] if drawn else [],
        "members_hidden": found.members_hidden,
        "kind": group.type,
        "group_type": group.type,
    }
    return show(request, "pages/group/group_states", context, section="groups", title=f"States · {group_id}")


EVERYTHING = 10_000
"""Members of a file."""


@page
def members_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """The members of a group; what they own is in the file of its partitions."""
    limits = Limits(members=EVERYTHING, topics=1, cells=1, offsets=1, events=1, member_topics=1)
    viewer = viewer_of(request)
    found = bridge.call(lambda runtime: queries.group_page(runtime.db, viewer, group_id, limits))
    if found is None:
        raise unknown_group(group_id)
    columns = """
        member_id=of.member_id group_instance_id=of.instance_id client_id=of.client_id client_host=of.client_host
        partitions=of.owned member_epoch=of.member_epoch @last_heartbeat_at=of.last_heartbeat_at
        @session_expires_at=of.session_deadline lag=load.lag time_lag_ms=load.time_lag.ms
        time_lag_at_least_ms=load.time_lag.at_least_ms records_per_minute=load.rate
    """
    loads = found.member_table.loads
    rows = ({"of": member, "load": loads.get(member.member_id)} for member in found.members)
    return csv_of(f"{group_id}-members", columns, rows, counted=viewer.topics_counted or ALL_TOPICS)


@page
def offsets_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """The committed offsets of a group."""
    topics = viewer_of(request).topics
    columns = """
        topic partition owner committed_offset @committed_at log_start_offset log_end_offset lag
        @watermark_at=sampled_at @expires_at metadata
    """
    found = rows_of(
        lambda runtime, cursor: runtime.get(OffsetReads).committed(
            group_id, cursor=cursor, limit=MAX_LIMIT, visible=topics
        )
    )
    return csv_of(f"{group_id}-offsets", columns, found)


@page
def lag_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """How far a group is behind on each topic, by name."""
    topics = viewer_of(request).topics

    async def read(runtime: Runtime, cursor: str | None) -> tuple[Sequence[TopicLag], str | None]:
        reads = runtime.get(LagReads)
        found = await reads.lag(group_id, partitions=False, cursor=cursor, limit=MAX_LIMIT, visible=topics)
        return found.topics, found.next_cursor

    columns = """
        topic partitions=total.partitions unknown_partitions=total.unknown_partitions lag=total.lag
        time_lag_ms=total.time_lag.ms time_lag_at_least_ms=total.time_lag.at_least_ms @watermark_at=total.sampled_at
        read deleted
    """
    return csv_of(f"{group_id}-lag", columns, all_rows(read))


@page
def handovers_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """What is changing hands in a consumer group, a line for each partition."""
    viewer = viewer_of(request)
    found = bridge.call(lambda runtime: handovers_of(runtime.db, viewer, group_id, MOST_ROWS))
    if found is None:
        raise unknown_group(group_id)
    head = "topic", "partition", "holder", "heir", "was_told", "deadline"
    rows = (
        (one.topic, partition, one.holder, one.heir, one.told, iso_if_known(one.deadline))
        for one in found
        for partition in one.partitions
    )
    return csv_file(f"{group_id}-hand-overs", head, itertools.islice(rows, MOST_ROWS))
