"""The parts of the overview: each is read by itself, fails by itself, and says as of when it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import psycopg
import structlog

from groups.nodes.overview import NodeOverviews
from groups.nodes.overview import Overview as Nodes
from kcoord.database import task_health
from kcoord.database.pool_usage import PoolUsage
from kcoord.database.task_health import TaskHealth
from kcoord.http.health import Check, readiness
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError
from kcoord.sql import queries
from offsets.runs.service import SparkRun, SparkRuns
from offsets.verdicts.reads import Attention, Minute, VerdictReads

log = structlog.get_logger(__name__)

Q = queries("frontend")

Millis = int

GROUPS_SHOWN = 15
ACTIVITY_MS: Millis = 3_600_000
"""How much of the past is drawn."""

SECONDS = 3.0
"""How long a part may take before it is shown as it was."""
AT_ONCE = 3
"""Parts that are read at the same time: members need connections, too."""
REPEATED_SECONDS = 1.0
"""How long what was read is shown to everybody, so that many viewers cost as much as one."""

SPARK_KINDS = ("archive", "reconcile", "report")


@dataclass(frozen=True, slots=True)
class Part:
    """What was read, and the database's instant (ms) at which it was. `value` None: never yet.

    `failed`: why it could not be read now; "": it is as of now.
    """

    value: Any = None
    at: Millis | None = None
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Postgres:
    """`answer_ms`: how long a statement took. Connections: of the server, by everybody, and of this process."""

    version: str
    answer_ms: float
    connections: int
    most_connections: int
    pools: Mapping[str, PoolUsage]


@dataclass(frozen=True, slots=True)
class Celery:
    """`ticked_at` (ms): when the timers last ran; None: never. `own_queue`: the queue is in this database."""

    ticked_at: Millis | None
    own_queue: bool
    tasks: TaskHealth


@dataclass(frozen=True, slots=True)
class Sampler:
    """When lag was last sampled and groups last judged (ms); None, or missing: never."""

    sampled_at: Millis | None
    judged_at: Mapping[str, Millis]


@dataclass(frozen=True, slots=True)
class Archive:
    """`path` "": there is no archive. `runs`: the newest of each kind."""

    path: str
    runs: Sequence[SparkRun]


class OverviewParts:
    """Reads the parts and keeps the last state of each."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._db = runtime.db
        self._kept: dict[str, Part] = {}
        self._read_at = 0.0
        self._reading = asyncio.Lock()
        self._gate = asyncio.Semaphore(AT_ONCE)

    async def read(self) -> Mapping[str, Part]:
        """All parts by name. Raises nothing that a database can cause."""
        async with self._reading:
            if time.monotonic() - self._read_at >= REPEATED_SECONDS:
                parts = await asyncio.gather(*(self._part(name, read) for name, read in self._readers().items()))
                self._kept = dict(zip(self._readers(), parts, strict=True))
                self._read_at = time.monotonic()
            return self._kept

    def _readers(self) -> Mapping[str, Callable[[], Awaitable[Any]]]:
        return {
            "attention": self._attention,
            "counts": self._counts,
            "activity": self._activity,
            "server": self._server,
            "nodes": self._nodes,
            "celery": self._celery,
            "sampler": self._sampler,
            "postgres": self._postgres,
            "archive": self._archive,
        }

    async def _part(self, name: str, read: Callable[[], Awaitable[Any]]) -> Part:
        try:
            async with asyncio.timeout(SECONDS), self._gate:
                return Part(await read(), await self._now())
        except TimeoutError:
            failed = f"It could not be read within {SECONDS:.0f} s."
        except ProtocolError as error:
            failed = error.detail
        except psycopg.Error as error:
            failed = "The database refused to read it."
            log.warning("overview_part_failed", part=name, exc_info=error)
        return replace(self._kept.get(name, Part()), failed=failed)

    async def _now(self) -> Millis:
        async with self._db.connection() as connection:
            return await self._db.now_ms(connection)

    async def _attention(self) -> Attention:
        return await self._runtime.get(VerdictReads).attention(GROUPS_SHOWN)

    async def _counts(self) -> Sequence[tuple[str, str, int]]:
        async with self._db.connection() as connection:
            return await self._db.rows(connection, Q.count_groups)

    async def _activity(self) -> Sequence[Minute]:
        return await self._runtime.get(VerdictReads).activity(await self._now() - ACTIVITY_MS)

    async def _server(self) -> Mapping[str, Check]:
        return await readiness(self._runtime)

    async def _nodes(self) -> Nodes:
        return await self._runtime.get(NodeOverviews).read(0)

    async def _celery(self) -> Celery:
        own_queue = not self._runtime.config.str("broker.url")
        async with self._db.connection() as connection:
            ticked_at = await self._db.value(connection, Q.timers_ran_at)
            tasks = await task_health.read(self._db, connection, own_queue=own_queue)
        return Celery(ticked_at, own_queue, tasks)

    async def _sampler(self) -> Sampler:
        async with self._db.connection() as connection:
            sampled_at = await self._db.value(connection, Q.lag_sampled_at)
            judged_at: dict[str, Millis] = dict(await self._db.rows(connection, Q.groups_judged_at))
        return Sampler(sampled_at, judged_at)

    async def _postgres(self) -> Postgres:
        async with self._db.connection() as connection:
            began = time.monotonic()
            version, used, most = await self._db.one(connection, Q.postgres_usage, {})
            return Postgres(version, (time.monotonic() - began) * 1000, used, most, self._db.usage())

    async def _archive(self) -> Archive:
        runs = self._runtime.get(SparkRuns)
        found = [(await runs.runs(kind=kind, limit=1)).items for kind in SPARK_KINDS]
        return Archive(runs.archive_path, [run for newest in found for run in newest])
