"""A token bucket. Pure: callers pass the time.

Source: KIP-599, whose quotas are token buckets that may go into debt.
"""

from __future__ import annotations


class Bucket:
    """What one principal may use of one budget.

    It begins full, with `burst`, and fills at `rate` a second. Between two instants it admits at most `rate` x time +
    `burst`; a single cost above `burst` is admitted by a full bucket, and is paid back before anything else is. A
    principal that stays below `rate` is never refused.

    Parameters: `now`, seconds of a monotonic clock, which never goes back.
    """

    __slots__ = ("_at", "_level", "burst", "rate")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self.rate = rate
        self.burst = burst
        self._level = burst
        self._at = now

    def wait(self, cost: float, now: float) -> float:
        """The time until `cost` is admitted, in seconds; 0: now."""
        if cost <= self._level:  # it has not become less
            return 0.0
        missing = min(cost, self.burst) - self._level_at(now)
        return 0.0 if missing <= _ROUNDING else missing / self.rate

    def spend(self, cost: float, now: float) -> None:
        """Take `cost`, whether it was admitted or not: the bucket may be in debt afterwards."""
        self._level = self._level_at(now) - cost
        self._at = now

    def spend_within(self, cost: float, now: float, most_debt: float) -> None:
        """Take `cost`, but leave no debt above `most_debt`, nor one that is above it already any deeper."""
        level = self._level_at(now)
        self._level = max(level - cost, min(level, -most_debt))
        self._at = now

    def used(self, now: float) -> float:
        """What is missing of a full bucket, at the rate at which it fills; above `burst`: it is in debt."""
        return self.burst - self._level_at(now)

    def limit_to(self, rate: float, burst: float, now: float) -> None:
        """Change the limit. What was used, or is owed, stays so."""
        used = self.used(now)
        self.rate, self.burst = rate, burst
        self._level, self._at = burst - used, now

    def _level_at(self, now: float) -> float:
        level = self._level + (now - self._at) * self.rate
        return level if level < self.burst else self.burst


_ROUNDING = 1e-9
"""Of a cost: sums of parts of a second are not exact."""
