"""A database that is put back to an earlier state, as a restore or a failover to a standby that lags behind does it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

PARENTS_FIRST = (
    "groups_revision",
    "groups_topic",
    "groups_groupconfigoverride",
    "groups_grouplabels",
    "groups_group",
    "groups_member",
    "groups_pendingmember",
    "groups_consumermember",
    "groups_assignment",
    "offsets_committedoffset",
)
OTHERS = "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"


class Backup:
    """The rows of groups and topics as they were when it was made."""

    def __init__(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        self._connection = connection

    def restore(self) -> None:
        """Put every row back, in one transaction that tells nobody."""
        with self._connection.transaction():
            for table in reversed(PARENTS_FIRST):
                self._connection.execute(sql.SQL("delete from {}").format(sql.Identifier(table)))
            for table in PARENTS_FIRST:
                names = sql.Identifier(table), sql.Identifier("backup", table)
                self._connection.execute(sql.SQL("insert into {} select * from {}").format(*names))

    def cut_connections(self, application_name: str) -> None:
        """End the backends of an application, as a server that goes away does."""
        self._connection.execute(
            f"select pg_terminate_backend(pid) from ({OTHERS} and application_name = %s)".encode(), [application_name]
        )

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        """Rows of a statement, on a connection that is not the service's."""
        cursor = self._connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


@contextmanager
def backup(conninfo: str) -> Iterator[Backup]:
    """Remember the rows of groups and topics as they are now."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("drop schema if exists backup cascade")
        connection.execute("create schema backup")
        for table in PARENTS_FIRST:
            names = sql.Identifier("backup", table), sql.Identifier(table)
            connection.execute(sql.SQL("create table {} as table {}").format(*names))
        try:
            yield Backup(connection)
        finally:
            connection.execute("drop schema backup cascade")
