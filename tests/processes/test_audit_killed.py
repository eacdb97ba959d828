"""kill -9 of a server in the middle of administrative acts: the chain verifies, and no act is without its record."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count

import httpx
import psycopg
import pytest

from kcoord.access.audit.chain import Audit
from kcoord.config import Config
from kcoord.process.runtime import Runtime
from tests.support.http_members import make_token
from tests.support.processes import Running, start_server

pytestmark = [
    pytest.mark.processes,
    pytest.mark.whole("kills servers under load; the default kills one with commits under way"),
]

KILLS = 3
BETWEEN = 25
"""So many topics are created between two kills."""
ACTORS = 4


@pytest.fixture
def servers(database: str) -> Iterator[list[Running]]:
    """Two servers."""
    running = [start_server(database) for _ in range(2)]
    try:
        for server in running:
            server.wait_ready()
        yield running
    finally:
        for server in running:
            server.close()


async def test_a_killed_server_leaves_no_act_without_record(database: str, servers: list[Running]) -> None:
    numbers, done, over = count(), 0, asyncio.Event()
    secret = make_token(database)
    acted = asyncio.Event()

    async def act(client: httpx.AsyncClient) -> None:
        nonlocal done
        while not over.is_set():
            number = next(numbers)
            try:
                body = {"name": f"t{number}", "partitions": 1}
                answer = await client.post(f"{servers[number % 2].url}/v1/topics", json=body)
            except httpx.TransportError:
                await asyncio.sleep(0.01)  # whether it was done is not known
                continue
            assert answer.status_code in (201, 503), answer.text
            done += answer.status_code == 201
            acted.set()

    async def kill_and_start() -> None:
        for kill in range(KILLS):
            while done < (kill + 1) * BETWEEN:
                acted.clear()
                await acted.wait()
            victim = servers[kill % 2]
            victim.kill()
            victim.close()
            servers[kill % 2] = await asyncio.to_thread(start_server, database, port=victim.port or 0)
            await asyncio.to_thread(servers[kill % 2].wait_ready)
        over.set()

    headers = {"Authorization": f"Bearer {secret}"}
    async with httpx.AsyncClient(headers=headers, timeout=30) as client:
        await asyncio.gather(kill_and_start(), *(act(client) for _ in range(ACTORS)))

    runtime = Runtime(Config({}), database)
    await runtime.start()
    try:
        checked = await runtime.get(Audit).verify()
    finally:
        await runtime.stop()
    assert checked.problems == []
    with psycopg.connect(database) as connection:
        topics = {name for (name,) in connection.execute("select name from groups_topic")}
        recorded = [
            name
            for (name,) in connection.execute(
                "select name from kcoord_auditrecord where act = 'topic.create' and result = 'done'"
            )
        ]
    assert len(topics) >= KILLS * BETWEEN
    assert sorted(recorded) == sorted(topics)
