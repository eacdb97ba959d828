"""Day partitions of the journal outlive a test that truncates tables: whoever makes or counts them drops them."""

from __future__ import annotations

import psycopg
from psycopg import sql

DAYS = "select relname from pg_class where relname ~ '^offset_commit_log_[0-9]{8}$' and relkind = 'r' order by 1"


def drop_days(conninfo: str) -> None:
    """Drop every day; lines and the default partition stay."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        for (name,) in connection.execute(DAYS).fetchall():
            connection.execute(sql.SQL("drop table {}").format(sql.Identifier(name)))
