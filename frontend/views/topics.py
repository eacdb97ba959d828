"""The catalogue of topics."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from frontend import queries
from frontend.rows import Topic
from frontend.views.groups import group_url
from frontend.views.page import BadAddress, cursor, cursor_address, page, show, text
from frontend.wording import plural
from kcoord.process import bridge

GROUPS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class TopicLine:
    """A topic in the list."""

    topic: Topic
    groups: tuple[tuple[str, str], ...]
    more: int


@require_safe
@page
def topic_list(request: HttpRequest) -> HttpResponse:
    """All topics, one page at a time."""
    after, before = cursor(request, "after", str), cursor(request, "before", str)
    if after and before:
        raise BadAddress("after, before: use only one of them.")
    q = text(request, "q")
    found = bridge.call(
        lambda runtime: queries.topic_list(
            runtime.db, q, str(after[0]) if after else None, str(before[0]) if before else None
        )
    )
    context = {
        "now": found.now,
        "q": q,
        "summary": plural(found.total, "topic") + (" found" if q else ""),
        "lines": [_line(topic) for topic in found.topics],
        "previous_url": cursor_address(request, "before", found.previous) if found.previous else None,
        "next_url": cursor_address(request, "after", found.next) if found.next else None,
    }
    return show(request, "topics", context, section="topics")


def _line(topic: Topic) -> TopicLine:
    shown = tuple((group_id, group_url(group_id)) for group_id in topic.groups[:GROUPS_SHOWN])
    return TopicLine(topic, shown, len(topic.groups) - len(shown))
