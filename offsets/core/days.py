"""Days of the journal: which partitions should exist. Days are UTC, counted from 1970-01-01.

Source: architecture.md 6 and 7.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, timedelta

from offsets.core.types import Millis

Day = int

DAY_MS: Millis = 86_400_000
DAYS_AHEAD = 3
"""How many days after today already have a partition: maintenance may fail for that long without consequences."""

SETTLED_AFTER_MS: Millis = 3_600_000
"""A day that ended this long ago gets no new lines: no transaction that began in it is still open."""

_PREFIX = "offset_commit_log_"
_NAME = re.compile(rf"{_PREFIX}(\d{{4}})(\d\d)(\d\d)", re.ASCII)
EPOCH = date(1970, 1, 1)


def day_of(instant: Millis) -> Day:
    """The day of an instant."""
    return instant // DAY_MS


def bounds(day: Day) -> tuple[Millis, Millis]:
    """The first instant of a day, and the first after it."""
    return day * DAY_MS, (day + 1) * DAY_MS


def partition_name(day: Day) -> str:
    """The name of a day's partition."""
    return f"{_PREFIX}{EPOCH + timedelta(days=day):%Y%m%d}"


def day_named(name: str) -> Day | None:
    """The day whose partition has this name; None for any other name."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    try:
        return (date(*map(int, match.groups())) - EPOCH).days
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Calendar:
    """What maintenance has to do at an instant `now` (ms), with the journal kept for `retention_days`."""

    now: Millis
    retention_days: int

    @property
    def today(self) -> Day:
        """The current day."""
        return day_of(self.now)

    @property
    def oldest(self) -> Day:
        """The oldest day to keep: its last line is younger than the retention."""
        return self.today - self.retention_days

    def to_make(self, there: Collection[Day], in_default: Collection[Day]) -> list[Day]:
        """Days that need a partition, the most urgent first: today and those ahead, then those in the default.

        `there`: days that have one; `in_default`: days of lines that found no partition of their own. A line from
        further ahead, which only a clock that was set back leaves, waits until its day is near.
        """
        last = self.today + DAYS_AHEAD
        ahead = set(range(self.today, last + 1))
        late = {day for day in in_default if self.oldest <= day <= last}
        return [*sorted(ahead - set(there)), *sorted(late - ahead - set(there))]

    def to_drop(self, there: Collection[Day]) -> list[Day]:
        """Days whose partition is to be dropped, the oldest first."""
        return sorted(day for day in there if day < self.oldest)

    def is_quiet(self, day: Day) -> bool:
        """No line of the day can be written now: it has not begun, or has long been over."""
        first, after = bounds(day)
        return self.now < first or self.now >= after + SETTLED_AFTER_MS


def day_number(written: str) -> int:
    """YYYY-MM-DD as days since 1970-01-01."""
    return (date.fromisoformat(written) - EPOCH).days


def written_day(day: int) -> str:
    """Days since 1970-01-01 as YYYY-MM-DD."""
    return (EPOCH + timedelta(days=day)).isoformat()
