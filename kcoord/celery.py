"""The Celery application: a queue in the same Postgres (PGMQ), or the broker that `broker.url` names.

Beat drives the timers. Each entry expires before it is due again, so a stopped worker leaves no backlog.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
from typing import Any, NoReturn

from celery import Celery
from celery.exceptions import WorkerShutdown
from celery.signals import setup_logging, task_failure, worker_init, worker_shutting_down

from kcoord.database import queue_transport

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kcoord.settings")

BEAT_STOP_SECONDS = 2
"""How long beat may take to write the times of its last runs. Without them tasks run once more, which is harmless."""


class Application(Celery):  # type: ignore[misc]
    """Celery with a beat that ends in bounded time, also where the database has gone with its supervisor.

    Celery's own handler of SIGTERM writes to the database before it ends the loop: a failure there is raised in place
    of SystemExit, and the loop goes on.
    """

    @functools.cached_property
    def Beat(self) -> type:  # noqa: N802 - Celery's name
        """The program `celery beat`."""
        from celery.apps.beat import Beat

        class BoundedBeat(Beat):  # type: ignore[misc]
            def install_sync_handler(self, service: Any) -> None:
                signal.signal(signal.SIGTERM, _end_beat)
                signal.signal(signal.SIGINT, _end_beat)

        return self.subclass_with_self(BoundedBeat)  # type: ignore[no-any-return]


def _end_beat(*_: object) -> NoReturn:
    """The loop then writes what it has to."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.alarm(BEAT_STOP_SECONDS)
    raise SystemExit


queue_transport.register()
app = Application("kcoord")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect  # type: ignore[untyped-decorator]
def configure_logging(**kwargs: Any) -> None:
    """Worker and beat log as the server does; with a receiver of this signal Celery configures no logging itself."""
    from django.conf import settings

    from kcoord.door.http import logs

    logs.configure(settings.KCOORD.str("log.level"))


@worker_init.connect  # type: ignore[untyped-decorator]
def act_as_service(sender: Any, **kwargs: Any) -> None:
    """What tasks do is recorded as done by this worker."""
    from kcoord.requests import current

    current.is_service(str(sender))


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
