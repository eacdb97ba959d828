"""/metrics on Celery and Postgres; groups are in tests/offsets/metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx
import psycopg
import pytest
from celery import shared_task
from prometheus_client.parser import text_string_to_metric_families

from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from kcoord.setting import Value
from tests.support.api import client_of
from tests.support.members import eventually

QUEUE = "kcoord_task_queue_messages"
FAILURES = "kcoord_task_failures_total"


@pytest.fixture
def settings() -> dict[str, Value]:
    """Settings of the test, by their names."""
    return {}


@pytest.fixture
def config(config: Config, settings: dict[str, Value]) -> Config:
    """With those of the test."""
    return config.override({"metrics.cache.ms": 0, **settings})


async def scrape(token: str | None = None) -> dict[tuple[str, ...], float]:
    """Values by name and values of labels."""
    async with client_of(token) as client:
        response = await client.get("/metrics")
    assert response.status_code == 200, response.text
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


async def test_each_scrape_looks_when_the_timers_last_ran(runtime: Runtime, database: str, clock: VirtualClock) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("insert into kcoord_timerheartbeat values (1, %s)", [clock.now_ms()])
    for late_ms in (1_500, 3_000):
        clock.advance(1_500)
        assert (await scrape())["kcoord_tick_lag_ms",] == late_ms


async def test_how_busy_the_pools_are(runtime: Runtime) -> None:
    async with runtime.db.connection(), runtime.db.connection():
        found = await scrape()
    size = runtime.config.int("database.pool.size")
    assert found["kcoord_database_up",] == 1
    assert 0 < found["kcoord_database_answer_seconds",] < 60
    assert found["kcoord_database_connections", "read", "used"] == 2
    assert found["kcoord_database_connections", "read", "idle"] >= 1
    assert found["kcoord_database_connections", "write", "used"] == 0
    assert found["kcoord_database_connections_max", "read"] == size
    assert found["kcoord_database_connections_max", "write"] == size
    assert found["kcoord_database_waiting", "read"] == 0


@pytest.mark.parametrize("settings", [{"database.pool.size": 2, "database.acquire.timeout.ms": 600}])
async def test_callers_that_wait_for_a_connection(runtime: Runtime) -> None:
    async with runtime.db.connection(), runtime.db.connection():

        async def wait() -> None:
            async with runtime.db.connection():
                pass

        waiting = asyncio.create_task(wait())

        async def waits() -> bool:
            return runtime.db.usage()["read"].waiting == 1

        await eventually(waits, "somebody waits for a connection")
        found = await scrape()  # it waits as well, in vain
        assert found["kcoord_database_up",] == 0
        assert found["kcoord_database_connections", "read", "used"] == 2
    await asyncio.gather(waiting, return_exceptions=True)


async def test_an_outage_is_a_zero_and_not_an_error(runtime: Runtime, token: str) -> None:
    await scrape(token)
    await runtime.db.close()
    for secret in (None, token):
        found = await scrape(secret)
        assert found["kcoord_database_up",] == 0
        assert ("kcoord_offsets_expired_total",) not in found
        assert any(name == "kcoord_http_requests_total" for name, *_ in found)


@pytest.fixture
def queue(database: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """Celery's queue, empty."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("select pgmq.create('kcoord')")
        connection.execute("select pgmq.purge_queue('kcoord')")
        yield connection
        connection.execute("select pgmq.drop_queue('kcoord')")


async def test_tasks_that_no_worker_has_taken(runtime: Runtime, queue: psycopg.Connection[tuple[object, ...]]) -> None:
    assert (await scrape())[QUEUE,] == 0
    queue.execute("select pgmq.send('kcoord', '{}') from generate_series(1, 3)")
    queue.execute("select pgmq.read('kcoord', 60, 1)")
    assert (await scrape())[QUEUE,] == 2


async def test_a_queue_that_was_never_used(runtime: Runtime, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:  # other tests of this worker may have used it
        connection.execute("select pgmq.drop_queue('kcoord') where to_regclass('pgmq.q_kcoord') is not null")
    assert (QUEUE,) not in await scrape()


@pytest.mark.parametrize("settings", [{"broker.url": "redis://127.0.0.1:1/0"}])
async def test_what_is_left_in_the_queue_after_a_change_of_the_broker(
    runtime: Runtime, queue: psycopg.Connection[tuple[object, ...]]
) -> None:
    queue.execute("select pgmq.send('kcoord', '{}')")
    assert (QUEUE,) not in await scrape()


@shared_task(name="tests.breaks")
def breaks(how: str) -> None:
    """A task of which runs fail."""
    if how:
        raise ValueError(how)


async def test_failures_of_tasks_are_counted_by_task(runtime: Runtime) -> None:
    before = (await scrape()).get((FAILURES, "tests.breaks"), 0)

    def run() -> None:
        for how in ("badly", "", "badly"):
            breaks.apply([how])

    await asyncio.to_thread(run)
    assert (await scrape())[FAILURES, "tests.breaks"] - before == 2


async def test_a_failure_during_an_outage_is_only_logged(runtime: Runtime) -> None:
    await runtime.db.close()
    result = await asyncio.to_thread(breaks.apply, ["badly"])
    assert result.state == "FAILURE"


async def test_it_is_read_only(api: httpx.AsyncClient) -> None:
    assert (await api.post("/metrics")).status_code == 405
