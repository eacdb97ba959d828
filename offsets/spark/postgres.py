"""Connections of runs, and the exported snapshot that all slices of a job read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow, class_row

from kcoord.database.sql import queries
from offsets.spark.errors import JobError, first_line

Q = queries("offsets.spark")

APPLICATION_NAME = "kcoord-spark"
CONNECT_SECONDS = 10
DEADLINE_MS = 1_800_000
_SECRETS = {"password": "PGPASSWORD"}

Connection = psycopg.Connection[TupleRow]


def without_secrets(conninfo: str) -> str:
    """The address without its password, which is put into this process's environment.

    Options of a data source are pickled, planned and logged; local Python workers inherit the environment.
    On a cluster the executors need a PGPASSFILE of their own.
    """
    parts = dict(conninfo_to_dict(conninfo))
    for name, variable in _SECRETS.items():
        if (value := parts.pop(name, None)) is not None:
            os.environ[variable] = str(value)
    return make_conninfo("", **parts)


def connect(conninfo: str, *, autocommit: bool = False) -> Connection:
    """A connection. Raises JobError, without the address, if Postgres does not answer."""
    given = conninfo_to_dict(conninfo).get("options") or ""
    try:
        return psycopg.connect(
            conninfo,
            autocommit=autocommit,
            application_name=APPLICATION_NAME,
            connect_timeout=CONNECT_SECONDS,
            options=f"{given} -c statement_timeout=0 -c timezone=UTC".strip(),
        )
    except psycopg.OperationalError as error:
        raise JobError(f"Postgres cannot be reached: {first_line(error)}") from None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of the database, for any number of sessions while the transaction that exported it is open.

    `bound`: all transactions with a smaller id (as in the journal's `xact_id`) have ended, and those that committed are
    visible. It is comparable within one cluster only: `system_identifier`, and `timeline`, which a promotion changes.
    `taken_at` in ms; `journal_bytes` is the size of the journal without its indexes.
    """

    id: str
    bound: int
    system_identifier: str
    timeline: int
    taken_at: int
    journal_bytes: int


@contextmanager
def exported_snapshot(conninfo: str, deadline_ms: int = DEADLINE_MS) -> Iterator[Snapshot]:
    """A snapshot that slices can use until the block is left, or for `deadline_ms` at most.

    While it is open, vacuum cannot remove newer dead rows in the whole database, hence the deadline: Postgres then ends
    the transaction, and slices that begin later report it. Raises JobError.
    """
    with connect(conninfo) as keeper:
        keeper.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        try:
            keeper.execute(Q.lock_journal.encode())
            keeper.execute(Q.keep_snapshot.encode(), {"deadline": f"{deadline_ms}ms"})
            row = keeper.cursor(row_factory=class_row(Snapshot)).execute(Q.export_snapshot.encode()).fetchone()
        except psycopg.Error as error:
            raise JobError(f"cannot take a snapshot of the database: {first_line(error)}") from error
        assert row is not None
        yield row
        try:
            keeper.rollback()
        except psycopg.Error:
            return  # it ended by its deadline, after the last slice was read


def use_snapshot(connection: Connection, snapshot: str) -> None:
    """Begin a read-only transaction that sees what the snapshot sees."""
    connection.isolation_level, connection.read_only = psycopg.IsolationLevel.REPEATABLE_READ, True
    connection.execute(sql.SQL(Q.use_snapshot).format(snapshot=sql.Literal(snapshot)))
