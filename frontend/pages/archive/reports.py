"""Reports from the archive: the groups and partitions of one run, and what the latest run says about a group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse

from frontend.ui import reads
from frontend.ui.chart import Chart, Point, Series, chart
from frontend.ui.page import BadAddress, address, choice, group_url, member_names, message, missing, page, show, text
from frontend.ui.reads import EventsOfSpan, Wanted, events_of
from frontend.ui.rows import Millis
from frontend.ui.table import MOST_ROWS, all_rows, csv_of
from frontend.ui.viewer import Forbidden, require_all, viewer_of
from frontend.ui.wording import number, plural
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.resets.instants import clock
from offsets.core.days import DAY_MS
from offsets.reports import Reports, ReportUnreadable
from offsets.runs.service import RunRefused, SparkRun

if TYPE_CHECKING:
    from offsets.spark.report.reading import GroupDay, GroupReport, GroupsFound, GroupTotals, PartitionTotals


DRAWN = {
    "commits": "Commits a day",
    "consumed": "Records consumed a day",
    "rewinds": "Rewinds a day",
    "rebalances": "Rebalances a day",
}
OF_GROUP = {**DRAWN, "came": "Members seen first a day", "went": "Members seen last a day"}
DAYS_SHOWN = 14
"""Days in the tables below the plots, unless all are requested."""
MOST_DAYS = 366

EPOCH = date(1970, 1, 1).toordinal()
NOTHING = chart([], first=0, last=1, step_ms=DAY_MS, by_day=True)


@dataclass(frozen=True, slots=True)
class DayPlot:
    """One value per day. `first` and `last` are days; `total` is the sum; `note` says what the values exclude."""

    name: str
    title: str
    plot: Chart
    first: str
    last: str
    total: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Day:
    """A day in the table of totals. `rebalances` None: unknown."""

    date: str
    groups: int
    commits: int
    consumed: int
    rewinds: int
    rebalances: int | None

    @property
    def rate(self) -> str:
        """Records per second, averaged over the whole day."""
        return rate(self.consumed)


@dataclass(frozen=True, slots=True)
class GroupDayLine:
    """A day of a group in its table. `rebalances` None: events do not go back that far; `causes` as text."""

    day: GroupDay
    date: str
    rate: str
    rebalances: int | None
    causes: str


def rate(consumed: int) -> str:
    """Records per second, given the records of one day: `1,234`, `12.3`, `0.05`, `< 0.01`, `0`."""
    found = consumed / (DAY_MS / 1000)
    if found >= 100:
        return number(round(found))
    if found >= 10:
        return f"{found:.1f}"
    if found >= 0.01:
        return f"{found:.2f}"
    return "< 0.01" if consumed else "0"


def totals(result: Mapping[str, Any] | None) -> list[Day]:
    """The newest days in a run's result, oldest first; empty if the result has no such list."""
    days: Sequence[Any] = (result or {}).get("days") or ()
    if not all(isinstance(day, Mapping) and "date" in day for day in days):
        return []

    def number_of(day: Mapping[str, Any], name: str) -> int:
        return int(day.get(name) or 0)

    return [
        Day(
            date=day["date"],
            groups=number_of(day, "groups"),
            commits=number_of(day, "commits"),
            consumed=number_of(day, "consumed"),
            rewinds=number_of(day, "rewinds"),
            rebalances=day.get("rebalances"),
        )
        for day in sorted(days, key=lambda day: str(day["date"]))[-MOST_DAYS:]
    ]


def day_plots(result: Mapping[str, Any] | None) -> list[DayPlot]:
    """The plots of a report's totals per day; a day without commits counts as 0."""
    by_date = {date.fromisoformat(day.date): day for day in totals(result)}
    since = (result or {}).get("rebalances_since")
    drawn = _drawn(by_date, DRAWN, day_of(since) if isinstance(since, int) else None)
    return [one for one in drawn if one.name != "rebalances" or isinstance(since, int)]


def group_plots(days: Sequence[GroupDay], since: int) -> list[DayPlot]:
    """The plots of one group. `since` (ms): rebalances are known from this instant on."""
    return _drawn({day.date: day for day in days}, OF_GROUP, day_of(since))


def group_lines(days: Sequence[GroupDay], since: int) -> list[GroupDayLine]:
    """The days of a group for its table, newest first."""
    begins = day_of(since)
    return [
        GroupDayLine(
            day,
            day.date.isoformat(),
            rate(day.consumed),
            day.rebalances if day.date >= begins else None,
            causes(day.causes),
        )
        for day in reversed(days)
    ]


def causes(counts: Mapping[str, int]) -> str:
    """Why rebalances began, most frequent first: `3× session expired, 1× member joined`."""
    found = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{count:,}× {cause.replace('_', ' ')}" for cause, count in found)


def all_causes(days: Sequence[GroupDay]) -> str:
    """The combined `causes` of several days."""
    together: dict[str, int] = {}
    for day in days:
        for cause, count in day.causes.items():
            together[cause] = together.get(cause, 0) + count
    return causes(together)


def day_of(at: int) -> date:
    """The UTC day of an instant (ms)."""
    return clock(at).date()


def _drawn(days: Mapping[date, object], wanted: Mapping[str, str], since: date | None) -> list[DayPlot]:
    """One plot for each of the `wanted` attributes of days, all on the same time axis. `since`: for rebalances."""
    if not days:
        return []
    first, last = min(days), max(days)
    drawn = []
    for name, title in wanted.items():
        begins = max(first, since) if since and name == "rebalances" else first
        note = f"counted since {begins.isoformat()}" if begins > first else ""
        drawn.append(_one(days, first, last, begins, DayPlot(name, title, NOTHING, str(first), str(last), 0, note)))
    return drawn


def _one(days: Mapping[date, object], first: date, last: date, begins: date, empty: DayPlot) -> DayPlot:
    noon = DAY_MS // 2
    points = [
        Point(_begins(day) + noon, getattr(days.get(date.fromordinal(day)), empty.name, 0) or 0)
        for day in range(begins.toordinal(), last.toordinal() + 1)
    ]
    end = _begins(last.toordinal() + 1)
    series, begin = [Series(empty.title, points)], _begins(first.toordinal())
    picture = chart(series, first=begin, last=end, step_ms=DAY_MS, by_day=True)
    return replace(empty, plot=picture, total=sum(point.value for point in points))


def _begins(day: int) -> int:
    """When a day begins (ms), given by its ordinal."""
    return (day - EPOCH) * DAY_MS


PAGE_SIZE = 50
SEE_REPORT = "see a report on all groups"
BUSIEST = 10
"""Groups and partitions shown on the page of the run itself."""
SORTS = {
    "consumed": "Records consumed",
    "commits": "Commits",
    "rewinds": "Rewinds",
    "rebalances": "Rebalances",
    "idle": "Longest idle",
    "name": "Name",
}
"""The same as `offsets.spark.report.reading.SORTS`, the first is the default; a test compares the names."""
MOST_PAGES = 100_000


@dataclass(frozen=True, slots=True)
class GroupLine:
    """A group of a report."""

    group: GroupTotals
    url: str


def run_url(run_id: str) -> str:
    """The URL of a run's page."""
    return reverse("frontend:run", args=[run_id])


def report_parts(request: HttpRequest, run: SparkRun) -> dict[str, Any]:
    """What the page of a report run shows in addition to that of other runs."""
    if run.kind != "report" or run.state != "succeeded" or not viewer_of(request).sees_all:
        return {}
    days = totals(run.result)[::-1]
    shown = days if choice(request, "show", ("days",)) else days[:DAYS_SHOWN]
    parts: dict[str, Any] = {
        "plots": day_plots(run.result),
        "days": shown,
        "all_days": len(days),
        "all_days_url": address(request, show="days") if len(shown) < len(days) else "",
        "rebalances_since": (run.result or {}).get("rebalances_since"),
        "groups_url": f"{run_url(run.id)}/groups",
        "partitions_url": f"{run_url(run.id)}/partitions",
    }

    async def read(runtime: Runtime) -> tuple[GroupsFound | None, tuple[int, list[PartitionTotals]]]:
        reports = runtime.get(Reports)
        return await reports.groups(run, sort="consumed", limit=BUSIEST), await reports.partitions(run, limit=BUSIEST)

    try:
        groups, (partitions, busiest) = bridge.call(read)
    except ReportUnreadable as error:
        return parts | {"unreadable": error.detail}
    if groups is not None:
        parts |= {"group_lines": [_line(group, run) for group in groups.groups], "all_groups": groups.total}
    return parts | {"partitions": busiest, "all_partitions": partitions}


def _line(group: GroupTotals, run: SparkRun) -> GroupLine:
    return GroupLine(group, f"{group_url(group.group_name)}/report?run={run.id}")


@page
def report_groups(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """The groups of a report, one page at a time. Totals of a report are of all groups and topics."""
    require_all(request, SEE_REPORT)
    wanted, number = wanted_report_groups(request), _page(request)

    async def read(runtime: Runtime) -> tuple[Millis, SparkRun, GroupsFound]:
        reports = runtime.get(Reports)
        run = await asked_run(reports, str(run_id))
        found = await groups_of(reports, run, wanted, (number - 1) * PAGE_SIZE, PAGE_SIZE)
        return await reads.now(runtime.db), run, found

    try:
        now, run, found = bridge.call(read)
    except (NoReport, ReportUnreadable) as error:
        return without_report(request, error)
    context = {
        "now": now,
        "run": run,
        "run_url": run_url(run.id),
        "lines": [_line(group, run) for group in found.groups],
        "summary": plural(found.total, "group"),
        "sorts": list(SORTS.items()),
        "sort": wanted.sort,
        "q": wanted.q,
        "idle": wanted.idle,
        "idle_days": _idle_days(run),
        "filtered": bool(wanted.q or wanted.idle),
        **_edges(request, number, found.total),
    }
    return show(request, "pages/archive/report_groups", context, section="archive", title="Groups of the report")


@dataclass(frozen=True, slots=True)
class WantedGroups:
    """Which groups of a report to show. `idle`: only those that committed nothing in its last days."""

    sort: str
    q: str
    idle: str


def wanted_report_groups(request: HttpRequest) -> WantedGroups:
    """What the URL asks for. Raises BadAddress."""
    sort = choice(request, "sort", SORTS) or next(iter(SORTS))
    return WantedGroups(sort, text(request, "q"), choice(request, "idle", ("1",)))


async def groups_of(reports: Reports, run: SparkRun, wanted: WantedGroups, first: int, limit: int) -> GroupsFound:
    """A page of the groups of a report. Raises ReportUnreadable."""
    since = (run.started_at or run.requested_at) - _idle_days(run) * DAY_MS
    idle_before = since if wanted.idle else None
    return await reports.groups(run, sort=wanted.sort, q=wanted.q, idle_before=idle_before, first=first, limit=limit)


@page
def report_partitions(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """The busiest partitions of a report, one page at a time."""
    require_all(request, SEE_REPORT)
    number = _page(request)

    async def read(runtime: Runtime) -> tuple[Millis, SparkRun, int, list[PartitionTotals]]:
        reports = runtime.get(Reports)
        run = await asked_run(reports, str(run_id))
        total, found = await reports.partitions(run, first=(number - 1) * PAGE_SIZE, limit=PAGE_SIZE)
        return await reads.now(runtime.db), run, total, found

    try:
        now, run, total, found = bridge.call(read)
    except (NoReport, ReportUnreadable) as error:
        return without_report(request, error)
    context = {
        "now": now,
        "run": run,
        "run_url": run_url(run.id),
        "partitions": found,
        "summary": plural(total, "partition"),
        **_edges(request, number, total),
    }
    return show(request, "pages/archive/report_partitions", context, section="archive", title="Busiest partitions")


@page
def group_report(request: HttpRequest, group_id: str) -> HttpResponse:
    """What a report, by default the latest, says about a group on all topics; it outlives the group."""
    require_all_topics(request)
    viewer = viewer_of(request)
    asked = text(request, "run") or None

    async def read(runtime: Runtime) -> tuple[SparkRun | None, GroupReport | None, EventsOfSpan]:
        reports = runtime.get(Reports)
        run = await asked_run(reports, asked) if asked else await reports.run()
        found = await reports.of_group(run, group_id) if run else None
        return run, found, await events_of(runtime.db, viewer, group_id, Wanted(), limit=1)

    try:
        run, found, events = bridge.call(read)
    except (NoReport, ReportUnreadable) as error:
        return without_report(request, error)
    if found is None and events.type is None and not events.events:
        return missing(request, group_id)
    context = {
        "now": events.now,
        "group_type": events.type,
        "run": run,
        "run_url": run_url(run.id) if run and viewer.sees_cluster else "",
        "query": f"?{urlencode({'run': asked})}" if asked else "",
        "commits_url": f"{group_url(group_id)}/commits",
        "totals": found and found.totals,
        **(_of_group(request, group_id, found) if found else {}),
    }
    return show(request, "pages/archive/group_report", context, section="groups", title=f"Report of {group_id}")


def _of_group(request: HttpRequest, group_id: str, found: GroupReport) -> Mapping[str, Any]:
    since = found.totals.rebalances_since
    lines = group_lines(found.days, since)
    shown = lines if choice(request, "show", ("days",)) else lines[:DAYS_SHOWN]
    return {
        "plots": group_plots(found.days, since),
        "causes": all_causes(found.days),
        "days": shown,
        "all_days": len(lines),
        "all_days_url": address(request, show="days") if len(shown) < len(lines) else "",
        "members": found.members,
        "names": member_names(viewer_of(request), group_id, {member.member_id for member in found.members}),
        "more_members": found.totals.members - len(found.members),
    }


def require_all_topics(request: HttpRequest) -> None:
    """Raise Forbidden unless the person sees every topic: the totals of a group are of all of them."""
    if not viewer_of(request).topics.unlimited:
        raise Forbidden("To see the report of a group, your account needs describe on every topic.")


class NoReport(Exception):
    """There is no successful report run of this id."""


async def asked_run(reports: Reports, run_id: str) -> SparkRun:
    """The run that the URL names. Raises NoReport."""
    try:
        run = await reports.run(run_id)
    except RunRefused as refusal:
        if refusal.status == 404:
            raise NoReport from refusal
        raise
    assert run is not None
    return run


def _idle_days(run: SparkRun) -> int:
    return int(run.parameters.get("idle_days", 7))


def without_report(request: HttpRequest, error: NoReport | ReportUnreadable) -> HttpResponse:
    """The page that says why there is no report to show."""
    if isinstance(error, ReportUnreadable):
        return message(request, 503, "The report cannot be read", f"{error.detail}.")
    return message(
        request, 404, "No such report", "There is no such report; the Archive page lists all runs.", "archive"
    )


def _page(request: HttpRequest) -> int:
    """The page number in the URL, from 1. Raises BadAddress."""
    written = text(request, "page") or "1"
    if not written.isascii() or not written.isdigit() or not 1 <= int(written[:9]) <= MOST_PAGES:
        raise BadAddress(f"page: {written!r} is not a page number.")
    return int(written)


def _edges(request: HttpRequest, number: int, total: int) -> dict[str, str | None]:
    """URLs of the previous and next page. A report does not change, so its pages are numbered."""
    return {
        "previous_url": address(request, page=str(number - 1) if number > 2 else None) if number > 1 else None,
        "next_url": address(request, page=str(number + 1)) if number * PAGE_SIZE < total else None,
    }


REPORT_ROWS = 10_000
"""Rows of a report that are read at once; each such page reads the report's files again."""


@page
def report_days_csv(request: HttpRequest, run_id: UUID) -> HttpResponseBase:
    """All days of a report, newest first."""
    require_all(request, SEE_REPORT)
    try:
        run = bridge.call(lambda runtime: asked_run(runtime.get(Reports), str(run_id)))
    except NoReport as error:
        return without_report(request, error)
    columns = "day=date groups commits records_consumed=consumed rewinds rebalances"
    return csv_of("report-days", columns, reversed(totals(run.result)))


@page
def report_groups_csv(request: HttpRequest, run_id: UUID) -> HttpResponseBase:
    """The groups of a report that match the filters of the page, in its order."""
    require_all(request, SEE_REPORT)
    wanted = wanted_report_groups(request)

    async def read(runtime: Runtime, first: int | None) -> tuple[Sequence[GroupTotals], int | None]:
        reports = runtime.get(Reports)
        found = await groups_of(reports, await asked_run(reports, str(run_id)), wanted, first or 0, REPORT_ROWS)
        return (found.groups, _after(first or 0, found.total)) if found else ((), None)

    columns = """
        group_id=group_name commits records_consumed=consumed rewinds members rebalances @rebalances_since
        @first_commit_at @last_commit_at
    """
    try:
        return csv_of("report-groups", columns, all_rows(read))
    except (NoReport, ReportUnreadable) as error:
        return without_report(request, error)


@page
def report_partitions_csv(request: HttpRequest, run_id: UUID) -> HttpResponseBase:
    """The busiest partitions of a report."""
    require_all(request, SEE_REPORT)

    async def read(runtime: Runtime, first: int | None) -> tuple[Sequence[PartitionTotals], int | None]:
        reports = runtime.get(Reports)
        run = await asked_run(reports, str(run_id))
        total, found = await reports.partitions(run, first=first or 0, limit=REPORT_ROWS)
        return found, _after(first or 0, total)

    columns = "topic partition records_consumed=consumed commits groups"
    try:
        return csv_of("report-partitions", columns, all_rows(read))
    except (NoReport, ReportUnreadable) as error:
        return without_report(request, error)


def _after(first: int, total: int) -> int | None:
    """Where the next page begins: reports do not change, so their pages are numbered."""
    return first + REPORT_ROWS if first + REPORT_ROWS < total else None


@page
def group_report_days_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """The days of a group in a report, newest first."""
    columns = """
        date commits=day.commits records_consumed=day.consumed rewinds=day.rewinds partitions=day.partitions rebalances
        causes new_generations=day.generations seen_first=day.came seen_last=day.went
    """
    return _report(
        request, group_id, "report-days", columns, lambda found: group_lines(found.days, found.totals.rebalances_since)
    )


@page
def report_members_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """The members of a group in a report, those seen last first."""
    columns = "member_id @first_commit_at @last_commit_at commits generations"
    return _report(request, group_id, "report-members", columns, lambda found: found.members)


def _report(
    request: HttpRequest, group_id: str, name: str, columns: str, rows_of: Callable[[GroupReport], Iterable[object]]
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
    return csv_of(f"{group_id}-{name}", columns, rows_of(found))
