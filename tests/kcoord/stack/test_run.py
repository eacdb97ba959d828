"""Server, worker, beat and migrate as separate processes, as containers and units run them."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from kcoord.stack import bootstrap, run
from tests.support.database import cloned_database
from tests.support.http_members import HttpMember, make_token
from tests.support.processes import READY_SECONDS, Running, free_port, start
from tests.support.tls import copy

pytestmark = [
    pytest.mark.processes,
    pytest.mark.whole("each role a Python of its own, as containers and units run them"),
]

GRACE_SECONDS = 10
"""What a manifest must grant at least, its own delays not counted."""


def start_role(role: str, conninfo: str | None, **env: object) -> Running:
    """A role with a data directory that does not exist, so that writing to it would show."""
    return start(role, ["-m", "kcoord.stack.run", role], conninfo, {"PYTHONDONTWRITEBYTECODE": 1, **env})


def events(running: Running) -> list[dict[str, Any]]:
    """What it logged; every line must be a JSON object."""
    return [json.loads(line) for line in running.output.splitlines()]


@pytest.fixture
def empty_database(postgres: str) -> Iterator[str]:
    """A database without tables."""
    with cloned_database(postgres, "template1") as conninfo:
        yield conninfo


async def test_a_group_works_with_every_role_a_process_and_each_stops_on_sigterm(empty_database: str) -> None:
    with start_role("migrate", empty_database) as migrate:
        assert migrate.wait(60) == 0, migrate.output
        assert [event["event"] for event in events(migrate)][-1] == "migrated"
        assert not (migrate.directory / "data").exists()
    port = free_port()
    token = make_token(empty_database)
    with (
        start_role("server", empty_database, KCOORD_PORT=port, KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS=0) as server,
        start_role("worker", empty_database) as worker,
        start_role("beat", empty_database) as beat,
    ):
        server.port = port
        await asyncio.to_thread(server.wait_ready, timers=True)
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
            member = HttpMember(client, [server.url])
            assert await member.become_stable() == {"t": [0]}
            assert (await member.commit(0, 7))[0] == 200
            other = HttpMember(client, [server.url])
            waiting = asyncio.create_task(other.join(attempts=2, max_wait_ms=60_000))
            await until_state(client, f"{server.url}/v1/groups/g", "PreparingRebalance")
            for running in (beat, worker, server):
                assert await asyncio.to_thread(running.terminate, GRACE_SECONDS) == 0, running.output
            with pytest.raises(AssertionError):  # the first attempt got it a member id, the second waited
                await waiting
            assert other.answers[-1][1]["action"] == "retry", other.answers
        for running in (beat, worker, server):
            assert events(running)
            assert not (running.directory / "data").exists(), f"{running.name} wrote to its data directory"


async def until_state(client: httpx.AsyncClient, url: str, state: str) -> None:
    deadline = time.monotonic() + 20
    while (await client.get(url)).json()["state"] != state:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


def test_a_second_migration_finds_nothing_to_do(database: str) -> None:
    with start_role("migrate", database, KCOORD_HOST="0.0.0.0") as migrate:
        assert migrate.wait(60) == 0, migrate.output
        assert [event["event"] for event in events(migrate)] == ["migrated"], "no word on what concerns servers"


def test_a_server_says_which_settings_are_doubtful(database: str) -> None:
    with start_role("server", database, KCOORD_HOST="0.0.0.0", KCOORD_PORT=free_port()) as server:
        server.wait_for_output("Application startup complete")
        assert server.terminate() == 0
        said = [event["event"] for event in events(server)]
    assert any("KCOORD_SECURE_COOKIES=true" in text for text in said)
    assert any("Set KCOORD_ALLOWED_HOSTS" in text for text in said)


def test_a_migration_that_is_stopped_has_not_succeeded(database: str) -> None:
    waits = "select 1 from pg_locks where locktype = 'advisory' and not granted"
    with (
        psycopg.connect(database, autocommit=True) as connection,
        bootstrap.alone(database),
        start_role("migrate", database) as migrate,
    ):
        deadline = time.monotonic() + 30
        while connection.execute(waits).fetchone() is None:
            assert time.monotonic() < deadline, migrate.report("does not wait for the lock")
            time.sleep(0.02)
        assert migrate.terminate() == run.INTERRUPTED


@pytest.mark.parametrize("role", run.ROLES)
def test_a_role_stopped_while_it_starts_ends(role: str) -> None:
    """As process 1 of a container it must have a handler before the slow imports: here it does before the first."""
    nowhere = f"host=127.0.0.1 port={free_port()} dbname=none user=none"
    with start_role(role, nowhere, KCOORD_PORT=free_port(), PYTHONVERBOSE=1) as running:
        running.wait_for_output("import 'structlog")
        assert running.terminate() == (run.INTERRUPTED if role == "migrate" else 0)


@pytest.mark.parametrize(
    ("role", "conninfo", "env", "problem"),
    [
        ("worker", None, {}, "KCOORD_DATABASE_URL is not set"),
        ("server", "host=127.0.0.1 dbname=none", {"KCOORD_SECRET_KEY": ""}, "KCOORD_SECRET_KEY is not set"),
        ("server", "host=127.0.0.1 dbname=none", {"KCOORD_TRUSTED_PROXIES": "*"}, "KCOORD_TRUSTED_PROXIES: '*' is no"),
        ("beat", "host=127.0.0.1 dbname=none", {"KCOORD_PROT": 1}, "KCOORD_PROT: no such setting"),
        (
            "beat",
            "host=127.0.0.1 dbname=none",
            {"KCOORD_COMMIT_LANE": "false"},
            "KCOORD_COMMIT_LANE: no longer a setting",
        ),
        ("migrate", "host=127.0.0.1 dbname=none", {"KCOORD_ADVERTISED_URL": "here"}, "KCOORD_ADVERTISED_URL: expected"),
    ],
)
def test_what_keeps_a_role_from_starting_is_one_line(
    role: str, conninfo: str | None, env: dict[str, object], problem: str
) -> None:
    with start_role(role, conninfo, **env) as running:
        assert running.wait(READY_SECONDS) == 2, running.output
        (event,) = events(running)
        assert event["event"] == "cannot_start"
        assert event["problem"].startswith(problem)


def test_a_crash_is_one_line_too(empty_database: str) -> None:
    """Beat reads its schedule from tables that are not there."""
    with start_role("beat", empty_database, KCOORD_LOG_LEVEL="error") as beat:
        assert beat.wait(30) == 1
        assert events(beat)[-1]["event"] == "crashed"


def test_beat_waits_for_a_database_that_is_not_there() -> None:
    nowhere = f"host=127.0.0.1 port={free_port()} dbname=none user=none"
    with start_role("beat", nowhere) as beat:
        beat.wait_for_output("waiting for Postgres: ")
        assert beat.terminate() == 0


def test_worker_and_beat_that_start_in_an_outage_work_once_it_is_over(database: str) -> None:
    parts = conninfo_to_dict(database)
    port = free_port()
    tcp = f"host=127.0.0.1 port={port} dbname={parts['dbname']} user={parts['user']}"
    with start_role("worker", tcp) as worker, start_role("beat", tcp) as beat:
        worker.wait_for_output("Connection refused")
        beat.wait_for_output("waiting for Postgres: ")
        with forwarded(port, f"{parts['host']}/.s.PGSQL.{parts.get('port') or 5432}"):
            deadline = time.monotonic() + 60
            with psycopg.connect(database, autocommit=True) as connection:
                while connection.execute("select 1 from kcoord_timerheartbeat").fetchone() is None:
                    assert time.monotonic() < deadline, worker.report("ran no timers") + beat.report("")
                    time.sleep(0.1)
            assert (worker.terminate(), beat.terminate()) == (0, 0)


@contextmanager
def forwarded(port: int, path: str) -> Iterator[None]:
    """Connections to a port of loopback go to a socket file."""

    def accept() -> None:
        with suppress(OSError):  # the listener was closed
            while True:
                client, _ = listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(path)
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=copy, args=ends, daemon=True).start()

    with socket.create_server(("127.0.0.1", port)) as listener:
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)
