"""Measurement of how long one huge assignment keeps the event loop from serving others."""

from __future__ import annotations

import asyncio
import time
from asyncio.events import Handle
from collections.abc import Iterator
from contextlib import contextmanager

from groups.core.model.commands import ConsumerHeartbeat
from groups.core.model.replies import ConsumerHeartbeatReply
from groups.engine.service import GroupService
from kcoord.config import Config
from kcoord.process.off_loop import settled
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error

TOPICS, MEMBERS = 100_000, 4
MOST_ROUNDS = 8
PATIENT = Config({
    "group.consumer.session.timeout.ms": 900_000,
    "group.consumer.max.session.timeout.ms": 900_000,
    "database.statement.timeout.ms": 120_000,
    "database.transaction.timeout.ms": 20_000,
    "request.max.age.ms": 60_000,
})  # fmt: skip
FILL = """
insert into groups_topic (name, topic_id, partitions, labels, created_at)
select 'stall-' || lpad(n::text, 6, '0'), gen_random_uuid(), 1, '{}', 0 from generate_series(1, %(topics)s) n
"""


@contextmanager
def turns() -> Iterator[list[float]]:
    """CPU seconds of every turn of the loop's thread, longest first once it ends: of use on a busy machine too."""
    spent: list[float] = []
    run = Handle._run

    def measured(handle: Handle) -> None:
        started = time.thread_time()
        run(handle)
        spent.append(time.thread_time() - started)

    Handle._run = measured  # type: ignore[method-assign]
    try:
        yield spent
    finally:
        Handle._run = run  # type: ignore[method-assign]
        spent.sort(reverse=True)


async def stalls(conninfo: str) -> list[float]:
    """CPU seconds of the turns of the loop while MEMBERS members share TOPICS topics of one partition each."""
    runtime = Runtime(PATIENT, conninfo)
    await runtime.start()
    async with runtime.db.connection() as connection:
        await connection.execute(FILL, {"topics": TOPICS})
    await runtime.notifications.wait_listening()
    service = runtime.get(GroupService)
    replies: dict[str, ConsumerHeartbeatReply] = {}
    owned: dict[str, object] = {}
    with turns() as spent:
        for number in range(MEMBERS):
            command = ConsumerHeartbeat(
                "stall",
                f"m{number}",
                0,
                rebalance_timeout_ms=600_000,
                subscribed_topic_names=frozenset(),
                subscribed_topic_regex="stall-.*",
                topic_partitions={},
            )
            replies[command.member_id] = await settled(service.consumer_heartbeat(command))
        for _ in range(MOST_ROUNDS):
            for member_id, reply in replies.items():
                if reply.assignment is not None:
                    owned[member_id] = reply.assignment
                command = ConsumerHeartbeat(
                    "stall", member_id, reply.member_epoch, topic_partitions=owned.get(member_id, {})
                )
                replies[member_id] = await settled(service.consumer_heartbeat(command))
                assert replies[member_id].error is Error.NONE, replies[member_id]
            while service.busy:  # noqa: ASYNC110 - measured, not signalled
                await asyncio.sleep(0.05)
    group = (await service.describe("stall")).group
    assert group is not None
    assert sum(len(member.assigned) for member in group.members.values()) == TOPICS, "everything is assigned"
    await runtime.stop()
    return spent
