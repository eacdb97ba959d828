"""How long a group will take to catch up, from samples. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass

from frontend.offsets.rows import Millis
from frontend.wording import duration, number

SHORTEST_MS = 120_000
"""Samples of a shorter time say too little."""
MARGIN = 1.05
"""A group that reads at most this much faster than is written keeps pace: how fast it could read is not known."""


@dataclass(frozen=True, slots=True)
class Rate:
    """What samples say. None: they do not say it. `lag_change` and `written` in records, over `span_ms`.

    `measured` of `partitions` have a sample of their log from the beginning of that time.
    """

    span_ms: Millis | None
    lag_change: int | None
    written: int | None
    measured: int
    partitions: int


@dataclass(frozen=True, slots=True)
class CatchingUp:
    """`text`: how long it takes, or that it is not known; `why`: from what that follows."""

    text: str
    why: str


def catching_up(lag: int | None, rate: Rate | None) -> CatchingUp:
    """How long it takes from `lag` records behind, at the rate of the last hour."""
    if lag is None:
        return CatchingUp("not known", "The end of a log is not known.")
    if lag == 0:
        return CatchingUp("nothing to catch up", "The offsets are at the ends of the logs.")
    behind = f"{number(lag)} records behind"
    if rate is None or not rate.span_ms or rate.span_ms < SHORTEST_MS or rate.lag_change is None:
        return CatchingUp("not known", f"{behind}; there are too few samples of lag in the last hour.")
    if rate.written is None or rate.measured < rate.partitions:
        return CatchingUp("not known", f"{behind}; how much is written is not known for every partition.")
    seconds = rate.span_ms / 1_000
    read, written = (rate.written - rate.lag_change) / seconds, rate.written / seconds
    if read <= 0:
        return CatchingUp("not known", f"{behind}; the group has read nothing in the last hour.")
    rates = f"reading {_per_second(read)}, written {_per_second(written)}"
    if read <= written * MARGIN:
        least = duration(int(lag / read * 1_000))
        return CatchingUp(
            f"at least {least}",
            f"{behind}; {rates} in the last hour: the group keeps pace, so how much faster it can read is not known.",
        )
    return CatchingUp(f"about {duration(int(lag / (read - written) * 1_000))}", f"{behind}; {rates} in the last hour.")


def _per_second(rate: float) -> str:
    return f"{number(round(rate))}/s" if rate >= 10 or rate == 0 else f"{rate:.1f}/s"
