"""Records of runs, and the lock that allows one run of a kind at a time.

    with running(conninfo, "archive", RunRequest(requested_by="local:ada")) as run:
        run.enter("read")
        ...
        run.check()          # before anything is published: is the lock still ours, was it cancelled?
        run.outcome = Outcome(rows=10, result={...})

The lock is an advisory lock of the run's own session, so it is released with the process, however that ends.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import Any

import psycopg
from psycopg.rows import dict_row, scalar_row
from psycopg.types.json import Jsonb

from offsets.spark.errors import INTERRUPTED, JobError, RunCancelled, RunInProgress, first_line
from offsets.spark.postgres import Connection, Q, connect

BEAT_SECONDS = 1.0
LONGEST_ERROR = 4_000
LOCK_SECONDS = 2.0
LOCK_RETRY_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Who requested what. `run_id` of a row that is already `requested`; None creates one."""

    requested_by: str = "local"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    run_id: uuid.UUID | None = None
    log_path: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run leaves in its row. `result` is what the command prints as JSON, plus what is only `printed`."""

    rows: int | None = None
    files: int | None = None
    bytes: int | None = None
    findings: int | None = None
    result: Mapping[str, Any] | None = None
    printed: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DayTotal:
    """Rows of a day (UTC, counted from 1970-01-01) and the sum of their hashes."""

    day: int
    rows: int
    checksum: int


@dataclass(frozen=True, slots=True)
class Publication:
    """What the service needs from a manifest: see `offsets.spark.archive.manifest`."""

    run_id: uuid.UUID
    archive_id: str
    archive_path: str
    manifest: int
    sha256: str
    bound: int
    system_identifier: str
    timeline: int
    days: Sequence[DayTotal]
    rebased: bool


class Run:
    """A run that holds its lock. Use it in the thread that created it; a separate thread writes heartbeats."""

    def __init__(self, run_id: uuid.UUID, kind: str, connection: Connection) -> None:
        self.id = run_id
        self.kind = kind
        self.outcome = Outcome()
        self.progress: Callable[[], tuple[int, int]] | None = None
        """Reports how many slices of the stage are done, and of how many."""
        self.on_cancel: Callable[[], None] | None = None
        """Called once, in another thread, when the run is cancelled: cancels Spark's jobs."""
        self._connection = connection
        self._stage = "starting"
        self._cancelled = False
        self._broken: str | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat_until_over, name="kcoord-run", daemon=True)

    @property
    def stage(self) -> str:
        """The current stage of the run."""
        return self._stage

    def enter(self, stage: str) -> None:
        """Begin a stage; its name is shown, on a terminal too. Raises what `check` raises."""
        self.check()
        self._stage = stage
        self._beat()
        if sys.stderr.isatty():  # a minute without a word looks like a run that hangs
            sys.stderr.write(f"{self.kind}: {stage}\n")

    def check(self) -> None:
        """Raises RunCancelled, or JobError if the session that holds the lock was lost."""
        if self._cancelled:
            raise RunCancelled("the run was cancelled")
        if self._broken is not None:
            raise JobError(f"lost the database session with the run's lock: {self._broken}; run it again")

    def confirm(self) -> None:
        """Ask Postgres itself, right before a publication. Raises what `check` raises."""
        self._beat()
        self.check()

    def knows(self, run_id: uuid.UUID) -> bool:
        """Whether this database has a record of that run."""
        return bool(self._value(Q.knows_run, {"id": run_id}))

    def has_recorded(self, published: Publication) -> bool:
        """Whether `record` was called for it."""
        parameters = {"id": published.run_id, "archive_id": published.archive_id, "manifest": published.manifest}
        return bool(self._value(Q.has_recorded, parameters))

    def recorded_sha256(self, run_id: uuid.UUID, archive_id: str, manifest: int) -> str | None:
        """The SHA-256 of a manifest as it was recorded; None if it was not, or if a later one of the run was."""
        found = self._value(Q.recorded_sha256, {"id": run_id, "archive_id": archive_id, "manifest": manifest})
        return None if found is None else str(found)

    def record(self, published: Publication) -> None:
        """Record what was published; harmless if it is already recorded."""
        facts = {
            "id": published.run_id,
            "archive_id": published.archive_id,
            "archive_path": published.archive_path,
            "manifest": published.manifest,
            "sha256": published.sha256,
            "bound": published.bound,
            "system_identifier": published.system_identifier,
            "timeline": published.timeline,
        }
        with self._connection.transaction():
            if published.rebased and not self.has_recorded(published):
                self._connection.execute(Q.forget_days.encode())
            for total in published.days:
                day = {"day": total.day, "rows": total.rows, "checksum": total.checksum}
                self._connection.execute(Q.record_day.encode(), {**facts, **day})
            self._connection.execute(Q.record_publication.encode(), facts)

    def begin_beating(self) -> None:
        """Start the thread that writes heartbeats and checks whether the run was cancelled."""
        self._thread.start()

    def end(self, state: str, error: str = "") -> None:
        """Close the record of the run. Raises JobError; the next run then marks this one as lost."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
        given = self.outcome
        parameters = {
            "id": self.id,
            "state": state,
            "stage": self._stage,
            "rows": given.rows,
            "files": given.files,
            "bytes": given.bytes,
            "findings": given.findings,
            "result": None if given.result is None else Jsonb(dict(given.result)),
            "error": error[:LONGEST_ERROR],
        }
        try:
            self._connection.execute(Q.end_run.encode(), parameters)
        except psycopg.Error as lost:
            raise JobError(f"the result of the run cannot be recorded: {first_line(lost)}") from lost

    def _beat_until_over(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            self._beat()

    def _beat(self) -> None:
        done, total = self.progress() if self.progress is not None else (0, 0)
        parameters = {"id": self.id, "stage": self._stage, "done": done, "total": total}
        try:
            wanted_to_end = self._value(Q.beat, parameters)
        except psycopg.Error as error:
            self._broken = first_line(error)
            return
        if wanted_to_end and not self._cancelled:
            self._cancelled = True
            if self.on_cancel is not None:
                self.on_cancel()

    def _value(self, statement: str, parameters: Mapping[str, Any]) -> Any:
        return _value(self._connection, statement, parameters)


@contextmanager
def running(conninfo: str, kind: str, request: RunRequest, also: Sequence[str] = ()) -> Iterator[Run]:
    """A run of `kind`, recorded with its outcome. `also`: kinds that must not run meanwhile.

    Raises RunInProgress, JobError if Postgres cannot be reached, and whatever the block raises.
    """
    with ExitStack() as stack:
        connection = stack.enter_context(connect(conninfo, autocommit=True))
        stack.callback(_unlock, connection)
        for one in (kind, *also):
            _lock(connection, one)
        run = _start(connection, kind, request)
        run.begin_beating()
        try:
            yield run
        except BaseException as error:
            ended = (RunCancelled, KeyboardInterrupt)
            with suppress(JobError):  # the original error matters more than the failure to record it
                run.end("cancelled" if isinstance(error, ended) else "failed", _told(error))
            raise
        run.end("succeeded")


def _told(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    return str(error) if isinstance(error, JobError) else first_line(error)


def _lock(connection: Connection, kind: str) -> None:
    """Take the lock of `kind`. Raises RunInProgress.

    Postgres ends a session some time after its client has closed the connection. A lock that is held although no run
    of the kind is recorded as running is therefore tried for a moment.
    """
    parameters = {"kind": kind}
    until = monotonic() + LOCK_SECONDS
    while not _value(connection, Q.lock_kind, parameters):
        other = connection.cursor(row_factory=dict_row).execute(Q.running.encode(), parameters).fetchone()
        if other is not None or monotonic() > until:
            which = " ({id}, process {pid} on {host})".format_map(other) if other else ""
            raise RunInProgress(f"a run of {kind} is in progress{which}; wait for it, or cancel it")
        sleep(LOCK_RETRY_SECONDS)
    connection.execute(Q.mark_lost.encode(), parameters)


def _unlock(connection: Connection) -> None:
    with suppress(psycopg.Error):  # a session that is lost holds no lock
        connection.execute(Q.unlock_kinds.encode())


def _value(connection: Connection, statement: str, parameters: Mapping[str, Any]) -> Any:
    return connection.cursor(row_factory=scalar_row).execute(statement.encode(), parameters).fetchone()


def _start(connection: Connection, kind: str, request: RunRequest) -> Run:
    run_id = request.run_id or uuid.uuid4()
    parameters = {
        "id": run_id,
        "kind": kind,
        "parameters": Jsonb(dict(request.parameters)),
        "requested_by": request.requested_by,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "log_path": request.log_path,
    }
    with connection.transaction():
        if connection.execute(Q.start_run.encode(), parameters).fetchone() is None:
            raise JobError(f"{run_id} is not a requested run of {kind} that has yet to start")
        if request.run_id is None:  # nobody requested it over the API, which would have recorded it
            connection.execute(Q.record_run.encode(), parameters)
    return Run(run_id, kind, connection)
