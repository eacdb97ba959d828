"""The commands of the stack: what each service is and how it is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace

from kcoord.config import BASE_DIR, Config
from kcoord.stack import embedded
from kcoord.stack.embedded import Embedded
from kcoord.stack.gate import Gate
from kcoord.stack.preflight import Plan
from kcoord.stack.process import Command

WORKER_THREADS = 4
OTHER_CONNECTIONS = 8
"""Of a server, besides its two pools: the listener, the lease, Django's threads."""

FOR_OTHERS = 40
"""Worker, beat, jobs of Spark, and people with psql."""

FEWEST_CONNECTIONS = 200
RESERVED = 3
"""Connections that Postgres reserves for superusers; the service connects as an ordinary role."""
QUICKLY = {"CELERY_SKIP_CHECKS": "1"}
"""Worker and beat do not run Django's checks, which import every page: the setup has run those of the settings."""

TASKS = "kcoord.celery,kcoord.tasks,groups.tasks,offsets.tasks"
"""What worker and beat import."""

ROOT_WARNING = "You're running the worker with superuser"
"""Celery warns root in five lines; messages are JSON, not pickles, so running it as root is as safe as the rest."""


def postgres(plan: Plan, server: Embedded, environ: Mapping[str, str]) -> Command:
    """The embedded Postgres."""
    return server.command(embedded.environment(environ), plan.lock, connections(plan.config))


def connections(config: Config) -> int:
    """How many connections the embedded Postgres must allow."""
    of_a_server = 2 * config.int("database.pool.size") + OTHER_CONNECTIONS
    return RESERVED + max(FEWEST_CONNECTIONS, config.int("nodes") * of_a_server + FOR_OTHERS)


def setup(plan: Plan, environ: Mapping[str, str]) -> Command:
    """The command that prepares the database and exits."""
    return _python(plan, environ, "setup", ["-m", "kcoord.stack.bootstrap"])


def install_spark(plan: Plan, environ: Mapping[str, str]) -> Command:
    """The command that installs the packages of Spark jobs and exits.

    Without the lock of the data directory: uv outlives a supervisor that is killed, and the next one need not wait.
    """
    command = _python(plan, environ, "spark", ["-m", "kcoord.stack.install", "spark", "--beside"])
    return replace(command, pass_fds=())


def services(plan: Plan, environ: Mapping[str, str], gate: Gate) -> list[Command]:
    """The servers, Celery worker and beat; they import what they need, and wait for the gate."""
    listener = plan.listener.fileno()

    def held(imports: str) -> list[str]:
        return ["-m", "kcoord.stack.gate", str(gate.descriptor), imports]

    serve = [*held("kcoord.asgi,kcoord.door.http.connection,uvloop"), "kcoord.stack.server", "--fd", str(listener)]
    servers = [
        _python(plan, {**environ, **node.identity}, node.name, [*serve, *node.options], gate.descriptor, listener)
        for node in plan.nodes
    ]
    work = [
        "-W",
        f"ignore:{ROOT_WARNING}",
        *held(f"{TASKS},celery.apps.worker,celery.concurrency.thread"),
        "celery",
        *worker_options(),
    ]
    beat = [*held(f"{TASKS},celery.apps.beat,django_celery_beat.schedulers"), "celery", *beat_options()]
    return [
        *servers,
        _python(plan, environ, "worker", work, gate.descriptor),
        _python(plan, environ, "beat", beat, gate.descriptor),
    ]


def worker_options() -> list[str]:
    """Celery's options for the worker: threads, and no gossip between workers, which nothing listens to."""
    pool = ("--pool", "threads", "--concurrency", str(WORKER_THREADS))
    alone = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    return ["--quiet", "--app", "kcoord.celery", "worker", *pool, *alone]


def beat_options() -> list[str]:
    """Celery's options for beat; it needs no pid file: two of them are harmless."""
    return ["--quiet", "--app", "kcoord.celery", "beat", "--pidfile", ""]


def _python(plan: Plan, environ: Mapping[str, str], name: str, arguments: list[str], *descriptors: int) -> Command:
    path = os.pathsep.join(filter(None, [str(BASE_DIR), environ.get("PYTHONPATH", "")]))
    return Command(
        name,
        (sys.executable, *arguments),
        {
            "DJANGO_SETTINGS_MODULE": "kcoord.settings",
            **environ,
            **QUICKLY,
            "PYTHONUNBUFFERED": "1",
            "PYTHONPATH": path,
        },
        BASE_DIR,
        pass_fds=(plan.lock, *descriptors),
    )
