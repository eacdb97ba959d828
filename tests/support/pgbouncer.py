"""A real pgbouncer in front of a test's database, where Debian's package is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

PATHS = f"{os.environ.get('PATH', '')}:/usr/sbin"
PORT = 6432
SECONDS = 30.0


def program() -> str:
    """Where it is. Skips the test if it is not installed."""
    path = shutil.which("pgbouncer", path=PATHS)
    if path is None:
        pytest.skip("pgbouncer is not installed (apt-get install pgbouncer)")
    return path


@contextmanager
def pgbouncer(database: str, mode: str, **settings: object) -> Iterator[str]:
    """The conninfo of the database behind one in this `pool_mode`, with its defaults but for these settings."""
    parts = conninfo_to_dict(database)
    with tempfile.TemporaryDirectory(prefix="kcoord-bouncer-") as name:
        folder = Path(name)
        folder.chmod(0o777)
        to = " ".join(f"{key}={parts[key]}" for key in ("host", "port", "dbname", "user") if key in parts)
        lines = {
            "listen_addr": "",
            "listen_port": PORT,
            "unix_socket_dir": name,
            "auth_type": "any",
            "pool_mode": mode,
            **settings,
        }
        text = "\n".join(f"{key} = {value}" for key, value in lines.items())
        (folder / "ini").write_text(f"[databases]\n{parts['dbname']} = {to}\n[pgbouncer]\n{text}\n")
        # It refuses to run as root, and the server's socket is for the server's user.
        user = ["-u", Path(str(parts["host"])).owner()] if os.geteuid() == 0 else []
        with (
            (folder / "log").open("w") as log,
            subprocess.Popen([program(), *user, str(folder / "ini")], stdout=log, stderr=log) as process,
        ):
            try:
                conninfo = make_conninfo(database, host=name, port=PORT)
                _wait(conninfo, process, folder / "log")
                yield conninfo
            finally:
                process.kill()


def _wait(conninfo: str, process: subprocess.Popen[bytes], log: Path) -> None:
    socket = Path(str(conninfo_to_dict(conninfo)["host"])) / f".s.PGSQL.{PORT}"
    until = time.monotonic() + SECONDS
    while process.poll() is None and time.monotonic() < until:
        if socket.exists():
            with suppress(psycopg.OperationalError), psycopg.connect(conninfo, connect_timeout=5):
                return
        time.sleep(0.02)
    raise AssertionError(log.read_text())
