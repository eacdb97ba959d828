"""The page of a member of a group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse

from frontend.pages.member.present import Concerns, concerns, gone, lag_of, present, what_of
from frontend.pages.member.reads import (
    EVENTS_SEARCHED,
    START,
    MemberPage,
    MemberPartition,
    member_page,
    partitions_from,
)
from frontend.ui.allowed import KICK, action
from frontend.ui.events import lines
from frontend.ui.page import Pace, cursor, cursor_address, group_url, is_panel, message, page, show, text
from frontend.ui.rows import Millis
from frontend.ui.table import all_rows, csv_file
from frontend.ui.viewer import Viewer, viewer_of
from frontend.ui.wording import iso_if_known, number
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.rest.paging import MAX_LIMIT
from offsets.verdicts.checks import thresholds


@page
def member(request: HttpRequest, group_id: str, member_id: str) -> HttpResponse:
    """One member; one that is gone, as far as events tell."""
    after = cursor(request, "after", str, int)
    start = (str(after[0]), int(after[1])) if after else START
    found, concern, viewer = None, None, viewer_of(request)
    if "\0" not in member_id:
        found, concern = bridge.call(lambda runtime: _look(runtime, viewer, group_id, member_id, start))
    if found is None or (found.present is None and not found.events and found.given_out is None):
        return _unknown(request, group_id, member_id)
    context: dict[str, Any] = {
        "now": found.now,
        "group": found.header,
        "held": found.header is not None and found.header.is_held(found.now),
        "member_id": member_id,
        "events": lines(found.events),
        "history_url": f"{group_url(group_id)}/events",
        "stream": f"{reverse('frontend:live')}?group={quote(group_id, safe='')}",
        "pace": Pace(every_ms=5_000, gap_ms=1_000),
    }
    if concern is None:
        context |= gone(found)
        # A page that is already open gets its panel with status 200: htmx would not show one with an error status.
        status, title = 200 if is_panel(request) else 404, f"{member_id} · {group_id}"
        return show(request, "pages/member/member", context, section="groups", status=status, title=title)
    kick = f"{group_url(group_id)}/kick?{urlencode({'member': member_id})}"
    context |= present(
        found,
        viewer,
        concern,
        stale_ms=settings.KCOORD.int("lag.stale.ms"),
        window_ms=thresholds(settings.KCOORD).flapping_window_ms,
    )
    context |= {"action": action(viewer, "Remove the member…", kick, KICK, group_id, bad=True)}
    context |= _pages(request, found, after is not None)
    title = f"{context['who'] or member_id} · {group_id}"
    return show(request, "pages/member/member", context, section="groups", title=title)


async def _look(
    runtime: Runtime, viewer: Viewer, group_id: str, member_id: str, after: tuple[str, int]
) -> tuple[MemberPage, Concerns | None]:
    found = await member_page(runtime.db, viewer, group_id, member_id, after)
    return found, await concerns(runtime, viewer, found)


def _pages(request: HttpRequest, found: MemberPage, further: bool) -> dict[str, str | None]:
    """Pages of its partitions lead on, and back to the first."""
    rows = found.present.partitions if found.present else ()
    more = found.present is not None and found.present.more
    return {
        "first_url": request.path if further else None,
        "next_url": cursor_address(request, "after", rows[-1].topic, rows[-1].partition) if more else None,
    }


def _unknown(request: HttpRequest, group_id: str, member_id: str) -> HttpResponse:
    text = (
        f"{group_id} has no member {member_id}, and none of the newest {number(EVENTS_SEARCHED)} events of the group"
        " names it."
    )
    return message(request, 404, "No such member", text)


LONGEST_MEMBER_ID = 300


@page
def member_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """The partitions that a member owns or is meant to have. Its id is passed in the query: it may contain a slash."""
    member_id, viewer = text(request, "member", LONGEST_MEMBER_ID), viewer_of(request)
    stale_ms = settings.KCOORD.int("lag.stale.ms")

    async def read(
        runtime: Runtime, after: tuple[str, int] | None
    ) -> tuple[Sequence[Sequence[object]], tuple[str, int] | None]:
        found = await partitions_from(runtime.db, viewer, group_id, member_id, after or START, MAX_LIMIT)
        if found is None:
            raise ProtocolError(Error.UNKNOWN_MEMBER_ID, f"{group_id} has no member {member_id}.")
        now, some, more = found
        return [_partition(row, now, stale_ms) for row in some], (some[-1].topic, some[-1].partition) if more else None

    head = (
        "topic", "partition", "owned", "change", "committed_offset", "committed_at", "log_start_offset",
        "log_end_offset", "lag", "time_lag_ms", "watermark_at",
    )  # fmt: skip
    return csv_file(f"{group_id}-partitions", head, all_rows(read))


def _partition(row: MemberPartition, now: Millis, stale_ms: Millis) -> Sequence[object]:
    lag = lag_of(row, now, stale_ms)
    return (
        row.topic, row.partition, row.held, what_of(row)[0], row.committed_offset, iso_if_known(row.commit_timestamp),
        row.log_start_offset, row.log_end_offset, lag.lag, lag.time_lag.ms, iso_if_known(row.sampled_at),
    )  # fmt: skip
