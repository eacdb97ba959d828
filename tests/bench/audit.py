"""What an act pays for its record in the audit: the time of its transaction, beside the same one without a record.

`python -m tests.bench.audit` starts a Postgres of its own and takes some seconds. The act is as small as acts are: one
row is locked and changed. Both kinds take turns, so that other work on the machine slows them alike. That Postgres does
not flush (fsync is off): on a disk the flush at the commit comes to both, and the ratio is smaller.

By leaving out one part after the other, of the 0.17 ms of CPU that Postgres spent on a record besides the 0.08 ms of
the act, 0.06 were the statement and the row that is pending until the commit, 0.05 the hash, and the rest the row of
the chain, the record with its indexes and the removal of the pending row. Functions in PL/pgSQL instead of SQL saved
nothing.
"""

from __future__ import annotations

import time

import psycopg

from kcoord.access.audit.recording import Act, Q, parameters
from kcoord.requests.current import Caller, Door, Kind
from tests.support.database import ephemeral_database

ROUNDS, ACTS = 9, 200
CALLER = Caller(Door.HTTP, Kind.TOKEN, "deploy", "3", "192.0.2.1", "bench")
ACT = Act("quota.change", "quota", "default", {"cpu": "5"}, {"cpu": "6"}, "bench")
PUT = "insert into kcoord_quota (kind, name, budget, \"limit\") values ('default', '', 'cpu', 5)"
CHANGE = 'update kcoord_quota set "limit" = "limit" + 1 where kind = \'default\''


def milliseconds(connection: psycopg.Connection[tuple[object, ...]], *, recorded: bool) -> float:
    """The time of one act."""
    began = time.perf_counter()
    for _ in range(ACTS):
        connection.execute(CHANGE)
        if recorded:
            connection.execute(Q.append_audit.encode(), parameters(ACT, CALLER))
        connection.commit()
    return (time.perf_counter() - began) * 1000 / ACTS


def measured(connection: psycopg.Connection[tuple[object, ...]]) -> tuple[float, float]:
    """Milliseconds of an act without and with a record: the round with the median of their ratios."""
    connection.execute(PUT)
    before = connection.execute("select seq from kcoord_auditchain").fetchone() or (0,)
    connection.commit()
    milliseconds(connection, recorded=True)  # statements are prepared, tables are in memory
    pairs = [(milliseconds(connection, recorded=False), milliseconds(connection, recorded=True)) for _ in range(ROUNDS)]
    row = connection.execute("select seq - %s from kcoord_auditchain", [before[0]]).fetchone()
    assert row == ((ROUNDS + 1) * ACTS,), "every act was recorded"
    return sorted(pairs, key=lambda pair: pair[1] / pair[0])[ROUNDS // 2]


def main() -> None:
    """Print the time of an act without and with a record, and the ratio: the median of all rounds."""
    with ephemeral_database() as conninfo, psycopg.connect(conninfo) as connection:
        plain, recorded = measured(connection)
    print(f"{'an act without a record':36} {plain:9.3f} ms  1.00")
    print(f"{'an act with its record':36} {recorded:9.3f} ms  {recorded / plain:.2f}")


if __name__ == "__main__":
    main()
