"""Parts of the service inside one process, without HTTP: what they cost in smallest transactions.

The yardstick is the smallest transaction the design allows: lock one group row and update it, over the same pool with
the same number of callers. A ratio of 0.5 means that a request costs as much as two of those.
"""

from __future__ import annotations

import asyncio
import time

from groups.core.model.replies import JoinReply
from groups.engine.service import GroupService
from kcoord.config import Config
from kcoord.database.pool import Connection, Database
from kcoord.metrics import TRANSACTIONS
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from tests.bench import consumer, offsets
from tests.bench.bench import Bench
from tests.bench.events import timeline
from tests.bench.figures import Figure
from tests.bench.hot import hot_updates
from tests.bench.load import per_second, start_node
from tests.bench.retention import retention
from tests.bench.stalls import MEMBERS, TOPICS, stalls
from tests.support.members import join, sync

GROUPS = 400
ROUNDS = 5
STORM = 1_000
SMALLEST = "smallest transaction"


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


async def classic(bench: Bench, conninfo: str) -> None:
    """Joins, commits and events."""
    runtime = Runtime(Config({"group.initial.rebalance.delay.ms": 0}), conninfo)
    await start_node(runtime)
    members, cycles = await lone_members(runtime.get(GroupService))
    base = await yardstick(runtime.db)

    def add(key: str, name: str, value: float, **details: float) -> None:
        bench.add(Figure(f"inside.{key}", name, value, "/s", SMALLEST, base, details))

    add("smallest", "smallest locked transactions", base)
    add("cycles", "joins of new groups, of 3 requests each", cycles)
    for found in await offsets.commits(runtime, members):
        journal = {"journal_bytes": found.heap, "journal_index_bytes": found.indexes}
        add(f"commits.{found.partitions}", f"commits of {found.partitions} in a process", found.per_second, **journal)
    for protocol in ("classic", "consumer"):
        lines = await timeline(runtime, protocol)
        name = f"bytes of events of a {protocol} member that joins and leaves"
        size = {"events": lines.events, "index_bytes": lines.indexes}
        whole = lines.heap + lines.indexes
        bench.add(Figure(f"inside.events.{protocol}", name, lines.heap, "bytes", "with indexes", whole, size))
    await runtime.stop()
    slow = Runtime(Config({"group.initial.rebalance.delay.ms": 300_000}), conninfo)
    await slow.start()
    joins, transactions = await storm(slow.get(GroupService))
    await slow.stop()
    add("storm", f"joins of a storm of {STORM:,} until all are parked", joins, transactions=transactions)


async def consumers(bench: Bench, conninfo: str) -> None:
    """Consumer groups: how they converge, and what a heartbeat costs."""
    runtime = Runtime(Config({}), conninfo)
    await runtime.start()
    await runtime.notifications.wait_listening()
    small = await consumer.crowd(runtime, 3, 30)
    large = await consumer.crowd(runtime, 1_000, 10_000)
    every = await consumer.arrival(runtime, 100, waiting=False)
    waiting = await consumer.arrival(runtime, 100, waiting=True)
    await runtime.stop()
    name = "consumer group of 1,000, 10,000 partitions"
    per_member = small[0] * 1_000 / 3
    bench.add(Figure("inside.crowd", f"{name}: Stable after", large[0], "s", "group of 3 per member", per_member))
    bench.add(Figure("inside.crowd.leave", f"{name}: after one left", large[1], "s", "Stable after", large[0]))
    bench.add(Figure("inside.steady", f"{name}: CPU of a heartbeat", large[2], "ms", "group of 3", small[2]))
    name = "newcomer in a group of 100 has its share, members that wait"
    bench.add(Figure("inside.newcomer", name, waiting, "s", "heartbeat each second", every))


def run(bench: Bench) -> None:
    """Each on a database of its own."""
    with bench.database() as database:
        asyncio.run(classic(bench, database.conninfo))
        asyncio.run(consumers(bench, database.conninfo))
    with bench.database() as database:
        found = asyncio.run(retention(database.conninfo))
        name = f"retention of {found.offsets:,} offsets: longest that a group was locked"
        held, late = sorted(found.held), int(len(found.held) * 0.99)
        said = {"p50_ms": 1_000 * held[len(held) // 2], "p99_ms": 1_000 * held[late]}
        bench.add(Figure("inside.retention", name, held[-1], "s", "whole run", found.total, said))
        for key, times in (("heartbeats", found.heartbeats), ("commits", found.commits)):
            both = [1_000 * sorted(one)[int(len(one) * 0.99)] for one in (times, found.before)]
            name = f"  p99 of {key} of its member meanwhile"
            bench.add(Figure(f"inside.retention.{key}", name, both[0], "ms", "both before", both[1]))
    with bench.database() as database:
        longest = asyncio.run(stalls(database.conninfo))
        name = f"longest turn of the loop, {MEMBERS} members sharing {TOPICS:,} topics"
        bench.add(Figure("inside.stalls", name, longest[0], "s", "all turns", sum(longest)))
    with bench.database() as database:
        for table, updates in asyncio.run(hot_updates(database.conninfo)).items():
            name = f"HOT updates of {table} under heartbeats and commits"
            bench.add(Figure(f"inside.hot.{table}", name, updates.ratio * updates.all, "", "updates", updates.all))
