"""How long to wait before a service that ended is restarted."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_SECONDS = 0.5
LONGEST_SECONDS = 30.0
STEADY_SECONDS = 60.0


@dataclass(slots=True)
class Backoff:
    """Doubles each time, up to LONGEST_SECONDS; resets once the service has lived for STEADY_SECONDS."""

    _next: float = FIRST_SECONDS

    def after(self, lived_seconds: float) -> float:
        """Seconds to wait after the service ended, having lived for `lived_seconds`."""
        if lived_seconds >= STEADY_SECONDS:
            self._next = FIRST_SECONDS
        delay = self._next
        self._next = min(delay * 2, LONGEST_SECONDS)
        return delay
