"""Run every measurement against a throw-away Postgres and print one line each.

The yardstick is the smallest transaction the design allows: lock one group row and update it, over the same pool with
the same number of callers. A ratio of 0.5 means that a request of the service costs as much as two of those.
"""

from __future__ import annotations

import asyncio
import sys
import time

import structlog

from groups.core.model.commands import Heartbeat
from groups.core.model.replies import JoinReply
from groups.engine.service import GroupService
from kcoord.config import Config
from kcoord.database.pool import Connection, Database
from kcoord.metrics import TRANSACTIONS
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from tests.bench import assignors, consumer, offsets
from tests.bench.events import timeline
from tests.bench.hot import hot_updates
from tests.bench.load import per_second
from tests.bench.retention import retention
from tests.bench.stalls import MEMBERS, TOPICS, stalls
from tests.support.database import ephemeral_database
from tests.support.members import join, sync

GROUPS = 400
ROUNDS = 5
STORM = 1_000


async def yardstick(db: Database) -> float:
    """Smallest locked transactions per second."""

    async def job(number: int) -> None:
        async def work(connection: Connection) -> None:
            parameters = {"name": f"g{number % GROUPS}"}
            await connection.execute("select id from groups_group where group_id = %(name)s for update", parameters)
            await connection.execute(
                "update groups_group set version = version + 1 where group_id = %(name)s", parameters
            )

        await db.transaction(work)

    return await per_second(job, GROUPS * ROUNDS)


async def lone_members(service: GroupService) -> tuple[list[JoinReply], float]:
    """GROUPS groups of one member each become Stable; returns the members and cycles (three requests) per second."""
    members: list[JoinReply] = [JoinReply(Error.NONE, "")] * GROUPS

    async def job(number: int) -> None:
        group_id = f"g{number}"
        asked = await service.join(join(group_id))
        joined = await service.join(join(group_id, asked.member_id))
        await service.sync(sync(joined, {joined.member_id: b""}, group_id))
        members[number] = joined

    return members, await per_second(job, GROUPS)


async def heartbeats(service: GroupService, members: list[JoinReply]) -> float:
    """Heartbeats per second, every member in a group of its own."""

    async def job(number: int) -> None:
        member = members[number % GROUPS]
        reply = await service.heartbeat(Heartbeat(f"g{number % GROUPS}", member.member_id, None, member.generation_id))
        assert reply.error is Error.NONE

    return await per_second(job, GROUPS * ROUNDS)


async def storm(service: GroupService) -> tuple[float, float]:
    """STORM members join one group at once: joins per second until all are parked, and transactions that took."""
    ids = [(await service.join(join("storm"))).member_id for _ in range(STORM)]
    transactions = TRANSACTIONS.labels("committed")
    before, started = transactions._value.get(), time.perf_counter()
    tasks = [asyncio.create_task(service.join(join("storm", member_id))) for member_id in ids]
    while True:
        group = (await service.describe("storm")).group
        if group is not None and len(group.members) == STORM:
            break
        await asyncio.sleep(0.001)
    seconds = time.perf_counter() - started
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return STORM / seconds, transactions._value.get() - before


async def measure(conninfo: str) -> None:
    """All measurements, in one process on one database."""
    quick = Runtime(Config({"group.initial.rebalance.delay.ms": 0}), conninfo)
    await quick.start()
    service = quick.get(GroupService)
    members, cycles = await lone_members(service)
    base = await yardstick(quick.db)
    beats, committed = await heartbeats(service, members), await offsets.commits(quick, members)
    for protocol in ("classic", "consumer"):
        lines = await timeline(quick, protocol)
        print(f"{protocol} member that joins and leaves: {lines.events:.0f} events, {lines.heap:,.0f} bytes of lines,")
        print(f"  {lines.indexes:,.0f} of indexes")
    await quick.stop()

    slow = Runtime(Config({"group.initial.rebalance.delay.ms": 300_000}), conninfo)
    await slow.start()
    joins, transactions = await storm(slow.get(GroupService))
    await slow.stop()

    runtime = Runtime(Config({}), conninfo)
    await runtime.start()
    await runtime.notifications.wait_listening()
    small = await consumer.crowd(runtime, 3, 30)
    large = await consumer.crowd(runtime, 1_000, 10_000)
    newcomer = [await consumer.arrival(runtime, 100, waiting=waiting) for waiting in (False, True)]
    await runtime.stop()

    say("smallest locked transactions", base, base)
    say("heartbeats, a group each", beats, base)
    for found in committed:
        say(f"commits of {found.partitions} partitions, a group each", found.per_second, base)
        say("  offsets", found.per_second * found.partitions, base)
        print(f"  journal: {found.heap:,.0f} bytes of lines, {found.indexes:,.0f} of indexes for each commit")
    say("joins of new groups (of 3 requests each)", cycles, base)
    say(f"joins of a storm of {STORM} in one group, {transactions:.0f} transactions", joins, base)
    print(f"consumer group of 1,000 members, 10,000 partitions: Stable {large[0]:.1f} s after empty,")
    print(f"  {large[1]:.1f} s after one member left")
    print(f"heartbeat that changes nothing, CPU: {large[2]:.2f} ms there, {small[2]:.2f} ms in a group of 3;")
    print(f"  {large[2] / small[2]:.2f} x")
    print("newcomer in a group of 100 has its share: ", end="")
    print(f"{newcomer[0]:.2f} s with a heartbeat each second, {newcomer[1]:.2f} s with heartbeats that wait")


def say(what: str, value: float, base: float) -> None:
    """One line: figure and ratio to the yardstick."""
    print(f"{what:64} {value:9,.0f}/s {value / base:7.2f} x")


def main() -> int:
    """Measure on an embedded Postgres of its own."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    with ephemeral_database() as conninfo:
        asyncio.run(measure(conninfo))
        asyncio.run(retention(conninfo)).say()
        longest = asyncio.run(stalls(conninfo))[0]
        print(f"longest turn of the loop, {MEMBERS} members sharing {TOPICS:,} topics: {longest * 1_000:.0f} ms of CPU")
        for table, found in asyncio.run(hot_updates(conninfo)).items():
            print(f"{table}: {found.ratio:.1%} of {found.all:,} updates under heartbeats and commits are HOT")
    assignors.table()
    return 0


if __name__ == "__main__":
    sys.exit(main())
