"""Runs of Spark jobs from the service's side: list, start, cancel, log. The runs themselves: `offsets.spark.runs`.

Source: architecture.md 7; docs/archive.md.
"""

from __future__ import annotations

import asyncio
import socket
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Unpack

import structlog

from kcoord.access.audit.recording import Act, record
from kcoord.database.paging import DEFAULT_LIMIT, Page, cut, decode_cursor, encode_cursor
from kcoord.database.pool import Connection
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProblemFields, ProtocolError
from kcoord.spark_packages import spark_packages
from offsets.core.types import Millis
from offsets.runs.run_process import LogTail, RunLogs, start_process

Q = queries("offsets")

log = structlog.get_logger(__name__)

KINDS = ("archive", "reconcile", "restore", "report", "import")
STARTABLE = ("archive", "reconcile", "report")
"""The kinds that API, pages and beat can start; the others take arguments that need validation first."""

SIGN_OF_LIFE_MS = 5_000
"""A run without its lock is dead once its last heartbeat is older than this; a live one sends one each second."""
BEGIN_MS = 180_000
"""A process that has not begun its run by then never will; importing Spark on a busy machine takes a while."""
LOST = "the process of the run ended without recording a result"


@dataclass(frozen=True, slots=True)
class SparkRun:
    """A run. Instants in ms; `state` is `lost` for one whose process is dead, whatever its row says.

    `slices_done` of `slices_total` parts of the current stage. `days`: how many days of the journal it archived.
    """

    id: str
    kind: str
    state: str
    parameters: Mapping[str, Any]
    requested_at: Millis
    requested_by: str
    started_at: Millis | None
    ended_at: Millis | None
    heartbeat_at: Millis | None
    cancel_requested_at: Millis | None
    host: str
    pid: int | None
    log_path: str
    stage: str
    slices_done: int
    slices_total: int
    rows: int | None
    files: int | None
    bytes: int | None
    findings: int | None
    bound: int | None
    manifest: int | None
    result: Mapping[str, Any] | None
    error: str
    days: int

    @property
    def public_result(self) -> Mapping[str, Any] | None:
        """The result without what names groups and topics: the list of findings has these, for permitted callers."""
        return self.result and {name: value for name, value in self.result.items() if name != "findings"}

    @property
    def is_open(self) -> bool:
        """It is running, or about to start."""
        return self.state in ("requested", "running")


class RunRefused(ProtocolError):
    """INVALID_REQUEST with a different status: 404 for a run that does not exist, 409 if it is not possible."""

    def __init__(self, status: int, detail: str, **fields: Unpack[ProblemFields]) -> None:
        super().__init__(Error.INVALID_REQUEST, detail, fields=fields)
        self.status = status


def shown(run: SparkRun, held: Collection[str], now: Millis) -> SparkRun:
    """The run's current state: `held` are the kinds whose lock a run holds, read before the run was."""
    if run.state == "requested" and run.requested_at < now - BEGIN_MS:
        return replace(run, state="lost", error="the process of the run did not start")
    if run.state != "running" or run.kind in held or (run.heartbeat_at or 0) >= now - SIGN_OF_LIFE_MS:
        return run
    return replace(run, state="lost", ended_at=run.heartbeat_at, error=LOST)


class SparkRuns:
    """Starts, shows and cancels runs. Every method may raise COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._archive = runtime.config.str("archive.path")
        self._logs = RunLogs(runtime.config)
        self._endings: set[asyncio.Task[None]] = set()

    @property
    def archive_path(self) -> str:
        """The path of the archive; "": no archive."""
        return self._archive

    async def runs(
        self, *, kind: str | None = None, cursor: str | None = None, limit: int = DEFAULT_LIMIT
    ) -> Page[SparkRun]:
        """A page of runs, newest first. Raises ProtocolError INVALID_REQUEST for a cursor of another list."""
        at, run_id = _edge(cursor)
        found, more = cut(await self._read(kind=kind, before_at=at, before_id=run_id, limit=limit + 1), limit)
        return Page(found, encode_cursor(found[-1].requested_at, found[-1].id) if more else None)

    async def run(self, run_id: str) -> SparkRun:
        """One run. Raises RunRefused with status 404."""
        found = await self._read(run_id=checked(run_id), limit=1)
        if not found:
            raise unknown_run(run_id)
        return found[0]

    async def newest(self, kind: str) -> SparkRun | None:
        """The newest successful run of `kind`."""
        async with self._db.connection() as connection:
            found = await self._db.value(connection, Q.newest_success, {"kind": kind})
        return None if found is None else await self.run(found)

    async def start(self, kind: str, *, principal: str) -> SparkRun:
        """Start a process for a run of `kind`, one of STARTABLE.

        It waits while the Spark packages are being installed. Raises RunRefused with status 409 if there is no archive,
        a run of the kind is in progress, or the packages are not here.
        """
        if not self._archive:
            raise RunRefused(409, "no archive is configured: set KCOORD_ARCHIVE_PATH and restart the service")
        packages = spark_packages()
        if not packages.may_start:
            raise RunRefused(409, f"{packages.explanation}, or start the job where they are: `manage.py {kind}`")
        run_id = str(uuid.uuid4())
        await self._db.transaction(lambda connection: self._request(connection, kind, run_id, principal))
        try:
            path = await asyncio.to_thread(self._logs.create, run_id)
            pid = await asyncio.to_thread(start_process, kind, run_id, path, self._watcher(run_id))
        except OSError as error:
            await self._fail(run_id, f"its process cannot be started: {error.strerror}: {error.filename}")
            raise RunRefused(409, f"the run cannot be started: {error.strerror}: {error.filename}") from error
        log.info("spark_run_started", kind=kind, run=run_id, pid=pid, principal=principal)
        return await self.run(run_id)

    async def start_scheduled(self, kind: str) -> str:
        """Start a run for the schedule; its id, or "" if it cannot be started, which the log says."""
        if not self._archive:
            return ""
        try:
            return (await self.start(kind, principal="schedule")).id
        except RunRefused as refused:
            log.warning("spark_run_not_started", kind=kind, reason=refused.detail)
            return ""

    async def cancel(self, run_id: str, *, principal: str) -> SparkRun:
        """Ask a run to end; it ends within seconds, and publishes nothing any more. Asking twice has no further effect.

        Raises RunRefused with status 404, and with 409 for a run that has ended.
        """
        found = await self.run(run_id)
        if not found.is_open:
            raise RunRefused(409, f"the run has already ended: {found.state}")
        act = Act("run.cancel", "run", found.id, {"kind": found.kind, "state": found.state}, principal=principal)
        await self._write(Q.cancel_spark_run, {"id": found.id}, act)
        log.info("spark_run_cancelled", kind=found.kind, run=found.id, principal=principal)
        return await self.run(run_id)

    async def log_tail(self, run: SparkRun) -> LogTail | None:
        """The end of the run's log; None if this machine has none, as for a run started in a terminal."""
        return await asyncio.to_thread(self._logs.tail, run.id)

    async def _read(self, **given: Any) -> list[SparkRun]:
        nothing = dict.fromkeys(("run_id", "kind", "before_at", "before_id"))
        async with self._db.connection() as connection:
            now, held = await self._held(connection)
            runs = await self._db.records(connection, SparkRun, Q.spark_runs, {**nothing, **given})
        return [shown(run, held, now) for run in runs]

    async def _held(self, connection: Connection) -> tuple[Millis, Collection[str]]:
        row = await self._db.row(connection, Q.held_spark_kinds, {"kinds": list(KINDS)})
        assert row is not None
        now, held = row
        return now, frozenset(held)

    async def _request(self, connection: Connection, kind: str, run_id: str, principal: str) -> None:
        await connection.execute(Q.lock_spark_request.encode(), {"kind": kind})
        now, held = await self._held(connection)
        stale = []
        for found_id, state, requested_at, heartbeat_at in await self._db.rows(
            connection, Q.open_spark_runs, {"kind": kind}
        ):
            if state == "requested" and requested_at < now - BEGIN_MS:
                stale.append(found_id)
            elif state == "requested" or kind in held or (heartbeat_at or 0) >= now - SIGN_OF_LIFE_MS:
                raise RunRefused(
                    409, f"a run of {kind} is in progress ({found_id}); wait for it, or cancel it", run=found_id
                )
        await connection.execute(Q.lose_spark_requests.encode(), {"ids": stale, "now": now})
        request = {"id": run_id, "kind": kind, "now": now, "requested_by": principal, "host": socket.gethostname()}
        request["log_path"] = str(self._logs.path(run_id))
        await connection.execute(Q.request_spark_run.encode(), request)
        after = {"kind": kind, "state": "requested"}
        await record(self._db, connection, Act("run.start", "run", run_id, after=after, principal=principal))

    def _watcher(self, run_id: str) -> Callable[[int], None]:
        loop = asyncio.get_running_loop()

        def ended(status: int) -> None:
            loop.call_soon_threadsafe(self._ended, run_id, status)

        return ended

    def _ended(self, run_id: str, status: int) -> None:
        task = asyncio.create_task(
            self._fail(run_id, f"its process ended with status {status} before the run began; see its log"),
            name="kcoord-run-ended",
        )
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)

    async def _fail(self, run_id: str, error: str) -> None:
        await self._write(Q.fail_spark_request, {"id": run_id, "error": error})

    async def _write(self, statement: str, parameters: dict[str, Any], act: Act | None = None) -> None:
        async def execute(connection: Connection) -> None:
            await connection.execute(statement.encode(), parameters)
            if act is not None:
                await record(self._db, connection, act)

        await self._db.transaction(execute)


def checked(run_id: str) -> str:
    """The id as a UUID. Raises RunRefused with status 404."""
    try:
        return str(uuid.UUID(run_id))
    except ValueError:
        raise unknown_run(run_id) from None


def unknown_run(run_id: str) -> RunRefused:
    """The error for a run that does not exist."""
    return RunRefused(404, f"no run has the id {run_id[:50]!r}; GET /v1/archive/runs lists them")


def _edge(cursor: str | None) -> tuple[int | None, str | None]:
    if cursor is None:
        return None, None
    at, run_id = decode_cursor(cursor, int, str)
    try:
        return int(at), str(uuid.UUID(str(run_id)))
    except ValueError:
        raise ProtocolError(
            Error.INVALID_REQUEST,
            "cursor: not a cursor of this list; start again without a cursor",
            fields={"field": "cursor"},
        ) from None
