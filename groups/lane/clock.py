"""The time by which heartbeats are answered from memory."""

from __future__ import annotations

import time

from groups.core.model.types import Millis
from kcoord.database.pool import Database

WENT_BACK_MS = 1_000
"""By how much the database's clock must be behind what this process took for it to count as set back."""


class LaneClock:
    """The database's clock as far as this process knows it: never ahead of it as measured, and never going back.

    Deadlines that are counted from it may be too early, never too late.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._latest: Millis = 0

    def now(self) -> Millis | None:
        """The time (ms); None while it is unknown, or known to have gone back."""
        override = self._db.clock.override_ms()
        if override is None:
            measured = self._db.request_age.database_time.at(time.monotonic())
            if measured is None:
                return None
            override = int(measured)
        if override < self._latest:
            return self._latest if self._latest - override <= WENT_BACK_MS else None
        self._latest = override
        return override

    def start(self, now: Millis) -> None:
        """It is at least `now` (ms), read from the database's clock. After that clock went back, it is that again."""
        if self._latest - now > WENT_BACK_MS:
            self._latest = now
        self._latest = max(self._latest, now)
