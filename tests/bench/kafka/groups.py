"""Groups of a broker, formed over the wire: JoinGroup and SyncGroup on a connection for each member."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tests.bench.kafka import frames

T = TypeVar("T")

AT_ONCE = 20
"""Groups formed at a time."""
PATIENCE_SECONDS = 60.0
RETRY_SECONDS = 0.1
"""A new broker loads its coordinator partitions one after the other."""
TOPIC_EXISTS, REBALANCE_IN_PROGRESS = 36, 27


class Connection:
    """One request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @staticmethod
    async def open(port: int) -> Connection:
        """To a broker on this machine."""
        return Connection(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, request: bytes, read: Callable[[bytes], T]) -> T:
        """Send it, and read its response."""
        self._writer.write(request)
        async with asyncio.timeout(PATIENCE_SECONDS):
            (size,) = struct.unpack(">i", await self._reader.readexactly(4))
            return read((await self._reader.readexactly(size))[4:])

    async def close(self) -> None:
        """Close it."""
        self._writer.close()
        await self._writer.wait_closed()


@dataclass(frozen=True, slots=True)
class Group:
    """A Stable group."""

    name: str
    members: Sequence[str]
    generation: int


async def form(port: int, topic: str, partitions: int, groups: int, members: int) -> list[Group]:
    """A topic, and Stable groups of equal size."""
    control = await Connection.open(port)
    assert await control.ask(frames.create_topic(topic, partitions), frames.read_created) in (0, TOPIC_EXISTS)
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while error := await control.ask(frames.find_coordinator("kafka-0"), frames.read_coordinator):
        assert asyncio.get_running_loop().time() < deadline, f"no coordinator: error {error}"
        await asyncio.sleep(0.2)
    await control.close()
    names = iter([f"kafka-{number}" for number in range(groups)])

    async def worker() -> list[Group]:
        connections = [await Connection.open(port) for _ in range(members)]
        found = [await _form(connections, name) for name in names]
        for connection in connections:
            await connection.close()
        return found

    parts = await asyncio.gather(*(worker() for _ in range(min(AT_ONCE, groups))))
    return [group for part in parts for group in part]


async def _form(connections: Sequence[Connection], name: str) -> Group:
    """Everybody joins, until one generation has all of them. A member that was refused keeps its id."""
    ids = [""] * len(connections)
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while asyncio.get_running_loop().time() < deadline:
        joined = await asyncio.gather(
            *(one.ask(frames.join_group(name, ids[place]), frames.read_joined) for place, one in enumerate(connections))
        )
        ids = [one.member or ids[place] for place, one in enumerate(joined)]
        if any(one.error for one in joined) or len({one.generation for one in joined}) > 1:
            await asyncio.sleep(RETRY_SECONDS)
            continue
        synced = await asyncio.gather(
            *(
                connection.ask(frames.sync_group(name, one.member, one.generation, one.members), frames.read_synced)
                for connection, one in zip(connections, joined, strict=True)
            )
        )
        if not any(synced):
            return Group(name, ids, joined[0].generation)
        await asyncio.sleep(RETRY_SECONDS)
    raise AssertionError(f"{name} is not Stable: {joined}")
