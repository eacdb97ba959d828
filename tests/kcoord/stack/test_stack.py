"""The whole stack as `make up` runs it: embedded Postgres, setup, server, worker and beat, in real processes."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import socket
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest

from kcoord.stack import credentials
from tests.support.processes import Running, free_port, start, wait_until_gone

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("stack")]

WHOLE = pytest.mark.whole("more starts of the whole stack; the default has one, and kills and freezes another")
SERVICES = {"postgres", "server", "worker", "beat"}
STARTED = re.compile(r"stack    \| (\w+) started \(process (\d+)\)")


def up(data_dir: Path, **env: object) -> Running:
    """Start the stack on a free port."""
    port = free_port()
    running = start("stack", ["-m", "kcoord.stack"], None, {"KCOORD_DATA_DIR": data_dir, "KCOORD_PORT": port, **env})
    running.port = port
    return running


def pids(running: Running) -> dict[str, int]:
    """The latest process of each service, as the log tells them."""
    return {name: int(pid) for name, pid in STARTED.findall(running.output)}


def everybody(running: Running) -> set[int]:
    """The supervisor and everything below it, right now."""
    supervisor = psutil.Process(running.pid)
    return {supervisor.pid, *(child.pid for child in supervisor.children(recursive=True))}


def assert_nothing_is_left(data_dir: Path, processes: set[int]) -> None:
    """None of these processes lives, and no process at all holds the data directory."""
    wait_until_gone(*processes)
    descriptor = os.open(data_dir / "lock", os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)


@dataclass(frozen=True)
class FirstRun:
    """What the first start in a data directory left behind."""

    data_dir: Path
    output: str
    log: str
    groups: httpx.Response
    processes: set[int]
    status: int


@pytest.fixture(scope="module")
def first_run() -> Iterator[FirstRun]:
    """Start in an empty directory, use the API with the new token, stop with Ctrl-C."""
    parent = Path(tempfile.mkdtemp(prefix="kcoord-up-"))
    data_dir = parent / "data with a space, and a comma"
    try:
        with up(data_dir) as running:
            running.wait_ready(timers=True)
            token = credentials.read(data_dir).api_token
            groups = httpx.get(f"{running.url}/v1/groups", headers={"Authorization": f"Bearer {token}"})
            processes = everybody(running)
            running.send(signal.SIGINT)
            status = running.wait()
            yield FirstRun(data_dir, running.output, (data_dir / "kcoord.log").read_text(), groups, processes, status)
    finally:
        shutil.rmtree(parent, ignore_errors=True)


def test_the_first_start_serves_and_says_where_its_credentials_are(first_run: FirstRun) -> None:
    made = credentials.read(first_run.data_dir)
    assert first_run.groups.status_code == 200, first_run.groups.text
    assert made.admin_password not in first_run.output, "a file and no terminal"
    assert made.api_token not in first_run.output
    assert f"API token of the first start are in {first_run.data_dir / 'credentials'}" in first_run.output
    assert set(STARTED.findall(first_run.output)) >= {(name, pid) for name, pid in STARTED.findall(first_run.log)}
    assert {name for name, _ in STARTED.findall(first_run.log)} == {"setup", *SERVICES}


def test_a_normal_start_and_stop_writes_nothing_that_reads_like_a_failure(first_run: FirstRun) -> None:
    said = re.findall(r"(?i)^.*(?:fatal|error|warning|traceback|no hostname|localhost:5432).*$", first_run.log, re.M)
    assert [line for line in said if "| info" not in line] == []


def test_secrets_are_readable_by_their_owner_alone_and_not_in_the_log(first_run: FirstRun) -> None:
    made = credentials.read(first_run.data_dir)
    assert made.admin_password not in first_run.log
    assert made.api_token not in first_run.log
    for name in ("credentials", "secret_key", "conninfo", "kcoord.log", "lock"):
        assert stat.S_IMODE((first_run.data_dir / name).stat().st_mode) == 0o600, name
    assert stat.S_IMODE((first_run.data_dir / "postgres").stat().st_mode) == 0o700
    assert stat.S_IMODE(first_run.data_dir.stat().st_mode) & 0o076 == 0


def test_ctrl_c_ends_everything(first_run: FirstRun) -> None:
    assert first_run.status == 0
    assert len(first_run.processes) > len(SERVICES)
    assert_nothing_is_left(first_run.data_dir, first_run.processes)


@WHOLE
def test_a_second_start_repeats_nothing_and_restarts_what_dies(first_run: FirstRun) -> None:
    made = credentials.read(first_run.data_dir)
    with up(first_run.data_dir) as running:
        running.wait_ready(timers=True)
        with up(first_run.data_dir) as second:
            assert refusal(second).startswith(f"kcoord: kcoord is already running in {first_run.data_dir}")
        for name in ("worker", "server", "postgres"):
            before = pids(running)[name]
            os.kill(before, signal.SIGKILL)
            assert httpx.get(f"{running.url}/livez", timeout=60).status_code == 200  # waits; it is not refused
            running.wait_for_output(f"{name} ended (signal 9 (SIGKILL)); starting it again in 0.5 s")
            running.wait_ready(timers=True)
            running.wait_for_output(f"{name} started", 30)
        after = everybody(running)
        assert set(pids(running).values()) & after >= {pids(running)[name] for name in SERVICES}
        running.terminate()
        assert_nothing_is_left(first_run.data_dir, after)
        assert made.api_token not in running.output
        assert "applying" not in running.output
        assert "first start" not in running.output


@WHOLE
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent is gone")
def test_when_the_supervisor_is_killed_all_end_and_the_next_start_works(first_run: FirstRun) -> None:
    with up(first_run.data_dir) as running:
        running.wait_ready()
        before = everybody(running)
        running.kill()
        with up(first_run.data_dir) as next_one:
            next_one.wait_ready()
            wait_until_gone(*before)
            next_one.terminate()


@WHOLE
def test_a_postgres_of_ones_own(first_run: FirstRun, postgres_url: str, tmp_path: Path) -> None:
    with up(tmp_path / "data", KCOORD_DATABASE_URL=postgres_url) as running:
        running.wait_ready(timers=True)
        assert "postgres" not in pids(running)
        assert not (tmp_path / "data" / "postgres").exists()
        assert (tmp_path / "data" / "credentials").exists()
        running.terminate()


@pytest.fixture
def postgres_url(postgres: str) -> Iterator[str]:
    """An empty database on the tests' server, without migrations."""
    from tests.support.database import cloned_database
    from tests.support.processes import database_url

    with cloned_database(postgres, "template0") as conninfo:
        yield database_url(conninfo)


def refusal(running: Running) -> str:
    """The one line of a stack that does not start, with exit status 2."""
    assert running.wait(30) == 2, running.output
    (line,) = running.output.splitlines()
    return line


def refused(env: Mapping[str, object], data_dir: Path) -> str:
    """The one line of a stack with these settings."""
    with up(data_dir, **env) as running:
        line = refusal(running)
    assert not (data_dir / "postgres").exists()
    return line


def test_a_port_in_use_is_one_line_with_the_remedy(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        line = refused({"KCOORD_PORT": port}, tmp_path / "data")
    assert line.startswith(f"kcoord: port {port} of 127.0.0.1 is in use; stop the other program or choose another")
