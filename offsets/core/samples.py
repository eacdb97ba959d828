"""The end of a log over time: the instant of an offset, the offset of an instant, and which samples are kept.

A sample says that the log of a partition ended at one offset from `at` until `until`. Between two samples the end is
taken to have moved evenly. A log that ends earlier than before was truncated: the records above are gone, and records
that have these offsets now were written later.

Differs from Kafka: no log with timestamps can be searched, so instants and offsets are interpolated; they are exact
where a sample was taken, and between two samples they are off by less than the time between them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from offsets.core.types import Millis

MINUTE_MS: Millis = 60_000
HOUR_MS: Millis = 60 * MINUTE_MS
DAY_MS: Millis = 24 * HOUR_MS


@dataclass(frozen=True, slots=True)
class Sample:
    """The log ended at `log_end_offset`, the offset after its last, from `at` until `until` (both ms, inclusive).

    `log_start_offset` is where it began at `until`.
    """

    at: Millis
    until: Millis
    log_start_offset: int
    log_end_offset: int


@dataclass(frozen=True, slots=True)
class TimeLag:
    """The age of the oldest unread record.

    Both None: unknown. `ms` None with `at_least_ms`: it is older than the oldest sample.
    """

    ms: Millis | None = None
    at_least_ms: Millis | None = None


NOT_KNOWN = TimeLag()


def end_was_at(samples: Sequence[Sample], offset: int) -> Millis | None:
    """The last instant at which the log ended at `offset` or before: the record at `offset` was written then.

    `samples` of one partition by time. None without samples, or if they do not reach back that far; the last
    instant of all if the log has not grown beyond `offset`.
    """
    for position in range(len(samples) - 1, -1, -1):
        before = samples[position]
        if before.log_end_offset > offset:
            continue
        if position == len(samples) - 1:
            return before.until
        after = samples[position + 1]
        moved = after.log_end_offset - before.log_end_offset
        return before.until + (offset - before.log_end_offset) * (after.at - before.until) // moved
    return None


def time_lag(samples: Sequence[Sample], offset: int, now: Millis) -> TimeLag:
    """The age of the record at `offset`, the next to read; 0 if the log ends at `offset` or before.

    `samples` of one partition by time, the last of them the latest known. It is never negative, grows with `now`, and
    does not grow while there is nothing to read.
    """
    if not samples:
        return NOT_KNOWN
    if samples[-1].log_end_offset <= offset:
        return TimeLag(0)
    written = end_was_at(samples, offset)
    if written is None:
        return TimeLag(at_least_ms=max(now - samples[0].at, 0))
    return TimeLag(max(now - written, 0))


def offset_at(samples: Sequence[Sample], at_ms: Millis) -> int | None:
    """The first offset that was written at `at_ms` or after.

    `samples` of one partition by time. After the last sample it is the end of the log at that sample, just as Kafka's
    tool falls back to the end of the log. None without samples, or if they do not reach back to `at_ms`, unless
    everything that the log still had at the last sample was written after the first. It may lie below the start of the
    log: what was written then may have been deleted since.

    Differs from Kafka: the offset is interpolated between samples, see the module docstring.
    """
    if not samples:
        return None
    first, last = samples[0], samples[-1]
    if at_ms < first.at:
        found = min(sample.log_end_offset for sample in samples)
        return found if found <= last.log_start_offset else None
    position = bisect_right(samples, at_ms, key=lambda sample: sample.at) - 1
    rest = samples[position + 1 :]
    found = _end_at(samples[position], rest[0] if rest else None, at_ms)
    return min([found, *(sample.log_end_offset for sample in rest)])


def _end_at(before: Sample, after: Sample | None, at_ms: Millis) -> int:
    """The end of the log at an instant no earlier than `before`, rounded up to a whole offset."""
    if after is None or at_ms <= before.until:
        return before.log_end_offset
    moved, took = after.log_end_offset - before.log_end_offset, after.at - before.until
    return before.log_end_offset - (-(at_ms - before.until) * moved // took)


@dataclass(frozen=True, slots=True)
class Tier:
    """Samples older than `age_ms` are thinned to the first and the last of every `step_ms`."""

    age_ms: Millis
    step_ms: Millis

    def ends(self, now: Millis) -> Millis:
        """Samples older than this instant belong to the tier; a step is never split between tiers."""
        return (now - self.age_ms) // self.step_ms * self.step_ms


TIERS = (Tier(3 * HOUR_MS, 15 * MINUTE_MS), Tier(DAY_MS, HOUR_MS))
"""Everything for three hours, then quarters of an hour for a day, then hours. A step divides the one after it."""


@dataclass(frozen=True, slots=True)
class Thinned:
    """A step in which samples are dropped: from `first` to before `last`. `kept`, `dropped`: instants of samples."""

    first: Millis
    last: Millis
    kept: tuple[Millis, Millis]
    dropped: tuple[Millis, ...]


def thinned(instants: Iterable[Millis], now: Millis) -> list[Thinned]:
    """The steps in which samples of these instants are dropped, besides those past the maximum age.

    The first and the last of a step stay, so that what is interpolated without the others is off by less than a step.
    """
    steps: dict[tuple[Millis, Millis], list[Millis]] = {}
    for instant in sorted(set(instants)):
        step_ms = next((tier.step_ms for tier in reversed(TIERS) if instant < tier.ends(now)), None)
        if step_ms is not None:
            steps.setdefault((step_ms, instant // step_ms), []).append(instant)
    return [
        Thinned(slot * step_ms, (slot + 1) * step_ms, (members[0], members[-1]), tuple(members[1:-1]))
        for (step_ms, slot), members in steps.items()
        if len(members) > 2
    ]


def surplus(instants: Iterable[Millis], now: Millis) -> list[Millis]:
    """Those of these instants whose samples are dropped, as `thinned` says."""
    return [instant for step in thinned(instants, now) for instant in step.dropped]
