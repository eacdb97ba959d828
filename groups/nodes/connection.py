"""The connection of a node for its lease: its own, so that a crowd of requests cannot hold up a renewal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any

import psycopg
from psycopg.rows import TupleRow

from kcoord.config import Config
from kcoord.database import sessions
from kcoord.database.origin import Origins
from kcoord.database.pool import Connection
from kcoord.setting_table import LEASE

LOCK_MS = 1_000
"""How long to wait for another node that changes who owns what; after that the next renewal tries again."""


class NodeConnection:
    """Opens when it is needed, and again after it was lost."""

    def __init__(self, conninfo: str, config: Config, origins: Origins | None = None) -> None:
        """`origins`: which servers not to use; None: each will do."""
        self._limit_ms = config.int("database.transaction.timeout.ms")
        self._conninfo = conninfo
        self._lease_ms = config.int(LEASE)
        self._arguments = sessions.arguments(conninfo, "kcoord-node")
        self._origins = origins or Origins(conninfo)
        self._timeline: int | None = None
        self._connection: psycopg.AsyncConnection[TupleRow] | None = None

    @asynccontextmanager
    async def transaction(self, *, long: bool = False) -> AsyncIterator[Connection]:
        """A transaction, committed at the end of the block. Raises psycopg.Error.

        Postgres ends it after `database.transaction.timeout.ms`: a node that freezes in it holds locks for no longer.
        `long`: its statements may take longer, and Postgres ends it when the node has been silent for that time.
        """
        try:
            connection = await self._open()
            stepwise = long or connection.info.server_version < sessions.PIPELINED_FROM
            pipeline: AbstractAsyncContextManager[Any] = nullcontext() if stepwise else connection.pipeline()
            async with pipeline, connection.transaction():
                if long:
                    await sessions.lift_transaction_limit(connection)
                yield connection
        except BaseException:
            # Also when the caller gave up: a connection in the middle of an exchange is of no use.
            await self.close()
            raise

    async def _open(self) -> Connection:
        connection = self._connection
        if self._origins.is_past(self._timeline):
            await self.close()
            connection = None
        if connection is None or connection.closed:
            self._timeline = None
            connection = await psycopg.AsyncConnection.connect(self._conninfo, **self._arguments)
            self._connection = connection
            await sessions.limit(
                connection,
                statement_ms=self._lease_ms,
                idle_transaction_ms=self._limit_ms,
                lock_ms=LOCK_MS,
                transaction_ms=self._limit_ms,
            )
            self._timeline = await self._origins.check(connection)
        return connection

    async def close(self) -> None:
        """Close the connection, if it is open."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
