"""The tables of the archive's pages as CSV files: runs, findings of reconcile, and what a report has."""

from __future__ import annotations

import json
from collections.abc import Sequence
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase

from frontend.allowed import SEE_RUNS, require, require_all
from frontend.archive.reports import totals
from frontend.viewer import viewer_of
from frontend.views.archive import no_run, wanted_findings
from frontend.views.csv_pages import all_rows, csv_file, parts
from frontend.views.page import choice, page, text
from frontend.views.reports import (
    SEE_REPORT,
    NoReport,
    asked_run,
    groups_of,
    wanted_report_groups,
    without_report,
)
from frontend.wording import iso, iso_if_known
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError
from kcoord.rest.paging import MAX_LIMIT
from offsets.reports import Reports, ReportUnreadable
from offsets.runs.findings import Finding, FindingReads
from offsets.runs.service import KINDS, SparkRun, SparkRuns

REPORT_ROWS = 10_000
"""Rows of a report that are read at once; each such page reads the report's files again."""


@page
def runs_csv(request: HttpRequest) -> HttpResponseBase:
    """All runs, newest first, of the kind that the page shows."""
    require(request, SEE_RUNS)
    kind = choice(request, "kind", KINDS) or None

    async def read(runtime: Runtime, cursor: str | None) -> tuple[Sequence[SparkRun], str | None]:
        return parts(await runtime.get(SparkRuns).runs(kind=kind, cursor=cursor, limit=MAX_LIMIT))

    head = (
        "run_id", "kind", "state", "requested_at", "requested_by", "started_at", "ended_at", "rows", "days", "files",
        "bytes", "findings", "error",
    )  # fmt: skip
    rows = (
        (
            run.id, run.kind, run.state, iso(run.requested_at), run.requested_by, iso_if_known(run.started_at),
            iso_if_known(run.ended_at), run.rows, run.days, run.files, run.bytes, run.findings, run.error,
        )
        for run in all_rows(read)
    )  # fmt: skip
    return csv_file("runs", head, rows)


@page
def report_days_csv(request: HttpRequest, run_id: UUID) -> HttpResponseBase:
    """All days of a report, newest first."""
    require_all(request, SEE_REPORT)
    try:
        run = bridge.call(lambda runtime: asked_run(runtime.get(Reports), str(run_id)))
    except NoReport as error:
        return without_report(request, error)
    head = "day", "groups", "commits", "records_consumed", "rewinds", "rebalances"
    days = reversed(totals(run.result))
    rows = ((day.date, day.groups, day.commits, day.consumed, day.rewinds, day.rebalances) for day in days)
    return csv_file("report-days", head, rows)


@page
def findings_csv(request: HttpRequest) -> HttpResponseBase:
    """The findings of a run that match the filters of the page."""
    wanted, run_id, seen_by = wanted_findings(request), text(request, "run") or None, viewer_of(request).seen_by

    async def read(runtime: Runtime, cursor: str | None) -> tuple[Sequence[Finding], str | None]:
        reads = runtime.get(FindingReads)
        # A cursor names its run: the file has the findings of one, whatever succeeds meanwhile.
        named = None if cursor else run_id
        _, found = await reads.findings(wanted, run_id=named, cursor=cursor, limit=MAX_LIMIT, seen_by=seen_by)
        return found.items, found.next_cursor

    head = "number", "kind", "group_id", "topic", "partition", "expected", "found", "evidence"
    try:
        found = all_rows(read)
    except ProtocolError as error:
        if getattr(error, "status", 0) == 404:
            return no_run(request)
        raise
    rows = (
        (
            one.number, one.kind, one.group_id, one.topic, one.partition, one.expected, one.found,
            json.dumps(dict(one.evidence)),
        )
        for one in found
    )  # fmt: skip
    return csv_file("findings", head, rows)


@page
def report_groups_csv(request: HttpRequest, run_id: UUID) -> HttpResponseBase:
    """The groups of a report that match the filters of the page, in its order."""
    require_all(request, SEE_REPORT)
    wanted = wanted_report_groups(request)

    async def read(runtime: Runtime, first: int | None) -> tuple[Sequence[Sequence[object]], int | None]:
        reports = runtime.get(Reports)
        found = await groups_of(reports, await asked_run(reports, str(run_id)), wanted, first or 0, REPORT_ROWS)
        rows = [
            (
                one.group_name, one.commits, one.consumed, one.rewinds, one.members, one.rebalances,
                iso_if_known(one.rebalances_since), iso_if_known(one.first_commit_at), iso_if_known(one.last_commit_at),
            )
            for one in (found.groups if found else ())
        ]  # fmt: skip
        return rows, _after(first or 0, found.total if found else 0)

    head = (
        "group_id", "commits", "records_consumed", "rewinds", "members", "rebalances", "rebalances_since",
        "first_commit_at", "last_commit_at",
    )  # fmt: skip
    try:
        return csv_file("report-groups", head, all_rows(read))
    except (NoReport, ReportUnreadable) as error:
        return without_report(request, error)


@page
def report_partitions_csv(request: HttpRequest, run_id: UUID) -> HttpResponseBase:
    """The busiest partitions of a report."""
    require_all(request, SEE_REPORT)

    async def read(runtime: Runtime, first: int | None) -> tuple[Sequence[Sequence[object]], int | None]:
        reports = runtime.get(Reports)
        run = await asked_run(reports, str(run_id))
        total, found = await reports.partitions(run, first=first or 0, limit=REPORT_ROWS)
        rows = [(one.topic, one.partition, one.consumed, one.commits, one.groups) for one in found]
        return rows, _after(first or 0, total)

    head = "topic", "partition", "records_consumed", "commits", "groups"
    try:
        return csv_file("report-partitions", head, all_rows(read))
    except (NoReport, ReportUnreadable) as error:
        return without_report(request, error)


def _after(first: int, total: int) -> int | None:
    """Where the next page begins: reports do not change, so their pages are numbered."""
    return first + REPORT_ROWS if first + REPORT_ROWS < total else None
