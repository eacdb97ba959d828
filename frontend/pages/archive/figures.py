"""Reports as plots and table rows. Pure: takes what the run wrote, returns drawings and text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from frontend.ui.chart import Chart, Point, Series, chart
from frontend.ui.wording import number
from kcoord.resets.instants import clock
from offsets.core.days import DAY_MS

if TYPE_CHECKING:
    from offsets.spark.report.reading import GroupDay


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
