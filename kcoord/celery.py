"""The Celery application: a queue in the same Postgres (PGMQ), or the broker that `broker.url` names.

Beat drives the timers. Each entry expires before it is due again, so a stopped worker leaves no backlog.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

from celery import Celery
from celery.exceptions import WorkerShutdown
from celery.signals import setup_logging, task_failure, worker_init, worker_shutting_down

from kcoord.database import queue_transport

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kcoord.settings")

queue_transport.register()
app = Celery("kcoord")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect  # type: ignore[untyped-decorator]
def configure_logging(**kwargs: Any) -> None:
    """Worker and beat log as the server does; with a receiver of this signal Celery configures no logging itself."""
    from django.conf import settings

    from kcoord.http import logs

    logs.configure(settings.KCOORD.str("log.level"))


@worker_init.connect  # type: ignore[untyped-decorator]
def act_as_service(sender: Any, **kwargs: Any) -> None:
    """What tasks do is recorded as done by this worker."""
    from kcoord.audit import caller

    caller.is_service(str(sender))


@task_failure.connect  # type: ignore[untyped-decorator]
def count_failure(sender: Any, **kwargs: Any) -> None:
    """Count the failure for /metrics. Celery logs it; without the database nothing is counted."""
    from kcoord.database import task_health
    from kcoord.process import bridge
    from kcoord.protocol.errors import ProtocolError

    with contextlib.suppress(ProtocolError):
        bridge.call(lambda runtime: task_health.count_failure(runtime.db, sender.name))


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def leave_the_loop(how: str, exitcode: int, **kwargs: Any) -> None:
    """SIGTERM: leave the worker's loop now; it checks its stop flag only every two seconds.

    Runs in the signal handler, on the main thread. Tasks run on other threads and are still waited for.
    """
    from celery.worker import state

    if how == "Warm":
        state.should_stop = exitcode
        raise WorkerShutdown(exitcode)
