"""Requests that wait for items are woken by whatever gives them some, in any process, and hold no connection.

Source: share.md 7.7.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from groups.core.model.commands import ShareHeartbeat
from groups.engine.service import GroupService
from groups.topics import TopicService, Watermark
from kcoord.access.rights import ALL_ALLOWED, Principal
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from offsets.share.service import ItemService
from offsets.share.store import ItemRequest
from offsets.share.waiting import ItemWaiters
from tests.support.items import acquire, asked, held, joined, report, settle

LONG_MS = 25_000
EVERYTHING = Principal(0, "w", ALL_ALLOWED)

Waiting = asyncio.Task[dict[str, Any]]


async def waiting(api: httpx.AsyncClient, runtime: Runtime, member_id: str, most: int = 10) -> Waiting:
    """A request that waits, once it does."""
    waiters = runtime.get(ItemWaiters)
    before = waiters.waiting("mailing")
    task = asyncio.create_task(acquire(api, member_id, most, max_wait_ms=LONG_MS))
    while waiters.waiting("mailing") == before:
        assert not task.done(), task.result()
        await asyncio.sleep(0.01)
    return task


async def given(task: Waiting) -> list[tuple[Any, int]]:
    """Offsets and delivery counts that a request was given."""
    return [(lock["offsets"], lock["delivery_count"]) for lock in (await task)["locks"]]


@pytest.fixture
async def elsewhere(database: str, clock: VirtualClock, config: Config) -> AsyncIterator[Runtime]:
    """Another process on the same database."""
    runtime = Runtime(config, database, clock)
    await runtime.start()
    await runtime.notifications.wait_listening()
    yield runtime
    await runtime.stop()


async def test_a_reported_end_wakes(api: httpx.AsyncClient, job: str, runtime: Runtime) -> None:
    await joined(api, "w")
    task = await waiting(api, runtime, "w")
    await report(api, 2)
    assert await given(task) == [([[0, 1]], 1)]


async def test_an_end_that_another_worker_knows_wakes(
    api: httpx.AsyncClient,
    job: str,
    clock: VirtualClock,
    runtime: Runtime,
) -> None:
    for member_id in ("w", "v"):
        await joined(api, member_id)
        clock.advance(1_000)
    task = await waiting(api, runtime, "w", most=1)
    assert [offsets for _, offsets, _ in await held(api, "v", 1, end=2)] == [[[0, 0]]]
    assert await given(task) == [([[1, 1]], 1)]


async def test_a_release_wakes(api: httpx.AsyncClient, job: str, clock: VirtualClock, runtime: Runtime) -> None:
    for member_id in ("w", "v"):
        await joined(api, member_id)
        clock.advance(1_000)
    ((lock, _, _),) = await held(api, "v", 1, end=1)
    task = await waiting(api, runtime, "w")
    await settle(api, "v", {"lock": lock, "release": [[0, 0]]})
    assert await given(task) == [([[0, 0]], 2)]


async def test_a_member_that_leaves_wakes(
    api: httpx.AsyncClient,
    job: str,
    clock: VirtualClock,
    runtime: Runtime,
) -> None:
    for member_id in ("w", "v"):
        await joined(api, member_id)
        clock.advance(1_000)
    await held(api, "v", 1, end=1)
    task = await waiting(api, runtime, "w")
    await asked(api, "share-heartbeat", member_id="v", member_epoch=-1)
    assert await given(task) == [([[0, 0]], 2)]


async def test_what_another_process_does_wakes(
    api: httpx.AsyncClient,
    job: str,
    runtime: Runtime,
    clock: VirtualClock,
    elsewhere: Runtime,
) -> None:
    for member_id in ("w", "v"):
        await joined(api, member_id)
        clock.advance(1_000)
    task = await waiting(api, runtime, "w")
    await elsewhere.get(TopicService).set_watermarks("job", [Watermark(0, 0, 1)])
    assert await given(task) == [([[0, 0]], 1)]
    lock = (await task)["locks"][0]["lock"]
    task = await waiting(api, runtime, "v")
    release = b'[{"lock": %d, "release": [[0, 0]]}]' % lock
    assert [
        outcome.why for outcome in await elsewhere.get(ItemService).settle(ItemRequest("mailing", "w", release, [lock]))
    ] == [None]
    assert await given(task) == [([[0, 0]], 2)]
    task = await waiting(api, runtime, "w")
    leave = ShareHeartbeat("mailing", "v", -1)
    assert (await elsewhere.get(GroupService).share_heartbeat(leave)).error is Error.NONE
    assert await given(task) == [([[0, 0]], 3)]


async def test_partitions_that_the_member_gets_meanwhile_are_worked_on(
    api: httpx.AsyncClient,
    job: str,
    clock: VirtualClock,
    runtime: Runtime,
) -> None:
    assert (await api.post("/v1/topics", json={"name": "more", "partitions": 1})).status_code == 201
    more = {"partitions": [{"partition": 0, "log_start_offset": 0, "log_end_offset": 1}]}
    assert (await api.post("/v1/topics/more/watermarks", json=more)).status_code == 200
    await joined(api, "w")
    clock.advance(1_000)
    task = await waiting(api, runtime, "w")
    await asked(api, "share-heartbeat", member_id="w", member_epoch=1, subscribed_topic_names=["job", "more"])
    assert [lock["topic"] for lock in (await task)["locks"]] == ["more"]


async def test_a_lock_that_ends_and_a_delay_that_is_over_wake(
    database: str,
    config: Config,
    job: str,
    api: httpx.AsyncClient,
) -> None:
    """By the clock of the database: timers of the process look at the rows when they say so."""
    short = config.override({"group.share.min.record.lock.duration.ms": 1_000})
    runtime = Runtime(short, database)
    await runtime.start()
    try:
        groups, items = runtime.get(GroupService), runtime.get(ItemService)
        joining = ShareHeartbeat("real", "w", 0, subscribed_topic_names=frozenset({"job"}))
        epoch = (await groups.share_heartbeat(joining)).member_epoch
        await runtime.get(TopicService).set_watermarks("job", [Watermark(0, 0, 1)])
        ask = ItemRequest("real", "w", member_epoch=epoch, most=1, lock_ms=1_000)
        (first,) = (await items.acquire(ask, EVERYTHING, 0)).locks
        (second,) = (await items.acquire(ask, EVERYTHING, LONG_MS)).locks
        assert (first.delivery_count, second.delivery_count) == (1, 2)
        release = b'[{"lock": %d, "release": [[0, 0]], "delay_ms": 300}]' % second.lock
        await items.settle(ItemRequest("real", "w", release, [second.lock]))
        (third,) = (await items.acquire(ask, EVERYTHING, LONG_MS)).locks
        assert third.delivery_count == 3
    finally:
        await runtime.stop()


async def test_waiting_takes_no_connection(api: httpx.AsyncClient, job: str, runtime: Runtime) -> None:
    await joined(api, "w")
    size = runtime.config.int("database.pool.size")
    tasks = [await waiting(api, runtime, "w", 1) for _ in range(2 * size)]
    assert [usage.waiting for usage in runtime.db.usage().values()] == [0, 0]
    await report(api, len(tasks))
    answers = [await given(task) for task in tasks]
    found = sorted(offsets[0][0] for answer in answers for offsets, _ in answer)
    assert found == list(range(len(tasks)))


async def test_a_server_that_stops_answers_at_once(api: httpx.AsyncClient, job: str, runtime: Runtime) -> None:
    await joined(api, "w")
    task = await waiting(api, runtime, "w")
    await runtime.drain()
    assert await given(task) == []


async def test_a_request_ends_with_nothing_when_its_time_is_over(api: httpx.AsyncClient, job: str) -> None:
    await joined(api, "w")
    assert (await acquire(api, "w", max_wait_ms=50))["locks"] == []
