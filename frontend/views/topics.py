"""The list of topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from frontend.heads import Column, heads
from frontend.topics import listing
from frontend.topics.listing import Topic, TopicList, TopicSort, TopicTotal, Wanted, sorts_of
from frontend.topics.presenters import NO_WATERMARK, NOT_SAMPLED, NOTHING_COMMITTED
from frontend.viewer import Viewer, viewer_of
from frontend.views.groups import Pace, group_url
from frontend.views.page import BadAddress, address, choice, edges, page, show, text
from frontend.wording import plural
from kcoord.process import bridge
from kcoord.protocol.errors import Error, ProtocolError

S = TopicSort

GROUPS_SHOWN = 3

COLUMNS = (
    Column("topic", "Topic", S.NAME, S.NAME_DESCENDING),
    Column("partitions", "Partitions", S.PARTITIONS_DESCENDING, S.PARTITIONS, number=True),
    Column("read_by", "Read by", title="Groups that own partitions, and groups that committed offsets"),
    Column(
        "lag", "Lag", S.LAG_DESCENDING, S.LAG, number=True,
        title="Of all groups that committed an offset, as of the last sample, and of the group that is furthest behind",
    ),
    Column(
        "time_lag", "Time lag", S.TIME_LAG_DESCENDING, S.TIME_LAG, number=True,
        title="Of the group that is furthest behind in time",
    ),
    Column("watermarks", "Watermarks", number=True, title="Partitions whose log start and end somebody has pushed"),
    Column("created", "Created", S.CREATED_DESCENDING, S.CREATED, number=True),
)  # fmt: skip

SORTS = (
    (S.NAME, "Name"),
    (S.NAME_DESCENDING, "Name, from Z to A"),
    (S.LAG_DESCENDING, "Largest lag"),
    (S.LAG, "Smallest lag"),
    (S.TIME_LAG_DESCENDING, "Largest time lag"),
    (S.TIME_LAG, "Smallest time lag"),
    (S.PARTITIONS_DESCENDING, "Most partitions"),
    (S.PARTITIONS, "Fewest partitions"),
    (S.CREATED_DESCENDING, "Newest"),
    (S.CREATED, "Oldest"),
)
"""Every order, and what it is called."""


@dataclass(frozen=True, slots=True)
class TopicLine:
    """A topic in the list. `idle`: groups that own nothing of it, but have committed offsets. `stale`: a watermark is
    too old. `why` a lag is not known, if it is not."""

    topic: Topic
    groups: Sequence[tuple[str, str]]
    idle: Sequence[tuple[str, str]]
    more: int
    stale: bool
    total: TopicTotal | None
    why: str
    worst_url: str


@page
def topic_list(request: HttpRequest) -> HttpResponse:
    """All topics, one page at a time."""
    wanted, viewer = wanted_topics(request), viewer_of(request)
    found, stale_ms = _found(viewer, wanted), settings.KCOORD.int("lag.stale.ms")
    context = {
        "now": found.now,
        "q": wanted.q,
        "order": "" if wanted.sort is S.NAME else wanted.sort.value,
        "sorts": [("" if s is S.NAME else s.value, label) for s, label in SORTS if s in sorts_of(viewer)],
        "caption": dict(SORTS)[wanted.sort].lower(),
        "heads": heads(request, COLUMNS, wanted.sort, sorts_of(viewer), S.NAME),
        "summary": plural(found.total, "topic") + (" found" if wanted.q else ""),
        "lines": [_line(topic, found.totals.get(topic.name), found.now - stale_ms) for topic in found.topics],
        "stale_ms": stale_ms,
        "previous_url": address(request, before=found.previous, after=None) if found.previous else None,
        "next_url": address(request, after=found.next, before=None) if found.next else None,
        "stream": reverse("frontend:live"),
        # Lags are those of the last sample, which is not taken more often than this.
        "pace": Pace(every_ms=15_000, gap_ms=10_000),
    }
    return show(request, "topics", context, section="topics", title="Topics")


def wanted_topics(request: HttpRequest) -> Wanted:
    """What the URL of the list asks for. Raises BadAddress."""
    sort = S(choice(request, "sort", tuple(one.value for one in S)) or S.NAME.value)
    return Wanted(text(request, "q"), sort, *edges(request))


def _found(viewer: Viewer, wanted: Wanted) -> TopicList:
    try:
        return bridge.call(lambda runtime: listing.topic_list(runtime.db, viewer, wanted))
    except ProtocolError as error:
        if error.error is Error.INVALID_REQUEST:
            name = "after" if wanted.after else "before"
            raise BadAddress(f"{name}: no such page of the list; start again from the first.") from error
        raise


def _line(topic: Topic, total: TopicTotal | None, stale_before: int) -> TopicLine:
    owners = set(topic.groups)
    idle = [group_id for group_id in topic.committed if group_id not in owners]
    shown = topic.groups[:GROUPS_SHOWN]
    shown_idle = idle[: GROUPS_SHOWN - len(shown)]
    known = max(len(topic.groups) + len(idle), total.groups if total else 0)
    return TopicLine(
        topic,
        [(group_id, group_url(group_id)) for group_id in shown],
        [(group_id, group_url(group_id)) for group_id in shown_idle],
        known - len(shown) - len(shown_idle),
        topic.sampled_at is not None and topic.sampled_at < stale_before,
        total,
        NO_WATERMARK if total else NOT_SAMPLED if topic.committed else NOTHING_COMMITTED,
        group_url(total.worst_group) if total and total.worst_group else "",
    )
