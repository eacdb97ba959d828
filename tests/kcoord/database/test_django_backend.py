"""Limits on the waits of Django's own connection. That Postgres falls silent is in tests/processes."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from django.db import OperationalError, connection

from kcoord.database.django_backend.base import CONNECT_SECONDS, limited_statements
from kcoord.database.liveness import PatientConnection

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
