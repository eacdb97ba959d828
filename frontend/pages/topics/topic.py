"""The page of a topic: its partitions, and every group that owns or committed something there."""

from __future__ import annotations

from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse

from frontend.pages.topics.present import LEGEND, partition_rows, plots, rows
from frontend.pages.topics.reads import (
    GROUPS,
    PARTITIONS,
    TopicPage,
    topic_groups_from,
    topic_page,
    topic_partitions_from,
)
from frontend.ui.page import access_link, address, group_url, message, number, page, show
from frontend.ui.states import is_held, state
from frontend.ui.table import all_rows, csv_of
from frontend.ui.verdicts import LOWER_END_REMEDY
from frontend.ui.viewer import viewer_of
from frontend.ui.wording import plural
from kcoord.access.rights import Resource
from kcoord.process import bridge

MOST_GROUPS = 100_000


@page
def topic(request: HttpRequest, name: str) -> HttpResponse:
    """A page of the topic's partitions and groups."""
    viewer = viewer_of(request)
    first = min(number(request, "partition") or 0, 2**31 - PARTITIONS - 1)
    skip = min(number(request, "skip") or 0, MOST_GROUPS)
    old_ms, found = settings.KCOORD.int("lag.stale.ms"), None
    if "\0" not in name:
        found = bridge.call(lambda runtime: topic_page(runtime.db, viewer, name, first, skip, old_ms))
    if found is None:
        return no_such_topic(request, name)
    return show(
        request, "pages/topics/topic", _context(request, found, first, skip), section="topics", title=f"{name} · Topics"
    )


def no_such_topic(request: HttpRequest, name: str) -> HttpResponse:
    """The answer where the topic does not exist, or is hidden from the viewer."""
    text = f"There is no topic “{name}”; it may have been deleted."
    return message(request, 404, "No such topic", text, "topics")


def _context(request: HttpRequest, found: TopicPage, first: int, skip: int) -> dict[str, object]:
    header = found.header
    total = found.groups[0].total if found.groups else None if skip else 0
    stale_ms = settings.KCOORD.int("lag.stale.ms")
    last = first + len(found.partitions) - 1
    rate_chart, growth_chart, drawn = plots(found)
    urls = [_group_url(group.group_id, header.name) for group in found.groups]
    heading = f"{first:,} to {last:,} of {header.partitions:,}" if header.partitions > PARTITIONS else ""
    return {
        "now": found.now,
        "topic": header,
        "remedy": LOWER_END_REMEDY,
        "labels": sorted(header.labels.items()),
        "stale_ms": stale_ms,
        "stale": header.oldest is not None and found.now - header.oldest > stale_ms,
        "stale_before": found.now - stale_ms,
        "partitions": found.partitions,
        "partition_rows": partition_rows(found, urls),
        "rate_chart": rate_chart,
        "growth_chart": growth_chart,
        "drawn": drawn,
        "which": heading,
        "rows": [
            (row, state(row.group.state, held=is_held(row.group.held_until, found.now))) for row in rows(found, urls)
        ],
        "groups": total,
        "group_list_url": f"{reverse('frontend:groups')}?{urlencode({'topic': header.name})}",
        "groups_from": skip + 1,
        "groups_to": skip + len(found.groups),
        "legend": LEGEND,
        "access": access_link(viewer_of(request), Resource.TOPIC, header.name),
        "summary": plural(header.partitions, "partition"),
        "previous_url": address(request, partition=str(max(first - PARTITIONS, 0))) if first > 0 else None,
        "next_url": address(request, partition=str(last + 1)) if last + 1 < header.partitions else None,
        "fewer_url": address(request, skip=str(max(skip - GROUPS, 0))) if skip > 0 else None,
        "more_url": address(request, skip=str(skip + GROUPS)) if skip + GROUPS < (total or 0) else None,
    }


def _group_url(group_id: str, name: str) -> str:
    return f"{group_url(group_id)}?{urlencode({'q': name})}"


@page
def topic_partitions_csv(request: HttpRequest, name: str) -> HttpResponseBase:
    """All partitions of a topic with their watermarks."""
    viewer = viewer_of(request)
    if not _exists(request, name):
        return no_such_topic(request, name)
    found = all_rows(lambda runtime, first: topic_partitions_from(runtime.db, viewer, name, first or 0))
    return csv_of(f"{name}-partitions", "partition log_start_offset log_end_offset @watermark_at=sampled_at", found)


@page
def topic_groups_csv(request: HttpRequest, name: str) -> HttpResponseBase:
    """All groups on a topic, by name, with their lag there as last sampled."""
    viewer = viewer_of(request)
    if not _exists(request, name):
        return no_such_topic(request, name)
    columns = """
        group_id type state lag largest_lag_of_a_partition=max_lag time_lag_ms @lag_sampled_at=sampled_at owned
        committed
    """
    found = all_rows(lambda runtime, after: topic_groups_from(runtime.db, viewer, name, after))
    return csv_of(f"{name}-groups", columns, found)


def _exists(request: HttpRequest, name: str) -> bool:
    viewer = viewer_of(request)
    if "\0" in name or not viewer.sees_topic(name):
        return False
    return bridge.call(lambda runtime: topic_partitions_from(runtime.db, viewer, name, 0, 1)) != ((), None)
