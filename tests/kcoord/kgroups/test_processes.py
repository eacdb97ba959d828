"""`manage.py kgroups` as a process: against a server elsewhere, and against the database of its own installation."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
from django.conf import settings

from kcoord.access.rights import TRUSTED_CALLER
from tests.kcoord.kgroups.conftest import Run, run_tool
from tests.support.processes import ROOT, Running, database_url, environment, free_port, start_server

pytestmark = pytest.mark.processes
WHOLE = pytest.mark.whole("a Python for every command; the default has one, and runs the others in process")

SECONDS = 120


@pytest.fixture
def server(database: str) -> Iterator[Running]:
    """A server; nobody waits for more members, and no member is removed while commands are started one by one."""
    timeouts = dict.fromkeys(("SESSION_TIMEOUT_MS", "MAX_SESSION_TIMEOUT_MS"), 600_000)
    patient = {f"KCOORD_GROUP_CONSUMER_{name}": value for name, value in timeouts.items()}
    with start_server(database, env={"KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 0, **patient}) as running:
        running.wait_ready()
        yield running


@pytest.fixture
def remote(server: Running, token: str) -> Iterator[httpx.Client]:
    """A client of the server whose token may do everything. There is a topic `orders` with two partitions."""
    with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}, timeout=30) as client:
        assert client.post("/v1/topics", json={"name": "orders", "partitions": 2}).status_code == 201
        marks = [{"partition": p, "log_start_offset": 0, "log_end_offset": 100} for p in (0, 1)]
        assert client.post("/v1/topics/orders/watermarks", json={"partitions": marks}).status_code == 200
        yield client


def kgroups(data_dir: Path, conninfo: str | None, *arguments: str, **env: object) -> subprocess.CompletedProcess[str]:
    """One run of the command as an operator starts it."""
    return subprocess.run(
        [sys.executable, "manage.py", "kgroups", *arguments],
        cwd=ROOT,
        env=environment(conninfo, data_dir, env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def commit(client: httpx.Client, group: str, offset: int) -> None:
    """Commit an offset of a group without members on both partitions of `orders`."""
    partitions = [{"partition": p, "committed_offset": offset} for p in (0, 1)]
    body = {"topics": [{"name": "orders", "partitions": partitions}]}
    assert client.post(f"/v1/groups/{group}/offsets/commit", json=body).status_code == 200


def consumer(client: httpx.Client, group: str) -> None:
    """A member of a consumer group that owns both partitions."""
    body = {
        "member_id": "0b0ce5a3-6b1f-4f43-9b6c-3c4be1a4a2f1",
        "member_epoch": 0,
        "client_id": "worker",
        "rebalance_timeout_ms": 30_000,
        "subscribed_topic_names": ["orders"],
        "topic_partitions": [],
    }
    assert client.post(f"/v1/groups/{group}/consumer-heartbeat", json=body).status_code == 200


@WHOLE
def test_every_verb_over_http(
    server: Running,
    remote: httpx.Client,
    token: str,
    tmp_path: Path,
    worker_database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first and the last in processes. There is no database that the command could use: it must not need one."""
    commit(remote, "old", 40)
    consumer(remote, "busy")
    file = tmp_path / "token"
    file.write_text(f"{token}\n")

    where = ("--url", server.url, "--token-file", str(file))
    monkeypatch.setattr(settings, "CONNINFO", "host=127.0.0.1 port=9 dbname=none user=none")

    def run(*arguments: str) -> Run:
        done = run_tool(*arguments, *where)
        assert token not in done.out + done.err
        return done

    listed = kgroups(tmp_path / "data", None, "--list", "--state", "--type", *where)
    assert token not in listed.stdout + listed.stderr
    assert [line.split() for line in listed.stdout.splitlines()[1:]] == [
        ["busy", "Consumer", "Stable"],
        ["old", "Classic", "Empty"],
    ]
    described = run("--describe", "--all-groups")
    assert described.err == "\nConsumer group 'old' has no active members.\n"
    member = "0b0ce5a3-6b1f-4f43-9b6c-3c4be1a4a2f1"
    assert [line.split() for line in described.out.splitlines() if line[:5] in ("busy ", "old  ")] == [
        ["busy", "orders", "0", "-", "100", "-", member, "127.0.0.1", "worker"],
        ["busy", "orders", "1", "-", "100", "-", member, "127.0.0.1", "worker"],
        ["old", "orders", "0", "40", "100", "60", "-", "-", "-"],
        ["old", "orders", "1", "40", "100", "60", "-", "-", "-"],
    ]
    reset = run("--reset-offsets", "--all-groups", "--topic", "orders:0", "--to-earliest", "--execute")
    assert reset.status == 1, "one of them has a member"
    assert "Offsets of group 'busy' can only be reset while it is inactive" in reset.out
    assert reset.out.splitlines()[-1].split() == ["old", "orders", "0", "0"]
    plan = reset.err.split("plan ")[1].split()[0]
    undone = run("--reset-offsets", "--group", "old", "--undo", plan, "--execute")
    assert (undone.status, undone.out.splitlines()[-1].split()) == (0, ["old", "orders", "0", "40"])
    deleted = run("--delete-offsets", "--group", "old", "--topic", "orders:1")
    assert (deleted.status, deleted.out.splitlines()[-1].split()) == (0, ["orders", "1", "Successful"])
    gone = run("--delete", "--group", "old")
    assert (gone.status, gone.out) == (0, "Deletion of requested consumer groups ('old') was successful.\n")
    assert run("--delete", "--group", "busy").status == 1
    from_environment = kgroups(tmp_path / "data", None, "--list", "--url", f"{server.url}/", KCOORD_TOKEN=token)
    assert (from_environment.returncode, from_environment.stdout, from_environment.stderr) == (0, "busy\n", "")
    with psycopg.connect(worker_database) as connection:
        who = connection.execute("select distinct principal from offset_commit_log where kind <> 'commit'").fetchall()
    assert [name.startswith("test-") for (name,) in who] == [True], "the journal names the token"


@WHOLE
def test_tokens_that_are_refused_are_not_repeated(
    server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    told = {
        "kc_wrong-and-secret": "Error: The command failed: SASL_AUTHENTICATION_FAILED: unknown token",
        "not a token": "does not contain a valid one",
        "gehëim": "not contain",
        "": "is empty",
    }
    for wrong, problem in told.items():
        file.write_text(wrong)
        monkeypatch.setenv("KCOORD_TOKEN", wrong)
        for options in ((), ("--token-file", str(file))):
            run = run_tool("--list", "--url", server.url, *options)
            assert (run.status, problem in run.out + run.err) == (1, True), run
            assert not wrong or wrong not in run.out + run.err
    missing = run_tool("--list", "--url", server.url, "--token-file", str(tmp_path / "none"))
    assert (missing.status, "cannot be read: No such file or directory" in missing.err) == (1, True)


@WHOLE
def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCOORD_TOKEN", "kc_x")
    run = run_tool("--list", "--url", "http://127.0.0.1:9")
    assert run.status == 1
    assert run.out.startswith("\nError: The command failed: COORDINATOR_NOT_AVAILABLE: GET http://127.0.0.1:9/v1/")


def test_without_a_url_it_is_the_database_of_the_installation(
    server: Running, remote: httpx.Client, database: str, tmp_path: Path
) -> None:
    commit(remote, "old", 40)
    reset = kgroups(
        tmp_path, database, "--reset-offsets", "--group", "old", "--all-topics", "--shift-by", "5", "--execute"
    )
    assert (reset.returncode, reset.stdout.splitlines()[-1].split()) == (0, ["old", "orders", "1", "45"]), reset
    offsets = remote.get("/v1/groups/old/offsets").json()["offsets"]
    assert [found["committed_offset"] for found in offsets] == [45, 45]
    with psycopg.connect(database) as connection:
        who = connection.execute("select distinct principal from offset_commit_log where kind = 'reset'").fetchall()
    assert [name.startswith("local:") for (name,) in who] == [True], "the journal names the account"


@WHOLE
def test_a_reader_that_has_seen_enough(database: str, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        done = subprocess.run(
            [sys.executable, "manage.py", "kgroups", "--delete", "--all-groups"],
            cwd=ROOT,
            env=environment(database, tmp_path),
            stdout=pipe,
            stderr=subprocess.PIPE,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "")


@WHOLE
def test_a_database_that_is_not_there_is_an_error_and_an_end(tmp_path: Path) -> None:
    conninfo = "host=127.0.0.1 port=9 dbname=none user=none password=very-secret"
    assert "very-secret" in database_url(conninfo)
    done = kgroups(tmp_path, conninfo, "--list", "--timeout", "1000")
    assert done.returncode == 1
    assert done.stdout.startswith("\nError: The command failed: Postgres cannot be reached: ")
    assert "Traceback" not in done.stderr
    assert "very-secret" not in done.stdout + done.stderr


@WHOLE
def test_nobody_on_the_network_is_a_trusted_caller(server: Running) -> None:
    claims = [
        {TRUSTED_CALLER: "local:root"},
        {TRUSTED_CALLER.upper().replace(".", "-"): "local:root"},
        {"Forwarded": f"for=127.0.0.1;{TRUSTED_CALLER}=local:root"},
    ]
    for claim in claims:
        for method, path in (("GET", "/v1/groups"), ("POST", "/v1/groups/g/offsets/fetch")):
            json = {"topics": None} if method == "POST" else None
            answer = httpx.request(method, f"{server.url}{path}", headers=claim, params=claim, json=json, timeout=30)
            assert answer.status_code == 401, answer.text


@WHOLE
def test_without_a_service_it_is_one_line_at_once(tmp_path: Path) -> None:
    began = time.monotonic()
    kgroups(tmp_path, None, "--help")
    started = time.monotonic()
    done = kgroups(tmp_path, None, "--list")
    start_s, whole_s = started - began, time.monotonic() - started
    assert whole_s < 4 * start_s + 10, "it gave up on the first attempt; starting Python and Django is the rest"
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == (
        f"\nError: The command failed: no service is running in {tmp_path}; `make up` starts one, or name another "
        "service with --url\n"
    )


def test_a_service_whose_postgres_does_not_answer_is_not_said_to_be_stopped(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = kgroups(tmp_path, None, "--list")
    assert done.stdout.startswith("\nError: The command failed: Postgres cannot be reached: ")
    assert f"; try again; if that does not help, see {tmp_path / 'kcoord.log'}, or name another" in done.stdout


@WHOLE
def test_without_the_postgres_that_is_named_too(tmp_path: Path) -> None:
    url = f"postgresql://me:topsecret@127.0.0.1:{free_port()}/kcoord"
    done = kgroups(tmp_path, None, "--list", KCOORD_DATABASE_URL=url)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("\nError: The command failed: Postgres cannot be reached: ")
    assert done.stdout.endswith("; start it or correct KCOORD_DATABASE_URL, or name another service with --url\n")
    assert "topsecret" not in done.stdout
