"""How sessions of Postgres begin, and what ends one whose process stalls in a transaction."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from kcoord.database.liveness import TCP_BOUNDS
from kcoord.database.sql import queries

Q = queries("kcoord")

PIPELINED_FROM = 17_00_00
"""The first server version that limits whole transactions. An older one does not end a session whose client stopped in
a pipeline: there each statement is awaited, and the limit for sessions that are idle in a transaction applies."""


def arguments(conninfo: str, name: str) -> dict[str, Any]:
    """What to connect to `conninfo` with, besides the address; `name`: the `application_name`.

    The address keeps the TCP parameters that it has.
    """
    address = conninfo_to_dict(conninfo)
    return {
        **{parameter: value for parameter, value in TCP_BOUNDS.items() if parameter not in address},
        "autocommit": True,
        "application_name": name,
    }


async def limit(
    connection: psycopg.AsyncConnection[Any],
    *,
    statement_ms: int,
    idle_transaction_ms: int,
    lock_ms: int = 0,
    transaction_ms: int = 0,
) -> None:
    """Limit what statements, transactions and waits for locks of a session may take (ms; 0: no limit).

    Not by options of the connection: a pooler such as pgbouncer refuses those, or ignores them and limits nothing.
    Transactions are limited from server version 17 on. Raises psycopg.Error.
    """
    parameters = {
        "statement": f"{statement_ms}ms",
        "idle": f"{idle_transaction_ms}ms",
        "lock": f"{lock_ms}ms",
        "transaction": f"{transaction_ms if connection.info.server_version >= PIPELINED_FROM else 0}ms",
    }
    await connection.execute(Q.limit_session.encode(), parameters)


async def lift_transaction_limit(connection: psycopg.AsyncConnection[Any]) -> None:
    """Let the current transaction last longer. Raises psycopg.Error."""
    if connection.info.server_version >= PIPELINED_FROM:
        await connection.execute(Q.lift_transaction_limit.encode())
