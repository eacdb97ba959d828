"""The connection of a node for its lease: its own, so that a crowd of requests cannot hold up a renewal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow

from kcoord.config import LEASE, Config
from kcoord.database.liveness import TCP_BOUNDS
from kcoord.database.pool import Connection

LOCK_MS = 1_000
"""How long to wait for another node that changes who owns what; after that the next renewal tries again."""


class NodeConnection:
    """Opens when it is needed, and again after it was lost."""

    def __init__(self, conninfo: str, config: Config) -> None:
        address = conninfo_to_dict(conninfo)
        bounds = (
            f"-c statement_timeout={config.int(LEASE)} -c lock_timeout={LOCK_MS}"
            f" -c idle_in_transaction_session_timeout={config.int('database.transaction.timeout.ms')}"
        )
        self._conninfo = conninfo
        self._kwargs = {
            **{name: value for name, value in TCP_BOUNDS.items() if name not in address},
            "options": f"{address.get('options') or ''} {bounds}".strip(),
            "application_name": "kcoord-node",
        }
        self._connection: psycopg.AsyncConnection[TupleRow] | None = None

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A transaction, committed at the end of the block. Raises psycopg.Error."""
        connection = self._connection
        if connection is None or connection.closed:
            connection = await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True, **self._kwargs)  # type: ignore[arg-type]
            self._connection = connection
        try:
            async with connection.pipeline(), connection.transaction():
                yield connection
        except BaseException:
            # Also when the caller gave up: a connection in the middle of an exchange is of no use.
            await self.close()
            raise

    async def close(self) -> None:
        """Close the connection, if it is open."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
