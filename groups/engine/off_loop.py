"""Work that grows with the partitions of a group leaves the event loop, so that other groups are served meanwhile.

A thread shares the interpreter with the loop, which gets its turn every few milliseconds. For small groups the round
trip to a thread would cost more than the work.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from itertools import islice
from typing import ParamSpec, TypeVar

from psycopg.rows import TupleRow

from groups.core.model.commands import ApplyRegexResolution, ApplyTarget, Command, ConsumerHeartbeat
from groups.core.model.consumer_group import ConsumerGroup
from groups.core.model.group import Group
from groups.core.model.types import TopicView
from kcoord.database.pool import Connection

P = ParamSpec("P")
T = TypeVar("T")

ABOVE = 5_000
"""Work on more partitions or topics than these is done in a thread."""
PART = 1_000
"""Rows that are sent to Postgres, or fetched from it, before the loop serves others."""
FEW_NAMES = 100
"""Up to this number of topics their partitions are counted; above it only the topics are."""


async def run(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Returns the result of `work`, which runs in a thread if `size` (partitions or topics) is large."""
    if size <= ABOVE:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)


async def in_parts(items: Iterable[T]) -> AsyncIterator[list[T]]:
    """`items` in lists of PART; the loop has its turn after each."""
    rest = iter(items)
    while part := list(islice(rest, PART)):
        yield part
        await asyncio.sleep(0)


async def fetch(connection: Connection, statement: str, parameters: dict[str, object] | None = None) -> list[TupleRow]:
    """All rows, converted to Python values part by part."""
    cursor = await connection.execute(statement.encode(), parameters)
    rows: list[TupleRow] = []
    while part := await cursor.fetchmany(PART):
        rows += part
        await asyncio.sleep(0)
    return rows


def size_of(group: Group | None) -> int:
    """How many partitions, or topic names, a look at the whole of a consumer group involves."""
    if not isinstance(group, ConsumerGroup):
        return 0
    resolved = (names for found in group.resolutions.values() for names in found.topics.values())
    return len(group.members.owners) + len(group.members.names) + sum(map(len, resolved))


def size_of_decision(group: Group | None, commands: Iterable[Command], topics: TopicView) -> int:
    """The same for everything that `commands` may lead to."""
    size = size_of(group)
    if isinstance(group, ConsumerGroup):
        size += _partitions(group.members.names, topics)
    for command in commands:
        match command:
            case ConsumerHeartbeat():
                size += _partitions(command.subscribed_topic_names or (), topics) + len(command.topic_partitions or ())
            case ApplyTarget():
                size += sum(len(target) for target in (command.targets or {}).values())
            case ApplyRegexResolution():
                size += sum(map(len, command.topics.values()))
            case _:
                pass
    return size


def _partitions(names: Collection[str], topics: TopicView) -> int:
    if len(names) > FEW_NAMES:
        return len(names)
    return sum(topics.by_name[name].partitions for name in names if name in topics.by_name)
