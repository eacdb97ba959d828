"""The page of a topic: its partitions, and every group that owns or committed something there."""

from __future__ import annotations

from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from frontend.states import is_held, state
from frontend.topics.presenters import LEGEND, partition_rows, plots, rows
from frontend.topics.reads import GROUPS, PARTITIONS, TopicPage, topic_page
from frontend.verdicts.presenters import LOWER_END_REMEDY
from frontend.viewer import viewer_of
from frontend.views.groups import group_url
from frontend.views.page import access_link, address, message, number, page, show
from frontend.wording import plural
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
    return show(request, "topic", _context(request, found, first, skip), section="topics", title=f"{name} · Topics")


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
