"""The days of a run of report as plots. Pure: the result of the run in, drawings out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from frontend.offsets.plot import Plot, plot
from frontend.offsets.rows import Bucket

DAY_MS = 86_400_000
DRAWN = (("commits", "Commits a day"), ("consumed", "Records consumed a day"), ("rewinds", "Rewinds a day"))


@dataclass(frozen=True, slots=True)
class DayPlot:
    """One value by day. `first` and `last` are days; `total` is the sum."""

    name: str
    title: str
    plot: Plot
    first: str
    last: str
    total: int


def day_plots(result: Mapping[str, Any] | None) -> list[DayPlot]:
    """The plots of a report's totals by day; a day without commits counts 0."""
    days: Sequence[Mapping[str, Any]] = (result or {}).get("days") or ()
    if not days or not all(isinstance(day, Mapping) and "date" in day for day in days):
        return []
    by_date = {date.fromisoformat(day["date"]): day for day in days}
    first, last = min(by_date), max(by_date)
    slices = (last - first).days + 1
    begins = int(datetime.combine(first, datetime.min.time(), UTC).timestamp() * 1000)
    drawn = []
    for name, title in DRAWN:
        values = [by_date.get(date.fromordinal(first.toordinal() + n), {}).get(name) or 0 for n in range(slices)]
        buckets = [Bucket("", number, value, None) for number, value in enumerate(values)]
        picture = plot(buckets, slices, begins, begins + slices * DAY_MS)
        drawn.append(DayPlot(name, title, picture, first.isoformat(), last.isoformat(), sum(values)))
    return drawn
