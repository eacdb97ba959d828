"""AsyncConsumers against a real server process, several in one event loop."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from kcoord.client import AsyncConsumer
from tests.kcoord.client.live import DEADLINE_S, Service, running_service
from tests.kcoord.client.sources import lettered
from tests.support.database import cloned_database

pytestmark = [
    pytest.mark.processes,
    pytest.mark.whole("the client on an event loop; scripted coordinators test both drivers"),
]

PARTITIONS, RECORDS = 6, 200


@pytest.fixture(scope="module")
def service(postgres: str) -> Iterator[Service]:
    with cloned_database(postgres) as conninfo, running_service(conninfo) as running:
        yield running


class Crew:
    """Workers of one group, each a task that processes one record after the other and commits now and then."""

    def __init__(self, topic: str, settings: dict[str, Any]) -> None:
        self.topic = topic
        self.settings = settings
        self.source = lettered(PARTITIONS, RECORDS, topic)
        self.done: dict[tuple[int, int], int] = {}
        self.owners: dict[str, int] = {}

    async def work(self, name: str) -> None:
        """Process records until cancelled."""
        settings = {**self.settings, "auto_commit_interval_ms": 50, "max_poll_records": 5}
        async with AsyncConsumer(self.topic, source=self.source, **settings) as consumer:
            while True:
                for partition, records in (await consumer.poll(100)).items():
                    for record in records:
                        await asyncio.sleep(0)
                        key = (partition.partition, record.offset)
                        self.done[key] = self.done.get(key, 0) + 1
                self.owners[name] = len(consumer.assignment())

    async def until(self, condition: Any) -> None:
        """Wait until this is so."""
        deadline = asyncio.get_running_loop().time() + DEADLINE_S
        while True:
            if condition():
                return
            assert asyncio.get_running_loop().time() < deadline, "the condition did not come true"
            await asyncio.sleep(0.01)


def committed(service: Service, group: str) -> list[int]:
    """What the group committed, partition by partition."""
    return [found["committed_offset"] for found in service.request("GET", f"groups/{group}/offsets").json()["offsets"]]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_workers_that_are_cancelled_are_replaced_and_no_record_is_lost(service: Service, protocol: str) -> None:
    topic, group = service.topic(PARTITIONS), f"group-{secrets.token_hex(4)}"
    settings = service.settings(group) if protocol == "classic" else service.consumer_settings(group)
    crew = Crew(topic, settings)
    before = asyncio.all_tasks()
    tasks = {name: asyncio.create_task(crew.work(name)) for name in ("a", "b", "c")}
    await crew.until(lambda: len(crew.owners) == 3 and set(crew.owners.values()) == {2})
    members = (await asyncio.to_thread(service.describe, group))["members"]
    assert len(members) == 3
    for name in ("a", "b"):
        tasks[name].cancel()
        await asyncio.gather(tasks[name], return_exceptions=True)
        crew.owners.pop(name)
    members = (await asyncio.to_thread(service.describe, group))["members"]
    assert len(members) == 1, "they left, and were not waited for until their sessions end"
    await crew.until(lambda: crew.owners == {"c": PARTITIONS})
    await crew.until(lambda: len(crew.done) == PARTITIONS * RECORDS)

    await crew.until(lambda: committed(service, group) == [RECORDS] * PARTITIONS)
    tasks["c"].cancel()
    await asyncio.gather(tasks["c"], return_exceptions=True)
    assert asyncio.all_tasks() == before, "tasks outlived their consumers"
