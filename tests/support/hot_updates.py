"""How many updates of a table were HOT, by the counters of Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import psycopg

COUNTERS = "select relname, n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where relname = any(%s)"
CONNECTED = """
select count(*) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and application_name = 'kcoord'
"""


@dataclass(frozen=True, slots=True)
class Updates:
    """Updates of the rows of one table, and how many of them were HOT."""

    all: int
    hot: int

    def since(self, before: Updates) -> Updates:
        """What was counted after `before`."""
        return Updates(self.all - before.all, self.hot - before.hot)

    @property
    def ratio(self) -> float:
        """Of all updates those that were HOT, 0 to 1."""
        return self.hot / self.all if self.all else 0.0


def updates(connection: psycopg.Connection[tuple[object, ...]], tables: Sequence[str]) -> dict[str, Updates]:
    """The counters of these tables as of now. A backend reports at the latest when it ends: see `connected`."""
    assert connection.autocommit, "a transaction sees the counters of its beginning"
    found = {
        str(row[0]): Updates(int(str(row[1])), int(str(row[2]))) for row in connection.execute(COUNTERS, [list(tables)])
    }
    return {table: found.get(table, Updates(0, 0)) for table in tables}


def connected(connection: psycopg.Connection[tuple[object, ...]]) -> bool:
    """Is a backend of the service left, whose counters are not reported yet?"""
    row = connection.execute(CONNECTED).fetchone()
    assert row is not None
    return bool(row[0])
