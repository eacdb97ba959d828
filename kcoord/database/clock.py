"""Time, in milliseconds since the epoch, from the database's clock.

Every statement that needs the time takes it as a parameter that is null in production, where the database's
`clock_timestamp()` is read instead (`sql/clock.sql`). Tests inject a `VirtualClock`, used by the whole stack.
"""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Where the time comes from. `override_ms`: the instant to use instead of the database's, or None."""

    @property
    def override_ms(self) -> int | None:
        """The instant, or None."""


class DatabaseClock:
    """Production: the database's clock, always."""

    override_ms = None


class VirtualClock:
    """Tests: time stands still until it is moved. `override_ms`: the virtual instant."""

    def __init__(self, start_ms: int = 0) -> None:
        self.override_ms = start_ms

    def now_ms(self) -> int:
        """The virtual instant."""
        return self.override_ms

    def advance(self, ms: int) -> None:
        """Move forward by `ms` milliseconds."""
        if ms < 0:
            raise ValueError("time does not go back")
        self.override_ms += ms

    def move_to(self, now_ms: int) -> None:
        """Move forward to an instant."""
        self.advance(now_ms - self.override_ms)
