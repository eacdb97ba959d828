"""How many connections of the pool a request takes: all but one of them are queues that it waits in for nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx
import pytest

from groups.topics import TopicService
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.database.pool import Database
from kcoord.process.runtime import Runtime
from tests.support.api import Members
from tests.support.api_transactions import txn_body
from tests.support.fixtures import ClientWith

GROUP = "/v1/groups/g/offsets"

Taken = list[str]


@pytest.fixture
def config() -> Config:
    """No process looks by itself while a test runs."""
    return Config({"notifications.repair.interval.ms": 60_000})


@pytest.fixture
def taken(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> Taken:
    """Grows by the name of the pool whenever a request takes a connection; not for what is noted after requests."""
    found: Taken = []
    plain = Database._borrowed

    def counted(self: Database, pool: Any) -> AbstractAsyncContextManager[Any]:
        task = asyncio.current_task()
        if self is runtime.db and not (task and task.get_name() == "kcoord-token-use"):
            found.append("writers" if pool is self._writers else "readers")
        return plain(self, pool)

    monkeypatch.setattr(Database, "_borrowed", counted)
    return found


@pytest.fixture
async def elsewhere(database: str, clock: VirtualClock, config: Config) -> AsyncIterator[TopicService]:
    """The catalogue in another process, whose notifications do not arrive here."""
    async with _running(Runtime(config, database, clock)) as other:
        yield other.get(TopicService)


@asynccontextmanager
async def _running(runtime: Runtime) -> AsyncIterator[Runtime]:
    await runtime.start()
    try:
        yield runtime
    finally:
        await runtime.stop()


def deaf(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process gets no more notifications."""
    monkeypatch.setattr(runtime.notifications, "_dispatch", lambda channel, payload: None)


async def committed(api: httpx.AsyncClient, **topic: Any) -> list[str]:
    """The results of a commit of two partitions by nobody in particular."""
    partitions = [{"partition": number, "committed_offset": 7} for number in (0, 1)]
    response = await api.post(f"{GROUP}/commit", json={"topics": [{**topic, "partitions": partitions}]})
    assert response.status_code == 200, response.text
    return [partition["error"] for partition in response.json()["topics"][0]["partitions"]]


async def test_commit_takes_one_connection(api: httpx.AsyncClient, runtime: Runtime, topic: str, taken: Taken) -> None:
    assert await committed(api, name=topic) == ["NONE", "NONE"]
    topic_id = str((await runtime.get(TopicService).get(topic)).topic_id)
    for named in ({"name": topic}, {"topic_id": topic_id}):
        taken.clear()
        assert await committed(api, **named) == ["NONE", "NONE"]
        assert taken == ["writers"]


async def test_commit_of_a_member_takes_one_connection(
    members: Members, api: httpx.AsyncClient, topic: str, taken: Taken
) -> None:
    member = await members.stable()
    partitions = [{"partition": 0, "committed_offset": 7}]
    body = {
        "member_id": member["member_id"],
        "generation_id_or_member_epoch": member["generation_id"],
        "topics": [{"name": topic, "partitions": partitions}],
    }
    for _ in range(2):  # the first one reads the catalogue
        taken.clear()
        assert (await api.post(f"{GROUP}/commit", json=body)).status_code == 200
    assert taken == ["writers"]


async def test_fetch_takes_one_connection(api: httpx.AsyncClient, topic: str, taken: Taken) -> None:
    await committed(api, name=topic)
    named = {"topics": [{"name": topic, "partitions": [0]}]}
    for body, pool in ((named, "readers"), ({}, "readers"), ({**named, "require_stable": True}, "writers")):
        taken.clear()
        response = await api.post(f"{GROUP}/fetch", json=body)
        assert response.json()["topics"][0]["partitions"][0]["committed_offset"] == 7
        assert taken == [pool]


async def test_transactional_commit_takes_two_connections(api: httpx.AsyncClient, topic: str, taken: Taken) -> None:
    """One to see whether its producer is registered, before the group is locked."""
    path = f"{GROUP}/txn-commit"
    assert (await api.post(path, json=txn_body({0: 7}, topic))).status_code == 200
    taken.clear()
    response = await api.post(path, json=txn_body({0: 8}, topic))
    assert response.json()["topics"][0]["partitions"][0]["error"] == "NONE"
    assert taken == ["readers", "writers"]


async def test_topic_that_another_process_has_just_created_is_found(
    api: httpx.AsyncClient,
    runtime: Runtime,
    elsewhere: TopicService,
    topic: str,
    taken: Taken,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await committed(api, name=topic)
    deaf(runtime, monkeypatch)
    await elsewhere.create("by-name", 2)
    by_id = await elsewhere.create("by-id", 1)
    assert await committed(api, name="by-name") == ["NONE", "NONE"]
    await elsewhere.update("by-name", partitions=3)
    await elsewhere.update("by-id", partitions=2)
    taken.clear()
    assert await committed(api, topic_id=str(by_id.topic_id)) == ["NONE", "NONE"]
    assert taken == ["readers", "writers"]


async def test_id_of_a_topic_that_another_process_has_just_replaced_is_unknown(
    api: httpx.AsyncClient, runtime: Runtime, elsewhere: TopicService, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else an old consumer would set the offsets of the new topic."""
    old = str((await runtime.get(TopicService).get(topic)).topic_id)
    assert await committed(api, topic_id=old) == ["NONE", "NONE"]
    deaf(runtime, monkeypatch)
    await elsewhere.delete(topic)
    await elsewhere.create(topic, 3)
    assert await committed(api, topic_id=old) == ["UNKNOWN_TOPIC_ID"] * 2
    response = await api.post(f"{GROUP}/fetch", json={"topics": [{"topic_id": old, "partitions": [0]}]})
    assert response.json()["topics"][0]["partitions"][0]["error"] == "UNKNOWN_TOPIC_ID"


async def test_topic_that_does_not_exist_is_looked_for_in_the_database(
    api: httpx.AsyncClient, topic: str, taken: Taken
) -> None:
    await committed(api, name=topic)
    taken.clear()
    assert await committed(api, name="nope") == ["UNKNOWN_TOPIC_OR_PARTITION"] * 2
    assert taken == ["readers"]
    taken.clear()
    assert await committed(api, topic_id="00000000-0000-4000-8000-000000000000") == ["UNKNOWN_TOPIC_ID"] * 2
    assert taken == ["readers"]


async def test_topic_that_the_caller_may_not_describe_is_not_looked_for(
    client_with: ClientWith, api: httpx.AsyncClient, topic: str, taken: Taken
) -> None:
    await committed(api, name=topic)
    client = await client_with("read:group:*")
    await committed(client, name=topic)
    for name in (topic, "nope"):
        taken.clear()
        assert await committed(client, name=name) == ["TOPIC_AUTHORIZATION_FAILED"] * 2
        assert taken == []
