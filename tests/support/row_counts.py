"""How many rows statements read, as Postgres counts them."""

from __future__ import annotations

from typing import Any

import psycopg


def rows_read(connection: psycopg.Connection[Any], *tables: str) -> int:
    """Rows of these tables that the transaction has read, by any scan."""
    row = connection.execute(
        "select sum(seq_tup_read + idx_tup_fetch) from pg_stat_xact_user_tables where relname = any(%s)", [list(tables)]
    ).fetchone()
    assert row is not None
    return int(row[0])
