"""Logging: one JSON object per line on standard error, for our own log entries and those of libraries.

What Celery logs while Postgres cannot do what is asked is one line now and then, instead of a traceback each second.

On a terminal the same entries are printed in human-readable form. Every line of a request carries its `request_id`.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

import msgspec
import psycopg
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from kcoord.requests import current

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


LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}

QUIET = {
    "uvicorn.access": logging.ERROR,
    "django.request": logging.ERROR,
    "httpx": logging.WARNING,
    "py4j": logging.WARNING,
    "celery.beat": logging.WARNING,
    "celery.worker.consumer.connection": logging.WARNING,
    "celery.worker.strategy": logging.WARNING,
    "celery.app.trace": logging.WARNING,
}
"""Loggers that repeat the access log, report every second that the timers ran, name an address that is not used, or say
that a connection to Spark's Java ended."""

REFUSALS = ("django.security.DisallowedHost",)
"""Loggers that log a refused request as a program error with a traceback: any client could fill the log."""


OUTAGES = Outages()


def without_traceback(record: logging.LogRecord) -> bool:
    """Filter: keep the line but drop its traceback."""
    record.exc_info = None
    return True


def add_request_id(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Processor: the id of the current request, if any."""
    request = current.request()
    if request is not None:
        event.setdefault("request_id", request.request_id)
    return event


def _json(event: EventDict, **_: Any) -> str:
    return msgspec.json.encode(event, enc_hook=str).decode()


SHARED: tuple[Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    add_request_id,
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
)


class _StandardError(logging.StreamHandler[TextIO]):
    """Writes to the current `sys.stderr`; the one at startup may be closed."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr


def configure(level: str) -> None:
    """Configure structlog and the standard library's logging. May be called again, with another level.

    Parameters: `level` one of the choices of the setting `log.level`. Raises KeyError for any other.
    """
    threshold = LEVELS[level]
    people = sys.stderr.isatty()
    rendering: list[Processor] = (
        # The other formatters show local variables, and some contain tokens.
        [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
        if people
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(serializer=_json)]
    )
    structlog.configure(
        processors=[*SHARED, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,  # a level set later takes effect everywhere
    )
    handler = _StandardError()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*SHARED, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(threshold)
    for name, quiet in QUIET.items():
        logging.getLogger(name).setLevel(max(quiet, threshold))
    for name in LOGGERS:
        logging.getLogger(name).addFilter(OUTAGES)
    for name in REFUSALS:
        logging.getLogger(name).addFilter(without_traceback)  # added only once, even if called again
