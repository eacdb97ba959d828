"""Runs of Spark jobs over the REST API: their processes, their records, who may do what. No Spark is started."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from kcoord.config import Config
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from offsets.runs import run_process
from offsets.runs.run_process import RunLogs
from offsets.runs.service import BEGIN_MS, LOST, SIGN_OF_LIFE_MS, SparkRuns
from tests.support.api import assert_problem
from tests.support.fixtures import ClientWith
from tests.support.spark_runs import put_day, put_run

RUNS = "/v1/archive/runs"
LOCK = "select pg_advisory_lock(hashtextextended('kcoord.spark.' || %s, 0))"
PATIENCE_SECONDS = 60

WORKING = """
import sys, time
from offsets.spark.runs import Outcome, RunRequest, running
import uuid
with running(sys.argv[1], sys.argv[2], RunRequest(run_id=uuid.UUID(sys.argv[3]))) as run:
    print("it works", flush=True)
    run.progress = lambda: (3, 8)
    run.enter("write")
    while sys.argv[4] == "wait":
        run.check()
        time.sleep(0.05)
    run.outcome = Outcome(rows=5, result={"rows": 5})
"""
"""A run like those of Spark, without Spark."""

Processes = Callable[[str], None]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """An archive is configured."""
    return Config({}).override({"archive.path": str(tmp_path / "archive"), "data.dir": str(tmp_path / "data")})


@pytest.fixture
def processes(database: str, monkeypatch: pytest.MonkeyPatch) -> Processes:
    """Says what started processes do: `wait` until they are cancelled, `end`, or `crash` before the run begins."""

    def use(what: str) -> None:
        def command(kind: str, run_id: str, log_path: Path) -> Sequence[str]:
            if what == "crash":
                return (sys.executable, "-c", "raise SystemExit('no such module')")
            return (sys.executable, "-c", WORKING, database, kind, run_id, what)

        monkeypatch.setattr(run_process, "command", command)

    return use


@pytest.fixture
def tables(database: str) -> Iterator[psycopg.Connection]:
    """A connection to write rows with."""
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


async def until(api: httpx.AsyncClient, run_id: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The run as soon as something holds of it."""
    ends_at = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while True:
        run: dict[str, Any] = (await api.get(f"{RUNS}/{run_id}")).json()
        if holds(run):
            return run
        assert asyncio.get_running_loop().time() < ends_at, run
        await asyncio.sleep(0.05)


async def end(api: httpx.AsyncClient, run_id: str) -> None:
    """Cancel a run that has begun: a process that begins later would find the tables of the next test."""
    await until(api, run_id, lambda run: run["state"] == "running")
    await api.post(f"{RUNS}/{run_id}/cancel")
    await until(api, run_id, lambda run: run["state"] == "cancelled")


async def test_a_run_is_started_in_a_process_of_its_own_and_followed(
    api: httpx.AsyncClient, tables: psycopg.Connection, processes: Processes
) -> None:
    processes("wait")
    answer = await api.post(RUNS, json={"kind": "archive"})
    assert answer.status_code == 202, answer.text
    started = answer.json()
    assert started["requested_by"].startswith("test-")
    run = await until(api, started["id"], lambda run: run["slices"]["done"] == 3)
    assert (run["state"], run["stage"], run["slices"]) == ("running", "write", {"done": 3, "total": 8})
    row = tables.execute("select pid from offsets_sparkrun").fetchone()
    assert row is not None
    assert os.getpgid(row[0]) == row[0] != os.getpgid(0), "a group of its own"
    log = (await api.get(f"{RUNS}/{started['id']}/log")).json()
    assert log == {"id": started["id"], "log": "it works\n", "skipped_bytes": 0}
    refused = await api.post(RUNS, json={"kind": "archive"})
    assert_problem(refused, Error.INVALID_REQUEST, status=409)
    assert refused.json()["run"] == started["id"]
    for _ in range(2):
        cancelled = await api.post(f"{RUNS}/{started['id']}/cancel")
        assert cancelled.status_code == 200 or cancelled.json()["status"] == 409, cancelled.text
    run = await until(api, started["id"], lambda run: run["state"] != "running")
    assert (run["state"], run["error"]) == ("cancelled", "the run was cancelled")
    assert_problem(await api.post(f"{RUNS}/{started['id']}/cancel"), Error.INVALID_REQUEST, status=409)


async def test_a_run_that_ended_shows_its_result_and_the_next_may_start(
    api: httpx.AsyncClient, processes: Processes
) -> None:
    processes("end")
    for _ in range(2):
        started = (await api.post(RUNS, json={"kind": "reconcile"})).json()
        run = await until(api, started["id"], lambda run: run["state"] == "succeeded")
        assert (run["rows"], run["result"], run["error"]) == (5, {"rows": 5}, "")
    assert len((await api.get(RUNS)).json()["runs"]) == 2


async def test_a_process_that_ends_before_its_run_begins_is_a_failed_run(
    api: httpx.AsyncClient, processes: Processes
) -> None:
    processes("crash")
    started = (await api.post(RUNS, json={"kind": "archive"})).json()
    run = await until(api, started["id"], lambda run: run["state"] != "requested")
    assert run["state"] == "failed"
    assert "status 1 before the run began" in run["error"]
    assert (await api.get(f"{RUNS}/{started['id']}/log")).json()["log"] == "no such module\n"


async def test_of_requests_at_the_same_instant_one_starts(api: httpx.AsyncClient, processes: Processes) -> None:
    processes("wait")
    answers = await asyncio.gather(*(api.post(RUNS, json={"kind": "report"}) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [202, 409, 409, 409, 409]
    (started,) = (answer.json()["id"] for answer in answers if answer.status_code == 202)
    await end(api, started)


@pytest.mark.whole("waits for a process; a request that nobody took up is lost in the default")
async def test_a_run_whose_process_was_killed_is_lost_and_hinders_nobody(
    api: httpx.AsyncClient, tables: psycopg.Connection, processes: Processes
) -> None:
    processes("wait")
    started = (await api.post(RUNS, json={"kind": "archive"})).json()
    await until(api, started["id"], lambda run: run["state"] == "running")
    row = tables.execute("select pid from offsets_sparkrun where id = %s", (started["id"],)).fetchone()
    assert row is not None
    os.kill(row[0], signal.SIGKILL)
    run = await until(api, started["id"], lambda run: run["state"] == "lost")
    assert run["error"] == LOST
    assert run["ended_at"]
    assert_problem(await api.post(f"{RUNS}/{started['id']}/cancel"), Error.INVALID_REQUEST, status=409)
    processes("end")
    following = await api.post(RUNS, json={"kind": "archive"})
    assert following.status_code == 202
    await until(api, following.json()["id"], lambda run: run["state"] == "succeeded")


async def test_a_run_is_alive_while_its_lock_is_held_however_silent_it_is(
    api: httpx.AsyncClient, tables: psycopg.Connection, database: str
) -> None:
    silent = put_run(tables, "archive", "running", ago_ms=10 * SIGN_OF_LIFE_MS)
    assert (await api.get(f"{RUNS}/{silent}")).json()["state"] == "lost"
    with psycopg.connect(database) as holder:
        holder.execute(LOCK, ("archive",))
        assert (await api.get(f"{RUNS}/{silent}")).json()["state"] == "running"
        assert_problem(await api.post(RUNS, json={"kind": "archive"}), Error.INVALID_REQUEST, status=409)
        holder.execute("select pg_advisory_unlock_all()")  # Postgres may take a while to notice that a client has gone
    assert (await api.get(f"{RUNS}/{silent}")).json()["state"] == "lost"


async def test_a_request_that_nobody_took_up_is_lost(
    api: httpx.AsyncClient, tables: psycopg.Connection, processes: Processes
) -> None:
    fresh = put_run(tables, "archive", "requested", ago_ms=0)
    assert_problem(await api.post(RUNS, json={"kind": "archive"}), Error.INVALID_REQUEST, status=409)
    assert (await api.post(f"{RUNS}/{fresh}/cancel")).json()["state"] == "cancelled"
    stale = put_run(tables, "archive", "requested", ago_ms=2 * BEGIN_MS)
    assert (await api.get(f"{RUNS}/{stale}")).json()["state"] == "lost"
    processes("end")
    following = await api.post(RUNS, json={"kind": "archive"})
    assert following.status_code == 202
    await until(api, following.json()["id"], lambda run: run["state"] == "succeeded")
    states = tables.execute("select state from offsets_sparkrun where id = %s", (stale,)).fetchone()
    assert states == ("lost",)


async def test_runs_are_listed_newest_first_by_kind_in_pages(
    api: httpx.AsyncClient, tables: psycopg.Connection
) -> None:
    made = [put_run(tables, kind, ago_ms=ago * 1_000) for ago, kind in enumerate(("archive", "reconcile", "archive"))]
    put_day(tables, made[0], 20_000)
    put_day(tables, made[0], 20_001)
    first = (await api.get(f"{RUNS}?limit=2")).json()
    assert [run["id"] for run in first["runs"]] == made[:2]
    assert [run["days"] for run in first["runs"]] == [2, 0]
    second = (await api.get(f"{RUNS}?limit=2&cursor={first['next_cursor']}")).json()
    assert ([run["id"] for run in second["runs"]], second["next_cursor"]) == (made[2:], None)
    assert [run["id"] for run in (await api.get(f"{RUNS}?kind=reconcile")).json()["runs"]] == [made[1]]


async def test_the_result_of_a_run_names_no_group(api: httpx.AsyncClient, tables: psycopg.Connection) -> None:
    put_run(tables, "reconcile", findings=1, result={"rows": 3, "findings": [{"group": "secret"}]})
    assert (await api.get(RUNS)).json()["runs"][0]["result"] == {"rows": 3}


async def test_looking_takes_describe_and_starting_admin_on_the_cluster(
    tables: psycopg.Connection, client_with: ClientWith
) -> None:
    run_id = put_run(tables)
    stranger = await client_with("read:group:g", "read:topic:orders")
    for answer in (
        await stranger.get(RUNS),
        await stranger.post(RUNS, json={"kind": "archive"}),
        await stranger.get(f"{RUNS}/{run_id}"),
        await stranger.get(f"{RUNS}/{run_id}/log"),
        await stranger.post(f"{RUNS}/{run_id}/cancel"),
    ):
        assert_problem(answer, Error.CLUSTER_AUTHORIZATION_FAILED)
    reader = await client_with("describe:cluster:kafka-cluster")
    assert (await reader.get(RUNS)).status_code == 200
    assert (await reader.get(f"{RUNS}/{run_id}")).status_code == 200
    for answer in (
        await reader.post(RUNS, json={"kind": "archive"}),
        await reader.get(f"{RUNS}/{run_id}/log"),
        await reader.post(f"{RUNS}/{run_id}/cancel"),
    ):
        assert_problem(answer, Error.CLUSTER_AUTHORIZATION_FAILED)


@pytest.mark.parametrize("run_id", ["7f9c24e8-3b12-4fef-91e0-56a2d5a1f0b3", "nonsense", "%00", "a%2Fb"])
async def test_a_run_that_is_not_there(api: httpx.AsyncClient, run_id: str) -> None:
    for answer in (
        await api.get(f"{RUNS}/{run_id}"),
        await api.get(f"{RUNS}/{run_id}/log"),
        await api.post(f"{RUNS}/{run_id}/cancel"),
    ):
        assert_problem(answer, Error.INVALID_REQUEST, status=404)


@pytest.mark.parametrize(
    ("body", "field"), [({"kind": "restore"}, "kind"), ({}, "kind"), ({"kind": "archive", "adopt": True}, "adopt")]
)
async def test_bad_requests_are_refused_by_name(api: httpx.AsyncClient, body: dict[str, Any], field: str) -> None:
    assert_problem(await api.post(RUNS, json=body), Error.INVALID_REQUEST, field=field)
    assert_problem(await api.get(f"{RUNS}?kind=x"), Error.INVALID_REQUEST, field="kind")
    assert_problem(await api.get(f"{RUNS}?cursor=WzEsImEiXQ"), Error.INVALID_REQUEST, field="cursor")


async def test_the_log_of_a_run_from_elsewhere_is_not_here(api: httpx.AsyncClient, tables: psycopg.Connection) -> None:
    run_id = put_run(tables)
    assert (await api.get(f"{RUNS}/{run_id}/log")).json()["log"] is None


def test_logs_are_cut_and_the_oldest_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_process, "TAIL_BYTES", 5)
    monkeypatch.setattr(run_process, "MOST_LOGS", 2)
    logs = RunLogs(Config({}).override({"data.dir": str(tmp_path)}))
    for number, run_id in enumerate("abc"):
        path = logs.create(run_id)
        path.write_text("0123456789")
        os.utime(path, (number, number))
    tail = logs.tail("c")
    assert tail is not None
    assert (tail.text, tail.size, tail.skipped) == ("56789", 10, 5)
    assert logs.tail("a") is None
    assert logs.tail("b") is not None
    assert path.stat().st_mode & 0o777 == 0o600


class TestWithoutArchive:
    """No archive is configured."""

    @pytest.fixture
    def config(self, tmp_path: Path) -> Config:
        return Config({}).override({"data.dir": str(tmp_path)})

    async def test_nothing_is_started(self, api: httpx.AsyncClient, runtime: Runtime) -> None:
        refused = await api.post(RUNS, json={"kind": "archive"})
        assert_problem(refused, Error.INVALID_REQUEST, status=409)
        assert "KCOORD_ARCHIVE_PATH" in refused.json()["detail"]
        assert await runtime.get(SparkRuns).start_scheduled("archive") == ""
        assert (await api.get(RUNS)).json() == {"runs": [], "next_cursor": None}


async def test_the_schedule_starts_a_run_unless_one_goes_on(
    api: httpx.AsyncClient, runtime: Runtime, processes: Processes
) -> None:
    processes("wait")
    runs = runtime.get(SparkRuns)
    started = await runs.start_scheduled("archive")
    assert (await runs.run(started)).requested_by == "schedule"
    assert await runs.start_scheduled("archive") == ""
    await end(api, started)


def test_the_schedule_is_in_rows_that_a_start_of_beat_leaves_alone(database: str) -> None:
    from django.conf import settings
    from django_celery_beat.models import PeriodicTask

    for name in ("offsets.archive", "offsets.reconcile"):
        entry = PeriodicTask.objects.get(task=name)
        assert entry.enabled
        assert entry.expire_seconds == 3_600
        assert entry.name not in settings.CELERY_BEAT_SCHEDULE
