"""Health: /livez and /readyz. Neither needs a token; neither reveals a group, member or topic name.

Source: http-api.md 5.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kcoord import metrics
from kcoord.config import Config
from kcoord.database.lineage import newer, too_old
from kcoord.database.pool import Connection
from kcoord.database.sql import queries
from kcoord.process import runtime as runtimes
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError
from kcoord.requests import current

Q = queries("kcoord")

MISSED_SAMPLES = 5
"""Intervals of samples after which they stand still."""

LITTLE_SPACE = 32 * 2**20
"""Bytes; Postgres writes its log in files of 16 MiB, and ends when it cannot."""

NO_STANDBY = "waiting for a synchronous standby, without which no commit returns; start one"
NO_WRITER = "reads are answered, but transactions get no connection; see max_connections and the sessions of Postgres"


@dataclass(frozen=True, slots=True)
class Check:
    """A condition for this process to serve. `detail` says what is wrong and the remedy; with `ok` it is a note."""

    ok: bool
    detail: str = ""
    lag_ms: int | None = None


Checks = Callable[[Runtime], Mapping[str, Check]]
"""Checks by name, from what the process has in memory."""


@functools.cache
def expected_migrations() -> frozenset[tuple[str, str]]:
    """(application, name) of every migration that this code needs."""
    from django.db.migrations.loader import MigrationLoader

    return frozenset(MigrationLoader(None).graph.nodes)


async def readiness(runtime: Runtime) -> dict[str, Check]:
    """The checks of /readyz by name."""
    listener = (
        Check(True) if runtime.notifications.listening else Check(False, "not listening for wake-ups; reconnecting")
    )
    try:
        async with runtime.db.connection() as connection:
            migrations = await _migrations(runtime, connection)
            if not migrations.ok:
                return {"database": Check(True), "migrations": migrations, "listener": listener}
            timers = await _timers(runtime, connection)
            journal = await _journal(runtime, connection)
            samples = await _samples(runtime, connection)
        # Reading works on a full disk, and only the worker writes without being asked: late timers may be its sign.
        suspect = runtime.db.disk_was_full or not timers.ok
        has_space = not suspect or await runtime.db.has_space()
    except ProtocolError as error:
        return {"database": Check(False, f"{error.detail}{_space_left(runtime.config)}"), "listener": listener}
    ready = {"database": await _writes(runtime), "migrations": migrations, "timers": timers, "listener": listener}
    if not has_space:
        ready["disk"] = Check(False, "the disk of the database is full and nothing can be stored; free space on it")
    notes = {"journal": journal, "samples": samples}
    return ready | {name: note for name, note in notes.items() if note is not None}


async def _writes(runtime: Runtime) -> Check:
    if not await runtime.db.can_write():
        return Check(False, NO_WRITER)
    return Check(True, runtime.db.origins.note) if await runtime.db.can_commit() else Check(False, NO_STANDBY)


def _space_left(config: Config) -> str:
    """What a full disk adds to the outage of the embedded Postgres: without space for its log it does not run."""
    if config.str("database.url"):
        return ""
    try:
        free = shutil.disk_usage(config.data_dir).free
    except OSError:
        return ""
    if free > LITTLE_SPACE:
        return ""
    return f"; the disk of {config.data_dir} is full ({free // 2**20} MiB left): free space on it"


async def _migrations(runtime: Runtime, connection: Connection) -> Check:
    if await runtime.db.value(connection, Q.migrations_table) is None:
        return Check(False, "the database is empty; run manage.py migrate")
    applied = set(await runtime.db.rows(connection, Q.applied_migrations))
    if problem := too_old(applied):
        return Check(False, problem)
    expected = expected_migrations()
    missing = sorted(expected - applied)
    if not missing:
        return Check(True, newer(applied, expected))
    names = ", ".join(f"{app}.{name}" for app, name in missing[:5])
    return Check(False, f"{len(missing)} migrations are missing ({names}); run manage.py migrate")


async def _timers(runtime: Runtime, connection: Connection) -> Check:
    lag_ms = await runtime.db.value(connection, Q.timer_lag, {"now": runtime.db.clock.override_ms})
    if lag_ms is None:
        return Check(False, "the timers have never run; start Celery beat and a worker")
    metrics.TICK_LAG_MS.set(lag_ms)
    if lag_ms > runtime.config.int("timer.lag.ready.ms"):
        return Check(
            False,
            f"the timers last ran {lag_ms // 1000:,} s ago; check that Celery beat and its worker are running",
            lag_ms,
        )
    return Check(True, "", lag_ms)


async def _journal(runtime: Runtime, connection: Connection) -> Check | None:
    """A note, if there is anything to report: without today's partition the journal still works."""
    if await runtime.db.value(connection, Q.journal_day_is_there, {"now": runtime.db.clock.override_ms}):
        return None
    return Check(
        True,
        "the journal has no partition for today, rows go to its default one; check that the Celery worker is running",
    )


async def _samples(runtime: Runtime, connection: Connection) -> Check | None:
    """A note if lag was sampled or judged, but not for a while: members are served all the same."""
    parameters = {"now": runtime.db.clock.override_ms}
    age_ms = await runtime.db.value(connection, Q.samples_age, parameters)
    if age_ms is None or age_ms <= MISSED_SAMPLES * runtime.config.int("lag.sample.interval.ms"):
        return None
    return Check(
        True,
        f"lag and verdicts stand still: the last run was {age_ms // 1000:,} s ago; see the log of the worker",
    )


def _json(content: Any, status: int) -> Response:
    return Response(msgspec.json.encode(content), status_code=status, media_type="application/json")


async def livez(request: Request) -> Response:
    """The process answers; nothing else is checked, so a lost database does not restart it."""
    _name_route(request)
    return _json({"status": "alive"}, 200)


def readyz(others: Checks) -> Callable[[Request], Awaitable[Response]]:
    """200 when this process can serve members, else 503 with the check that fails. `others`: more checks."""

    async def answer(request: Request) -> Response:
        _name_route(request)
        if not runtimes.is_running():
            return _json({"status": "not ready", "checks": {"runtime": Check(False, "starting or stopping")}}, 503)
        runtime = runtimes.current()
        checks = {**await readiness(runtime), **others(runtime)}
        ready = all(check.ok for check in checks.values())
        return _json({"status": "ready" if ready else "not ready", "checks": checks}, 200 if ready else 503)

    return answer


def _name_route(request: Request) -> None:
    about = current.request()
    if about is not None:
        about.route = request.url.path


def routes(others: Checks) -> list[Route]:
    """Both endpoints. `others`: what else /readyz checks."""
    return [Route("/livez", livez, methods=["GET"]), Route("/readyz", readyz(others), methods=["GET"])]
