"""How sessions of Postgres begin, and what ends one whose process stalls in a transaction."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from kcoord.database.liveness import TCP_BOUNDS
from kcoord.sql import queries

Q = queries("kcoord")

PIPELINED_FROM = 17_00_00
"""The first server version that limits whole transactions. An older one does not end a session whose client stopped in
a pipeline: there each statement is awaited, and the limit for sessions that are idle in a transaction applies."""


def arguments(conninfo: str, name: str, **bounds_ms: int) -> dict[str, Any]:
    """What to connect to `conninfo` with, besides the address: `application_name`, and limits in ms by their settings.

    The address keeps the options and the TCP parameters that it has.
    """
    address = conninfo_to_dict(conninfo)
    options = [str(address.get("options") or ""), *(f"-c {setting}={value}" for setting, value in bounds_ms.items())]
    return {
        **{parameter: value for parameter, value in TCP_BOUNDS.items() if parameter not in address},
        "autocommit": True,
        "options": " ".join(options).strip(),
        "application_name": name,
    }


async def limit_transactions(connection: psycopg.AsyncConnection[Any], limit_ms: int) -> None:
    """Limit the transactions of a session, where the server can. Raises psycopg.Error."""
    if connection.info.server_version >= PIPELINED_FROM:
        await connection.execute(Q.limit_transactions.encode(), {"timeout": f"{limit_ms}ms"})


async def lift_transaction_limit(connection: psycopg.AsyncConnection[Any]) -> None:
    """Let the current transaction last longer. Raises psycopg.Error."""
    if connection.info.server_version >= PIPELINED_FROM:
        await connection.execute(Q.lift_transaction_limit.encode())
