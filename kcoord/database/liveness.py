"""Detects an unresponsive Postgres: stopped, or cut off while its connections stay open.

statement_timeout is enforced by the server and does not help then; TCP's timeouts help only on TCP. So a connection
that has waited for an answer for a while probes whether the server answers at all, and is closed if it does not. A
slow statement is not affected: the server that executes it does answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
import structlog
from psycopg.rows import TupleRow

log = structlog.get_logger(__name__)

T = TypeVar("T")

UNRESPONSIVE_SECONDS = 5.0
"""How long a connection waits before Postgres is probed."""
ANSWER_SECONDS = 3.0
"""How long the probe waits for an answer."""
HURRIED_SECONDS = 0.5
"""Both, while the process is stopping."""

TCP_BOUNDS = {
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "connect_timeout": 5,
}
"""libpq parameters that detect a lost peer on TCP even on idle connections. An address may override them."""

_SSL_REQUEST = (8).to_bytes(4, "big") + (80_877_103).to_bytes(4, "big")
"""The one message that every Postgres answers without authentication: one byte, whether it supports TLS."""


async def answers(connection: psycopg.AsyncConnection[Any], seconds: float = ANSWER_SECONDS) -> bool:
    """Whether the server at the other end of a connection answers a new one within `seconds`."""
    info = connection.info
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await _dial(info.host, info.hostaddr, info.port)
            try:
                writer.write(_SSL_REQUEST)
                return bool(await reader.read(1))
            finally:
                writer.close()
    except (TimeoutError, OSError, psycopg.Error):
        return False


async def _dial(host: str, address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if host.startswith(("/", "@")):
        path = f"{host}/.s.PGSQL.{port}"
        return await asyncio.open_unix_connection("\0" + path[1:] if host.startswith("@") else path)
    return await asyncio.open_connection(address or host, port)


class LivenessWatch:
    """Watches the connections of one process that wait for Postgres."""

    def __init__(self) -> None:
        self._unresponsive_seconds = UNRESPONSIVE_SECONDS
        self._answer_seconds = ANSWER_SECONDS
        self._waiting: dict[WatchedConnection, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @contextmanager
    def watch(self, connection: WatchedConnection) -> Iterator[None]:
        """`connection` is waiting as long as the block runs."""
        self._arm(connection)
        try:
            yield
        finally:
            handle = self._waiting.pop(connection, None)
            if handle is not None:
                handle.cancel()

    def hurry(self) -> None:
        """The process is stopping: current and future waits are probed soon."""
        self._unresponsive_seconds = self._answer_seconds = HURRIED_SECONDS
        for connection, handle in tuple(self._waiting.items()):
            handle.cancel()
            self._arm(connection)

    def _arm(self, connection: WatchedConnection) -> None:
        loop = asyncio.get_running_loop()
        self._waiting[connection] = loop.call_later(self._unresponsive_seconds, self._look, connection)

    def _look(self, connection: WatchedConnection) -> None:
        task = asyncio.ensure_future(self._ask(connection, self._waiting[connection]))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self, connection: WatchedConnection, began: asyncio.TimerHandle) -> None:
        alive = await answers(connection, self._answer_seconds)
        if self._waiting.get(connection) is not began:
            return  # the answer arrived meanwhile
        if alive:
            self._arm(connection)
            return
        log.warning("database_unresponsive", seconds=self._unresponsive_seconds)
        hang_up(connection)


class WatchedConnection(psycopg.AsyncConnection[TupleRow]):
    """A connection that stops waiting for an unresponsive server.

    `database_ms`: the database's own clock when it was last read on this connection.
    """

    patience: LivenessWatch | None = None
    database_ms: int | None = None

    async def wait(self, *args: Any, **kwargs: Any) -> Any:
        """As in the base class: every exchange with the server goes through here."""
        if self.patience is None:
            return await super().wait(*args, **kwargs)
        with self.patience.watch(self):
            return await super().wait(*args, **kwargs)


def hang_up(connection: psycopg.AsyncConnection[Any]) -> None:
    """End a connection from outside: whatever waits on it sees it closed by the other side."""
    with contextlib.suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.pgconn.socket)) as ours:
        ours.shutdown(socket.SHUT_RDWR)
