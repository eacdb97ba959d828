"""Who was throttled: counted, logged at most once a minute, and stored for the pages of all nodes."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import NamedTuple

import psycopg
import structlog
from prometheus_client import REGISTRY
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from kcoord.access.quotas.budgets import Budget
from kcoord.database.sql import queries
from kcoord.metrics import Tallies
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError

log = structlog.get_logger(__name__)

Q = queries("kcoord")

SAID_EVERY = 60.0
"""Seconds between two lines of the log, and two writes, for one holder and budget."""
MOST_HOLDERS = 1_000
"""Holders and budgets that are told apart; others are only counted."""
KEPT_MS = 3_600_000
"""How long a stored row is kept."""

THROTTLED = Tallies("kcoord_quota_throttled", "Requests that were refused or delayed by a quota.", ["budget"])
HEARTBEATS_KEPT = Tallies(
    "kcoord_quota_heartbeats_kept", "Heartbeats over a quota that extended their session and were told to wait.", []
).labels()


class Throttling(NamedTuple):
    """One request was throttled. `holder`: of the bucket, in words. `limit`, `used`: in the budget's unit."""

    holder: str
    kind: str
    name: str
    budget: Budget
    limit: float
    used: float
    wait: float


@dataclass(slots=True)
class Noted:
    """A holder that is throttled. `times`: since it was last said. `at`, `said`: seconds of a monotonic clock."""

    last: Throttling
    times: int
    at: float
    said: float | None = None


class Throttled:
    """The throttled holders of this process; one per runtime."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._noted: dict[tuple[str, str, Budget], Noted] = {}
        self._storing: asyncio.Task[None] | None = None
        self._unstored: dict[tuple[str, str, Budget], tuple[Throttling, int]] = {}
        _PRINCIPALS.of = self
        runtime.on_stop(self._stop)

    def note(self, found: Throttling) -> None:
        """A request was throttled just now."""
        THROTTLED.labels(found.budget.key).inc()
        now = time.monotonic()
        key = found.kind, found.name, found.budget
        noted = self._noted.get(key)
        if noted is None:
            if len(self._noted) >= MOST_HOLDERS:
                self._forget(now)
            if len(self._noted) >= MOST_HOLDERS:
                return
            noted = self._noted[key] = Noted(found, 0, now)
        noted.last, noted.at = found, now
        noted.times += 1
        if noted.said is None or now - noted.said >= SAID_EVERY:
            self._say(noted, now)

    def now_throttled(self) -> dict[Budget, int]:
        """How many holders were throttled within the last minute, by budget."""
        since = time.monotonic() - SAID_EVERY
        found = dict.fromkeys(Budget, 0)
        for noted in tuple(self._noted.values()):
            found[noted.last.budget] += noted.at >= since
        return found

    def _say(self, noted: Noted, now: float) -> None:
        last, times = noted.last, noted.times
        noted.said, noted.times = now, 0
        log.warning(
            "throttled",
            kind=last.kind,
            name=last.name,
            budget=last.budget.key,
            limit=last.limit,
            used=round(last.used, 3),
            wait_ms=round(last.wait * 1000),
            times=times,
        )
        self._unstored[last.kind, last.name, last.budget] = last, times
        if self._storing is None:
            self._storing = asyncio.get_running_loop().create_task(self._store(), name="kcoord-throttled")

    async def _store(self) -> None:
        try:
            while self._unstored:
                rows, self._unstored = [*self._unstored.values()], {}
                async with self._db.connection() as connection:
                    await connection.execute(
                        Q.note_throttled.encode(),
                        {
                            "now": self._db.clock.override_ms,
                            "kept_ms": KEPT_MS,
                            "kinds": [row.kind for row, _ in rows],
                            "names": [row.name for row, _ in rows],
                            "budgets": [row.budget.key for row, _ in rows],
                            "limits": [row.limit for row, _ in rows],
                            "used": [row.used for row, _ in rows],
                            "times": [times for _, times in rows],
                        },
                    )
        except (ProtocolError, psycopg.Error, OSError) as error:
            log.warning("throttled_not_stored", reason=str(error))
            self._unstored.clear()  # said again in a minute
        finally:
            self._storing = None

    def _forget(self, now: float) -> None:
        for key, noted in tuple(self._noted.items()):
            if now - noted.at >= SAID_EVERY:
                del self._noted[key]

    async def _stop(self) -> None:
        if self._storing is not None:
            self._storing.cancel()
            await asyncio.gather(self._storing, return_exceptions=True)


class _Principals(Collector):
    """The gauge of throttled holders, of the runtime that was made last."""

    def __init__(self) -> None:
        self.of: Throttled | None = None
        REGISTRY.register(self)

    def collect(self) -> list[GaugeMetricFamily]:
        """One series for each budget."""
        family = GaugeMetricFamily(
            "kcoord_quota_throttled_principals", "Principals throttled within the last minute.", labels=["budget"]
        )
        for budget, count in (self.of.now_throttled() if self.of is not None else dict.fromkeys(Budget, 0)).items():
            family.add_metric([budget.key], count)
        return [family]


_PRINCIPALS = _Principals()
