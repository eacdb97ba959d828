"""Django's own connection: of the pages, the admin, tokens and Celery beat. No wait of it is without a limit.

Django's backend for Postgres, which connects with `PatientConnection`. While a web request is served, statements are
limited too, as those of the data plane are: a migration may take hours, a page may not.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import psycopg
from django.db.backends.postgresql import base

from kcoord.database.liveness import TCP_BOUNDS, PatientConnection, refuse_past
from kcoord.database.sql import queries

Q = queries("kcoord")

CONNECT_SECONDS = 3
"""How long connecting may take, for each address of the server. libpq takes no less than 2."""

GRACE_SECONDS = 1.0
"""A connection is closed this long after Postgres should have ended the statement, and did not."""

_limit_ms: ContextVar[int | None] = ContextVar("statement_limit_ms", default=None)


@contextmanager
def limited_statements(limit_ms: int) -> Iterator[None]:
    """No statement of a connection that is opened in the block takes longer than `limit_ms`."""
    token = _limit_ms.set(limit_ms)
    try:
        yield
    finally:
        _limit_ms.reset(token)


def _connect(**parameters: Any) -> PatientConnection:
    """As psycopg.connect. Raises psycopg.OperationalError."""
    limit_ms = _limit_ms.get()
    bounds = {**TCP_BOUNDS, "connect_timeout": CONNECT_SECONDS}
    parameters = {**{name: value for name, value in bounds.items() if name not in parameters}, **parameters}
    connection = PatientConnection.connect(**parameters)
    if limit_ms is not None:
        connection.longest_seconds = limit_ms / 1000 + GRACE_SECONDS
        connection.execute(Q.limit_statements.encode(), {"timeout": f"{limit_ms}ms"})
        connection.commit()
    try:
        refuse_past(connection)
    except psycopg.Error:
        connection.close()
        raise
    return connection


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's, with another class of connections."""

    Database = types.SimpleNamespace(**{**vars(psycopg), "connect": _connect})
