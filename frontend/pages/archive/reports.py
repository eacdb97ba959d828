"""Reports from the archive: the groups and partitions of one run, and what the latest run says about a group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse

from frontend.ui import reads
from frontend.ui.chart import Chart, Point, Series, chart
from frontend.ui.page import Absent, address, choice, group_url, member_names, missing, page, show, text
from frontend.ui.reads import EventsOfSpan, Wanted, events_of
from frontend.ui.rows import Millis
from frontend.ui.table import MOST_ROWS, Column, all_rows, csv_of, files, numbered, page_number
from frontend.ui.viewer import Forbidden, require_all, viewer_of
from frontend.ui.wording import plural
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.resets.instants import clock
from offsets.core.days import DAY_MS
from offsets.runs.reports import Reports, ReportUnreadable
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

Day = Mapping[str, Any]
"""What is counted on a day, which is its `date`. `rebalances` None: not known."""


def _number(name: str, label: str = "", path: str = "", title: str = "", none: str = "") -> Column:
    return Column(name, label, number=True, path=path, title=title, none=none, form="number" if label else "text")


PER_SECOND = Column(
    "", "Records a second", number=True, path="consumed", title="The mean over the whole day", form="per_second"
)
DAYS = (
    Column("day", "Day", path="date"),
    _number("groups", "Groups"),
    _number("commits", "Commits"),
    _number("records_consumed", "Records consumed", "consumed"),
    PER_SECOND,
    _number("rewinds", "Rewinds"),
    _number("rebalances", "Rebalances", none="Events of groups do not reach back to this day"),
)
GROUP_DAYS = (
    Column("date", "Day"),
    _number("commits", "Commits"),
    _number("records_consumed", "Records consumed", "consumed"),
    PER_SECOND,
    _number("rewinds", "Rewinds"),
    _number("partitions", "Partitions"),
    Column(
        "rebalances", "Rebalances", number=True, title="By the events of the group", form="number", hint="causes",
        none="The events of the group do not reach back to this day",
    ),
    Column("causes"),
    _number(
        "new_generations", "New generations", "generations",
        "Generations, or member epochs, that committed for the first time: as many rebalances at least",
    ),
    _number("seen_first", "Seen first", "came", "Members that committed for the first time"),
    _number("seen_last", "Seen last", "went", "Members that committed for the last time"),
)  # fmt: skip
GROUPS = (
    Column("group_id", "Group", path="group_name", form="name", classes="group-cell", route="frontend:group-report"),
    _number("commits", "Commits"),
    _number("records_consumed", "Records consumed", "consumed"),
    _number("rewinds", "Rewinds"),
    _number("members", "Members"),
    _number("rebalances", "Rebalances", title="As far as the events of groups reach back"),
    *files("@rebalances_since @first_commit_at"),
    Column("last_commit_at", "Last commit", number=True, form="at", classes="whole"),
)
PARTITIONS = (
    Column("topic", "Topic", form="name", classes="group-cell"),
    Column("partition", "Partition", number=True),
    _number("records_consumed", "Records consumed", "consumed"),
    _number("commits", "Commits"),
    _number("groups", "Groups"),
)
MEMBERS = (
    Column("member_id", "Member", form="member"),
    Column("first_commit_at", "First commit", number=True, form="at"),
    Column("last_commit_at", "Last commit", number=True, form="at"),
    _number("commits", "Commits"),
    _number("generations", "Generations", title="Generations, or member epochs, in which it committed"),
)


@dataclass(frozen=True, slots=True)
class DayPlot:
    """One value per day. `first` and `last` are days; `total` is the sum; `note` says what the values exclude."""

    name: str
    title: str
    plot: Chart
    first: str
    last: str
    total: int
    note: str


def totals(result: Mapping[str, Any] | None) -> list[Day]:
    """The newest days in a run's result, oldest first; empty if the result has no such list."""
    days: Sequence[Any] = (result or {}).get("days") or ()
    if not all(isinstance(day, Mapping) and "date" in day for day in days):
        return []
    counts = ("groups", "commits", "consumed", "rewinds")
    return [
        {"date": day["date"], **{name: int(day.get(name) or 0) for name in counts}, "rebalances": day.get("rebalances")}
        for day in sorted(days, key=lambda day: str(day["date"]))[-MOST_DAYS:]
    ]


def day_plots(result: Mapping[str, Any] | None) -> list[DayPlot]:
    """The plots of a report's totals per day; a day without commits counts as 0."""
    by_date = {date.fromisoformat(day["date"]): day for day in totals(result)}
    since = (result or {}).get("rebalances_since")
    drawn = _drawn(by_date, DRAWN, day_of(since) if isinstance(since, int) else None)
    return [one for one in drawn if one.name != "rebalances" or isinstance(since, int)]


def group_days(days: Sequence[GroupDay], since: int) -> list[Day]:
    """The days of a group, newest first, with causes as text. `since` (ms): rebalances are known from then on."""
    begins = day_of(since)
    return [
        {**asdict(day), "causes": causes(day.causes)} | ({} if day.date >= begins else {"rebalances": None})
        for day in reversed(days)
    ]


def causes(counts: Mapping[str, int]) -> str:
    """Why rebalances began, most frequent first: `3× session expired, 1× member joined`."""
    found = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{count:,}× {cause.replace('_', ' ')}" for cause, count in found)


def day_of(at: int) -> date:
    """The UTC day of an instant (ms)."""
    return clock(at).date()


def _drawn(days: Mapping[date, Day], wanted: Mapping[str, str], since: date | None) -> list[DayPlot]:
    """One plot for each of the `wanted` values of days, all on the same time axis. `since`: for rebalances."""
    if not days:
        return []
    first, last = min(days), max(days)
    begin, end = _begins(first.toordinal()), _begins(last.toordinal() + 1)
    drawn = []
    for name, title in wanted.items():
        begins = max(first, since) if since and name == "rebalances" else first
        points = [
            Point(_begins(day) + DAY_MS // 2, days.get(date.fromordinal(day), {}).get(name) or 0)
            for day in range(begins.toordinal(), last.toordinal() + 1)
        ]
        plot = chart([Series(title, points)], first=begin, last=end, step_ms=DAY_MS, by_day=True)
        note = f"counted since {begins.isoformat()}" if begins > first else ""
        drawn.append(DayPlot(name, title, plot, str(first), str(last), sum(point.value for point in points), note))
    return drawn


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
NO_REPORT = "No such report", "There is no such report; the Archive page lists all runs.", "archive"
T = TypeVar("T")


def run_url(run_id: str) -> str:
    """The URL of a run's page."""
    return reverse("frontend:run", args=[run_id])


def report_parts(request: HttpRequest, run: SparkRun) -> dict[str, Any]:
    """What the page of a report run shows in addition to that of other runs."""
    if run.kind != "report" or run.state != "succeeded" or not viewer_of(request).sees_all:
        return {}
    parts: dict[str, Any] = {
        "plots": day_plots(run.result),
        "day_columns": DAYS,
        **_days(request, totals(run.result)[::-1]),
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
        parts |= {"group_columns": GROUPS, "groups": groups.groups, "all_groups": groups.total}
    return parts | {"partition_columns": PARTITIONS, "partitions": busiest, "all_partitions": partitions}


def _days(request: HttpRequest, days: Sequence[Day]) -> Mapping[str, Any]:
    """The table of days, the newest first."""
    shown = days if choice(request, "show", ("days",)) else days[:DAYS_SHOWN]
    url = address(request, show="days") if len(shown) < len(days) else ""
    return {"days": shown, "all_days": len(days), "all_days_url": url}


@page
def report_groups(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """The groups of a report, one page at a time. Totals of a report are of all groups and topics."""
    require_all(request, SEE_REPORT)
    wanted, number = wanted_report_groups(request), page_number(request, MOST_PAGES)

    async def read(runtime: Runtime) -> tuple[Millis, SparkRun, GroupsFound]:
        reports = runtime.get(Reports)
        run = await asked_run(reports, str(run_id))
        found = await groups_of(reports, run, wanted, (number - 1) * PAGE_SIZE, PAGE_SIZE)
        return await reads.now(runtime.db), run, found

    now, run, found = _readable(lambda: bridge.call(read))
    context = {
        "now": now,
        "run": run,
        "run_url": run_url(run.id),
        "columns": GROUPS,
        "groups": found.groups,
        "summary": plural(found.total, "group"),
        "sorts": list(SORTS.items()),
        "order": wanted.sort,
        "q": wanted.q,
        "idle": wanted.idle,
        "idle_days": _idle_days(run),
        "filtered": bool(wanted.q or wanted.idle),
        **numbered(request, number, number * PAGE_SIZE < found.total),
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
    number = page_number(request, MOST_PAGES)

    async def read(runtime: Runtime) -> tuple[Millis, SparkRun, int, list[PartitionTotals]]:
        reports = runtime.get(Reports)
        run = await asked_run(reports, str(run_id))
        total, found = await reports.partitions(run, first=(number - 1) * PAGE_SIZE, limit=PAGE_SIZE)
        return await reads.now(runtime.db), run, total, found

    now, run, total, found = _readable(lambda: bridge.call(read))
    context = {
        "now": now,
        "run": run,
        "run_url": run_url(run.id),
        "columns": PARTITIONS,
        "partitions": found,
        "summary": plural(total, "partition"),
        **numbered(request, number, number * PAGE_SIZE < total),
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

    run, found, events = _readable(lambda: bridge.call(read))
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
    together: Counter[str] = Counter()
    for day in found.days:
        together.update(day.causes)
    return {
        "plots": _drawn({day.date: asdict(day) for day in found.days}, OF_GROUP, day_of(since)),
        "causes": causes(together),
        "day_columns": GROUP_DAYS,
        **_days(request, group_days(found.days, since)),
        "member_columns": MEMBERS,
        "members": found.members,
        "names": member_names(viewer_of(request), group_id, {member.member_id for member in found.members}),
        "more_members": found.totals.members - len(found.members),
    }


def require_all_topics(request: HttpRequest) -> None:
    """Raise Forbidden unless the person sees every topic: the totals of a group are of all of them."""
    if not viewer_of(request).topics.unlimited:
        raise Forbidden("To see the report of a group, your account needs describe on every topic.")


def _readable(read: Callable[[], T]) -> T:
    """What is read of a report. Raises Absent."""
    try:
        return read()
    except ReportUnreadable as error:
        raise Absent("The report cannot be read", f"{error.detail}.", status=503) from error


async def asked_run(reports: Reports, run_id: str) -> SparkRun:
    """The run that the URL names. Raises Absent."""
    try:
        run = await reports.run(run_id)
    except RunRefused as refusal:
        if refusal.status == 404:
            raise Absent(*NO_REPORT) from refusal
        raise
    assert run is not None
    return run


def _idle_days(run: SparkRun) -> int:
    return int(run.parameters.get("idle_days", 7))


REPORT_ROWS = 10_000
"""Rows of a report that are read at once; each such page reads the report's files again."""


@page
def report_days_csv(request: HttpRequest, run_id: UUID) -> HttpResponseBase:
    """All days of a report, newest first."""
    require_all(request, SEE_REPORT)
    run = bridge.call(lambda runtime: asked_run(runtime.get(Reports), str(run_id)))
    return csv_of("report-days", DAYS, reversed(totals(run.result)))


@page
def report_groups_csv(request: HttpRequest, run_id: UUID) -> HttpResponseBase:
    """The groups of a report that match the filters of the page, in its order."""
    require_all(request, SEE_REPORT)
    wanted = wanted_report_groups(request)

    async def read(reports: Reports, run: SparkRun, first: int) -> tuple[int, Sequence[GroupTotals]]:
        found = await groups_of(reports, run, wanted, first, REPORT_ROWS)
        return found.total, found.groups

    return csv_of("report-groups", GROUPS, _rows(run_id, read))


@page
def report_partitions_csv(request: HttpRequest, run_id: UUID) -> HttpResponseBase:
    """The busiest partitions of a report."""
    require_all(request, SEE_REPORT)
    found = _rows(run_id, lambda reports, run, first: reports.partitions(run, first=first, limit=REPORT_ROWS))
    return csv_of("report-partitions", PARTITIONS, found)


def _rows(run_id: UUID, read: Callable[[Reports, SparkRun, int], Awaitable[tuple[int, Sequence[T]]]]) -> Iterator[T]:
    """The rows of a report, whose pages are numbered: it does not change. `read`: how many there are, and a page."""

    async def one(runtime: Runtime, first: int | None) -> tuple[Sequence[T], int | None]:
        reports, after = runtime.get(Reports), (first or 0) + REPORT_ROWS
        total, found = await read(reports, await asked_run(reports, str(run_id)), first or 0)
        return found, after if after < total else None

    return _readable(lambda: all_rows(one))


@page
def group_report_days_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """The days of a group in a report, newest first."""
    found = _report(request, group_id)
    return csv_of(f"{group_id}-report-days", GROUP_DAYS, group_days(found.days, found.totals.rebalances_since))


@page
def report_members_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """The members of a group in a report, those seen last first."""
    return csv_of(f"{group_id}-report-members", MEMBERS, _report(request, group_id).members)


def _report(request: HttpRequest, group_id: str) -> GroupReport:
    """All that a report says about a group. Raises Absent."""
    require_all_topics(request)
    asked = text(request, "run") or None

    async def read(runtime: Runtime) -> GroupReport | None:
        reports = runtime.get(Reports)
        run = await asked_run(reports, asked) if asked else await reports.run()
        return await reports.of_group(run, group_id, days=MOST_ROWS, members=MOST_ROWS) if run else None

    found = _readable(lambda: bridge.call(read))
    if found is None:
        raise Absent(*NO_REPORT)
    return found
