"""Measurement of the timeline: what each join and leave of a member costs on the disk."""

from __future__ import annotations

from dataclasses import dataclass

from groups.core.model.commands import ConsumerHeartbeat
from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.process.off_loop import settled
from kcoord.process.runtime import Runtime
from tests.support.members import join, leave, sync

CYCLES = 500
SIZE = "select pg_relation_size('groups_event'), pg_indexes_size('groups_event'), (select count(*) from groups_event)"


@dataclass(frozen=True, slots=True)
class Timeline:
    """Of one member that joins and leaves: events, bytes of lines and of indexes, for each time."""

    events: float
    heap: float
    indexes: float


async def timeline(runtime: Runtime, protocol: str) -> Timeline:
    """CYCLES times a member joins a group alone and leaves it. The setting events.max.per.group has to be larger."""
    service = runtime.get(GroupService)
    async with runtime.db.connection() as connection:
        await connection.execute("truncate groups_event")
    if protocol == "consumer":
        await runtime.get(TopicService).create("timeline", 1)
    for number in range(CYCLES):
        await (_consumer_cycle(service, number) if protocol == "consumer" else _cycle(service))
    async with runtime.db.connection() as connection:
        row = await runtime.db.row(connection, SIZE)
    assert row is not None
    return Timeline(row[2] / CYCLES, row[0] / CYCLES, row[1] / CYCLES)


async def _cycle(service: GroupService) -> None:
    asked = await service.join(join("timeline-classic"))
    reply = await service.join(join("timeline-classic", asked.member_id))
    await service.sync(sync(reply, {reply.member_id: b""}, "timeline-classic"))
    await service.leave(leave(reply.member_id, "timeline-classic"))


async def _consumer_cycle(service: GroupService, number: int) -> None:
    member_id = f"00000000-0000-0000-0000-{number:012}"
    group_id, topics = "timeline-consumer", frozenset({"timeline"})
    command = ConsumerHeartbeat(
        group_id,
        member_id,
        0,
        client_id="client",
        client_host="127.0.0.1",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=topics,
        topic_partitions={},
    )
    await settled(service.consumer_heartbeat(command))
    await settled(service.consumer_heartbeat(ConsumerHeartbeat(group_id, member_id, -1)))
