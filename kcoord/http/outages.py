"""What Celery logs while Postgres cannot do what is asked: one line now and then instead of a traceback each second.

Beat and worker try again every second or more often, and log every failure with its traceback, beat with its stack too.
The cause is not in our code: the disk is full, or Postgres is down.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import psycopg

LOGGERS = ("celery.beat", "celery.app.trace", "celery.worker.consumer.consumer", "django_celery_beat.schedulers")
"""Loggers of whatever tries again by itself."""

SILENCE_SECONDS = 30.0
"""How long the same failure is not repeated."""


class Outages(logging.Filter):
    """Turns failures of the database into one line, at most one in SILENCE_SECONDS for each kind of failure.

    Failures of statements that are wrong (a missing table, a right) keep their traceback.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._silent_until: dict[type[BaseException], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log a record, which loses its traceback if it is about an outage."""
        cause = outage(record.exc_info[1] if record.exc_info else None)
        if cause is None:
            return True
        now = self._clock()
        if now < self._silent_until.get(type(cause), 0.0):
            return False
        self._silent_until[type(cause)] = now + SILENCE_SECONDS
        reason = " ".join(str(cause).split()) or type(cause).__name__
        record.msg = f"the database cannot be used: {reason}; trying again, and saying so every {SILENCE_SECONDS:g} s"
        record.args = ()
        record.exc_info = record.exc_text = record.stack_info = None
        return True


def outage(error: BaseException | None) -> BaseException | None:
    """The failure of Postgres that caused an error, which libraries wrap in theirs; None: another cause."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            return error
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None
