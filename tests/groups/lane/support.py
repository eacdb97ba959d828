"""Processes that answer heartbeats from memory, in virtual time: each stores them when the test says so."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import psycopg

from groups.catalogue.topics import TopicService
from groups.core.model.commands import ConsumerHeartbeat
from groups.engine.service import GroupService
from groups.lane.heartbeats import Flusher
from groups.nodes.hosting import Lease
from kcoord.metrics import HEARTBEATS_FROM_MEMORY
from kcoord.process.off_loop import settled
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from tests.support.members import eventually

MEMBERS = {"classic": "groups_member", "consumer": "groups_consumermember"}


@dataclass(frozen=True)
class Process:
    """One process with a lease that lasts. `node`: the key of its row."""

    runtime: Runtime
    database: str
    node: int

    @property
    def groups(self) -> GroupService:
        return self.runtime.get(GroupService)

    @property
    def flusher(self) -> Flusher:
        return self.runtime.get(Flusher)

    async def open(self) -> None:
        """Ready to answer from memory."""
        self.flusher.begin()
        await eventually(lambda: self.flusher.is_open, "it answers from memory")

    async def notified(self) -> None:
        """It has been notified of all that is committed, and has stored all that it renewed."""
        before = self.flusher.notified_until
        await self.flusher.flush()
        await eventually(lambda: self.flusher.notified_until > before, "it is notified")

    def flushed_until(self) -> int | None:
        """Until when its row says that sessions are stored."""
        rows = query(self.database, "select flushed_until from groups_coordinatornode where id = %s", self.node)
        found: int | None = rows[0][0]
        return found


def register(runtime: Runtime, database: str, name: str) -> Process:
    """A node whose lease lasts for as long as the test."""
    rows = query(
        database,
        "insert into groups_coordinatornode (node_id, url, version, started_at, renewed_at, expires_at)"
        " values (%s, '', '', 0, 0, 9223372036854775807) returning id",
        name,
    )
    lease = runtime.get(Lease)
    lease.incarnation, lease.until = rows[0][0], math.inf
    return Process(runtime, database, rows[0][0])


def query(database: str, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
    """The rows of one statement, committed."""
    with psycopg.connect(database, autocommit=True) as connection:
        return connection.execute(statement, parameters).fetchall()


def deadlines(database: str, protocol: str) -> list[int]:
    """The stored sessions."""
    return [row[0] for row in query(database, f"select session_deadline from {MEMBERS[protocol]} order by member_id")]


def from_memory() -> float:
    """How many heartbeats were answered from memory, by all processes of this test."""
    return float(HEARTBEATS_FROM_MEMORY.value)


async def joined_consumer(process: Process, member_id: str = "a", group_id: str = "g") -> ConsumerHeartbeat:
    """A member of a consumer group at rest; returns the heartbeat that it sends from now on."""
    topics = process.runtime.get(TopicService)
    if "t" not in (await topics.view()).by_name:
        await topics.create("t", 4)
    reply = await settled(
        process.groups.consumer_heartbeat(
            ConsumerHeartbeat(
                group_id,
                member_id,
                0,
                rebalance_timeout_ms=30_000,
                subscribed_topic_names=frozenset({"t"}),
                topic_partitions={},
            )
        )
    )
    assert reply.error is Error.NONE
    return ConsumerHeartbeat(group_id, member_id, reply.member_epoch)
