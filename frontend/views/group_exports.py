"""The tables of the pages around a group as CSV files, with all their rows: pins, lag by topic, events, a member's
partitions, what a simulation would move, and what a report says."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from frontend.archive.reports import group_lines
from frontend.history.reads import events_of
from frontend.member.presenters import lag_of, what_of
from frontend.member.reads import START, MemberPartition, partitions_from
from frontend.queries import handovers_of
from frontend.rows import Event, Millis
from frontend.shown import ALL_TOPICS
from frontend.timeline import lines
from frontend.viewer import viewer_of
from frontend.views.csv_pages import MOST_ROWS, all_rows, csv_file, parts
from frontend.views.events import wanted_events
from frontend.views.page import message, page, text
from frontend.views.reports import NoReport, asked_run, require_all_topics, without_report
from frontend.views.simulation import simulated
from frontend.wording import iso, iso_if_known
from groups.readmodel import unknown_group
from groups.simulation.rules import Simulation
from groups.simulation.service import Simulations
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.rest.paging import MAX_LIMIT
from offsets.lag.service import LagReads, TopicLag
from offsets.reports import Reports, ReportUnreadable
from offsets.retention.pins import Pin, PinService

if TYPE_CHECKING:
    from offsets.spark.report.reading import GroupReport

LONGEST_MEMBER_ID = 300


@page
def pins_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """The pins of a group, that of all topics first."""
    topics = viewer_of(request).topics

    async def read(runtime: Runtime, cursor: str | None) -> tuple[Sequence[Pin], str | None]:
        found = await runtime.get(PinService).pins(group_id, cursor=cursor, limit=MAX_LIMIT, visible=topics)
        return parts(found)

    rows = ((pin.topic, iso(pin.pinned_at), pin.pinned_by, pin.reason) for pin in all_rows(read))
    return csv_file(f"{group_id}-pins", ("topic", "pinned_at", "pinned_by", "reason"), rows)


@page
def lag_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """How far a group is behind on each topic, by name."""
    topics = viewer_of(request).topics

    async def read(runtime: Runtime, cursor: str | None) -> tuple[Sequence[TopicLag], str | None]:
        reads = runtime.get(LagReads)
        found = await reads.lag(group_id, partitions=False, cursor=cursor, limit=MAX_LIMIT, visible=topics)
        return found.topics, found.next_cursor

    head = (
        "topic", "partitions", "unknown_partitions", "lag", "time_lag_ms", "time_lag_at_least_ms", "watermark_at",
        "read", "deleted",
    )  # fmt: skip
    rows = (
        (
            one.topic, one.total.partitions, one.total.unknown_partitions, one.total.lag, one.total.time_lag.ms,
            one.total.time_lag.at_least_ms, iso_if_known(one.total.sampled_at), one.read, one.deleted,
        )
        for one in all_rows(read)
    )  # fmt: skip
    return csv_file(f"{group_id}-lag", head, rows)


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


@page
def events_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """The events of a group, newest first, with the filters of the page."""
    wanted, viewer = replace(wanted_events(request), before=None), viewer_of(request)

    async def read(runtime: Runtime, before: int | None) -> tuple[Sequence[Event], int | None]:
        found = await events_of(runtime.db, viewer, group_id, replace(wanted, before=before), MAX_LIMIT)
        if found.type is None and not found.events and before is None:
            raise unknown_group(group_id)
        return found.events, found.events[-1].id if found.more else None

    head = "id", "at", "kind", "generation", "member_id", "text", "reason"
    rows = (
        (one.id, iso(one.at), one.kind, one.generation_id, one.member_id, line.text, line.note)
        for one in all_rows(read)
        for line in lines([one])
    )
    return csv_file(f"{group_id}-events", head, rows)


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


@page
def simulated_members_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """All members of a simulation, with the parameters of its page."""
    head = "member_id", "before", "after", "gained", "lost", "is_new", "is_removed", "counted"
    counted = viewer_of(request).topics_counted or ALL_TOPICS
    return _simulation(
        request,
        group_id,
        "simulated-members",
        head,
        lambda found: (
            (one.member_id, one.before, one.after, one.gained, one.lost, one.is_new, one.is_removed, counted)
            for one in found.members
        ),
    )


@page
def simulated_moves_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """All partitions that change hands in a simulation, with the parameters of its page."""
    head = "topic", "partition", "owner", "new_owner"
    return _simulation(
        request,
        group_id,
        "simulated-moves",
        head,
        lambda found: ((one.topic, one.partition, one.owner, one.new_owner) for one in found.moves),
    )


def _simulation(
    request: HttpRequest,
    group_id: str,
    name: str,
    head: Sequence[str],
    rows_of: Callable[[Simulation], Iterator[Sequence[object]]],
) -> HttpResponseBase:
    names, _ = bridge.call(lambda runtime: runtime.get(Simulations).assignors(group_id))
    found, refusal = simulated(request, group_id, names)
    if found is None:
        return message(request, refusal.status, "No simulation", refusal.text)
    return csv_file(f"{group_id}-{name}", head, itertools.islice(rows_of(found), MOST_ROWS))


@page
def report_days_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """The days of a group in a report, newest first."""
    head = (
        "date", "commits", "records_consumed", "rewinds", "partitions", "rebalances", "causes", "new_generations",
        "seen_first", "seen_last",
    )  # fmt: skip
    return _report(
        request,
        group_id,
        "report-days",
        head,
        lambda found: (
            (
                line.date, line.day.commits, line.day.consumed, line.day.rewinds, line.day.partitions, line.rebalances,
                line.causes, line.day.generations, line.day.came, line.day.went,
            )
            for line in group_lines(found.days, found.totals.rebalances_since)
        ),
    )  # fmt: skip


@page
def report_members_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """The members of a group in a report, those seen last first."""
    head = "member_id", "first_commit_at", "last_commit_at", "commits", "generations"
    return _report(
        request,
        group_id,
        "report-members",
        head,
        lambda found: (
            (one.member_id, iso(one.first_commit_at), iso(one.last_commit_at), one.commits, one.generations)
            for one in found.members
        ),
    )


def _report(
    request: HttpRequest,
    group_id: str,
    name: str,
    head: Sequence[str],
    rows_of: Callable[[GroupReport], Iterator[Sequence[object]]],
) -> HttpResponseBase:
    require_all_topics(request)
    asked = text(request, "run") or None

    async def read(runtime: Runtime) -> GroupReport | None:
        reports = runtime.get(Reports)
        run = await asked_run(reports, asked) if asked else await reports.run()
        return await reports.of_group(run, group_id, days=MOST_ROWS, members=MOST_ROWS) if run else None

    try:
        found = bridge.call(read)
    except (NoReport, ReportUnreadable) as error:
        return without_report(request, error)
    if found is None:
        return without_report(request, NoReport())
    return csv_file(f"{group_id}-{name}", head, rows_of(found))
