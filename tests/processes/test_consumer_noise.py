"""Consumer groups under noise in real time, at two servers: no two members ever believe to own one partition."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from random import Random

import httpx
import pytest

from tests.support.consumer_members import Journal, NoisyMember
from tests.support.processes import Running, start_server

pytestmark = [
    pytest.mark.processes,
    pytest.mark.whole("noise in real time; the default moves consumer groups in virtual time"),
]

SETTINGS = {
    "KCOORD_GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS": 1_000,
    "KCOORD_GROUP_CONSUMER_SESSION_TIMEOUT_MS": 30_000,
    "KCOORD_GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS": 100,
    "KCOORD_GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS": 100,
    "KCOORD_GROUP_COORDINATOR_REBALANCE_PROTOCOLS": "classic,consumer",
}
SEED = 20_251_121
NOISY_SECONDS = 12
PARTITIONS = 24
GROWN = 30


@pytest.fixture
def servers(database: str) -> Iterator[list[Running]]:
    """Two servers on one database."""
    with start_server(database, env=SETTINGS) as first, start_server(database, env=SETTINGS) as second:
        for server in (first, second):
            server.wait_ready()
        yield [first, second]


@pytest.fixture
async def client(token: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client with a token."""
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30) as client:
        yield client


async def test_no_partition_has_two_owners_and_everybody_reconciles(
    servers: list[Running], client: httpx.AsyncClient
) -> None:
    random, journal = Random(SEED), Journal()
    urls = [server.url for server in servers]
    topics = f"{urls[0]}/v1/topics"
    assert (await client.post(topics, json={"name": "t", "partitions": PARTITIONS})).status_code == 201
    members = [NoisyMember(client, urls, journal, Random(random.random())) for _ in range(8)]
    stop, quiet = asyncio.Event(), asyncio.Event()
    running = {member.member_id: asyncio.create_task(member.run(stop, quiet)) for member in members}

    for round_ in range(NOISY_SECONDS):
        await asyncio.sleep(1)
        for task in running.values():
            if task.done():
                task.result()
        if round_ == 4:
            assert (await client.patch(f"{topics}/t", json={"partitions": GROWN})).status_code == 200
        if round_ % 3 == 1:
            await replace_one(random, members, running, stop, quiet)
    assert journal.handovers > PARTITIONS, "the noise moved partitions"

    quiet.set()
    await settled(members, running)
    stop.set()
    await asyncio.gather(*running.values())
    assert len({member.epoch for member in members}) == 1
    owned = sorted(partition for member in members for _, partition in member.owned)
    assert owned == list(range(GROWN))
    sizes = [len(member.owned) for member in members]
    assert max(sizes) - min(sizes) <= 1


async def replace_one(
    random: Random,
    members: list[NoisyMember],
    running: dict[str, asyncio.Task[None]],
    stop: asyncio.Event,
    quiet: asyncio.Event,
) -> None:
    """One member goes home and another comes."""
    gone = members.pop(random.randrange(len(members)))
    task = running.pop(gone.member_id)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await gone.leave()
    come = NoisyMember(gone.client, gone.urls, gone.journal, Random(random.random()))
    members.append(come)
    running[come.member_id] = asyncio.create_task(come.run(stop, quiet))


async def settled(members: list[NoisyMember], running: dict[str, asyncio.Task[None]]) -> None:
    """Wait until all have one epoch and own everything together."""
    for _ in range(600):
        for task in running.values():
            if task.done():
                task.result()
        if len({member.epoch for member in members}) == 1 and sum(len(m.owned) for m in members) == GROWN:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"not settled: {[(m.epoch, len(m.owned), m.errors[-3:]) for m in members]}")
