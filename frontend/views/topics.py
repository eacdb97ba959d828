"""The catalogue of topics."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from frontend import queries
from frontend.rows import Topic
from frontend.viewer import viewer_of
from frontend.views.groups import group_url
from frontend.views.page import BadAddress, cursor, cursor_address, page, show, text
from frontend.wording import plural
from kcoord.process import bridge

GROUPS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class TopicLine:
    """A topic in the list. `idle`: groups that own nothing of it, but have committed offsets. `stale`: a watermark is
    too old."""

    topic: Topic
    groups: tuple[tuple[str, str], ...]
    idle: tuple[tuple[str, str], ...]
    more: int
    stale: bool


@require_safe
@page
def topic_list(request: HttpRequest) -> HttpResponse:
    """All topics, one page at a time."""
    after, before = cursor(request, "after", str), cursor(request, "before", str)
    if after and before:
        raise BadAddress("after, before: use only one of them.")
    q, viewer = text(request, "q"), viewer_of(request)
    found = bridge.call(
        lambda runtime: queries.topic_list(
            runtime.db, viewer, q, str(after[0]) if after else None, str(before[0]) if before else None
        )
    )
    context = {
        "now": found.now,
        "q": q,
        "summary": plural(found.total, "topic") + (" found" if q else ""),
        "lines": [_line(topic, found.now) for topic in found.topics],
        "previous_url": cursor_address(request, "before", found.previous) if found.previous else None,
        "next_url": cursor_address(request, "after", found.next) if found.next else None,
    }
    return show(request, "topics", context, section="topics")


def _line(topic: Topic, now: int) -> TopicLine:
    owners = set(topic.groups)
    idle = [group_id for group_id in topic.committed if group_id not in owners]
    shown = topic.groups[:GROUPS_SHOWN]
    shown_idle = idle[: GROUPS_SHOWN - len(shown)]
    return TopicLine(
        topic,
        tuple((group_id, group_url(group_id)) for group_id in shown),
        tuple((group_id, group_url(group_id)) for group_id in shown_idle),
        len(topic.groups) + len(idle) - len(shown) - len(shown_idle),
        topic.sampled_at is not None and now - topic.sampled_at > settings.KCOORD.int("lag.stale.ms"),
    )
