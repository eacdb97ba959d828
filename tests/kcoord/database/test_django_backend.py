"""Limits on the waits of Django's own connection. That Postgres falls silent is in tests/processes."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from types import SimpleNamespace

import psycopg
import pytest
from django.db import OperationalError, connection

from kcoord.database import liveness
from kcoord.database.django_backend.base import CONNECT_SECONDS, limited_statements
from kcoord.database.liveness import PatientConnection, answers_now

LIMIT_MS = 200
FOREVER_SECONDS = 60


@pytest.fixture
def _fresh(database: str) -> Iterator[None]:
    """Each test opens its connection itself."""
    connection.close()
    yield
    connection.close()


def value_of(statement: str) -> object:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0]


@pytest.mark.usefixtures("_fresh")
def test_statements_of_requests_are_limited_and_others_are_not() -> None:
    assert value_of("show statement_timeout") == "0"
    connection.close()
    began = time.monotonic()
    with limited_statements(LIMIT_MS):
        assert value_of("show statement_timeout") == f"{LIMIT_MS}ms"
        with pytest.raises(OperationalError, match="statement timeout"):
            value_of(f"select pg_sleep({FOREVER_SECONDS})")
    assert time.monotonic() - began < FOREVER_SECONDS / 2
    connection.close()
    assert value_of("show statement_timeout") == "0"


@pytest.mark.usefixtures("_fresh")
def test_a_server_that_ends_no_statement_is_left() -> None:
    """As one does whose disk hangs: it answers new connections."""
    connection.ensure_connection()
    used = connection.connection
    assert isinstance(used, PatientConnection)
    used.longest_seconds = 0.3
    began = time.monotonic()
    with pytest.raises(OperationalError, match="closed the connection"):
        value_of(f"select pg_sleep({FOREVER_SECONDS})")
    assert time.monotonic() - began < FOREVER_SECONDS / 2
    connection.close()
    assert value_of("select 1") == 1


@pytest.mark.usefixtures("_fresh")
def test_connecting_is_limited() -> None:
    connection.ensure_connection()
    assert isinstance(connection.connection, PatientConnection)
    assert connection.connection.info.get_parameters()["connect_timeout"] == str(CONNECT_SECONDS)


@pytest.mark.usefixtures("_fresh")
def test_a_slow_statement_of_a_server_that_answers_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def answering(used: object) -> bool:
        asked.append(used)
        return True

    monkeypatch.setattr(liveness, "UNRESPONSIVE_SECONDS", 0.2)
    monkeypatch.setattr(liveness, "answers_now", answering)
    assert value_of("select 1 from pg_sleep(1)") == 1
    assert len(asked) > 1, "it is asked again"


@pytest.mark.usefixtures("_fresh")
def test_a_silent_server_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "UNRESPONSIVE_SECONDS", 0.2)
    monkeypatch.setattr(liveness, "answers_now", lambda used: False)
    began = time.monotonic()
    with pytest.raises(OperationalError, match="closed the connection"):
        value_of(f"select pg_sleep({FOREVER_SECONDS})")
    assert time.monotonic() - began < FOREVER_SECONDS / 2


def test_what_answers(database: str) -> None:
    with psycopg.connect(database) as used:
        assert answers_now(used)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        info = SimpleNamespace(host="localhost", hostaddr="127.0.0.1", port=deaf.getsockname()[1])
        assert not answers_now(SimpleNamespace(info=info), 0.2)  # type: ignore[arg-type]
    assert not answers_now(SimpleNamespace(info=info), 0.2), "nobody listens"  # type: ignore[arg-type]
