"""The commands of the stack: what each service is and how it is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from kcoord.config import BASE_DIR
from kcoord.stack import embedded
from kcoord.stack.embedded import Embedded
from kcoord.stack.preflight import Plan
from kcoord.stack.process import Command

WORKER_THREADS = 4
ROOT_WARNING = "ignore:You're running the worker with superuser"
"""Celery warns root in five lines; messages are JSON, not pickles, so running it as root is as safe as the rest."""


def postgres(plan: Plan, server: Embedded, environ: Mapping[str, str]) -> Command:
    """The embedded Postgres."""
    return server.command(embedded.environment(environ), plan.lock)


def setup(plan: Plan, environ: Mapping[str, str]) -> Command:
    """The command that prepares the database and exits."""
    return _python(plan, environ, "setup", ["-m", "kcoord.stack.bootstrap"])


def services(plan: Plan, environ: Mapping[str, str]) -> list[Command]:
    """Server, Celery worker and beat."""
    descriptor = plan.listener.fileno()
    server = _python(plan, environ, "server", ["-m", "kcoord.stack.server", "--fd", str(descriptor)], descriptor)
    worker = _python(plan, environ, "worker", worker_arguments())
    return [server, worker, _python(plan, environ, "beat", beat_arguments())]


def worker_arguments() -> list[str]:
    """Python's arguments for the Celery worker: threads, and no gossip between workers, which nothing listens to."""
    pool = ("--pool", "threads", "--concurrency", str(WORKER_THREADS))
    alone = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    return ["-W", ROOT_WARNING, "-m", "celery", "--quiet", "--app", "kcoord.celery", "worker", *pool, *alone]


def beat_arguments() -> list[str]:
    """Python's arguments for Celery beat; its lock is the data directory's, so it needs no pid file."""
    return ["-m", "celery", "--quiet", "--app", "kcoord.celery", "beat", "--pidfile", ""]


def _python(plan: Plan, environ: Mapping[str, str], name: str, arguments: list[str], *descriptors: int) -> Command:
    path = os.pathsep.join(filter(None, [str(BASE_DIR), environ.get("PYTHONPATH", "")]))
    return Command(
        name,
        (sys.executable, *arguments),
        {**environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": path},
        BASE_DIR,
        pass_fds=(plan.lock, *descriptors),
    )
