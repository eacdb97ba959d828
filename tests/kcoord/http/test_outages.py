"""Failures of Postgres in the log of Celery: one line, and not every second. Other failures keep their traceback."""

from __future__ import annotations

import io
import logging

import django.db
import kombu.exceptions
import psycopg
import pytest

from kcoord.door.http.logs import SILENCE_SECONDS, Outages

FULL = psycopg.errors.DiskFull("could not extend file\nHINT: Check free disk space.")


@pytest.fixture
def now() -> list[float]:
    return [100.0]


@pytest.fixture
def written(now: list[float]) -> tuple[logging.Logger, io.StringIO]:
    """A logger with the filter, and what it wrote."""
    stream = io.StringIO()
    logger = logging.Logger("celery.beat")
    logger.addHandler(logging.StreamHandler(stream))
    logger.addFilter(Outages(lambda: now[0]))
    return logger, stream


def fail(logger: logging.Logger, error: Exception, cause: Exception | None = None) -> None:
    """Log it as beat does."""
    try:
        raise error from cause
    except Exception as raised:
        logger.error("Message Error: %s\n%s", raised, ["the stack"], exc_info=True)


@pytest.mark.parametrize("wrapped", [kombu.exceptions.OperationalError("x"), django.db.OperationalError("x"), None])
def test_an_outage_is_one_line_now_and_then(
    written: tuple[logging.Logger, io.StringIO], now: list[float], wrapped: Exception | None
) -> None:
    logger, stream = written
    for _ in range(50):
        fail(logger, wrapped or FULL, FULL if wrapped else None)
    (line,) = stream.getvalue().splitlines()
    assert line.startswith(
        "the database cannot be used: could not extend file HINT: Check free disk space.; trying again"
    )
    now[0] += SILENCE_SECONDS
    fail(logger, FULL)
    assert len(stream.getvalue().splitlines()) == 2
    fail(logger, psycopg.OperationalError("gone"))
    assert "gone" in stream.getvalue(), "another failure is told at once"


@pytest.mark.parametrize("error", [ValueError("a bug"), psycopg.errors.UndefinedTable("no table")])
def test_other_failures_keep_their_traceback(written: tuple[logging.Logger, io.StringIO], error: Exception) -> None:
    logger, stream = written
    for _ in range(2):
        fail(logger, error)
    assert stream.getvalue().count("Traceback") == 2
