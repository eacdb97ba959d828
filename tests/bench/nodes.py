"""Fail-over and hand-over of coordinator partitions, and the cost of leases: `python -m tests.bench.nodes [GROUPS]`.

Three servers on an embedded Postgres that holds GROUPS groups with a member each (100,000), and members that send a
heartbeat every 50 ms to whichever server answers. In turns one server is killed with SIGKILL, or asked to stop with
SIGTERM, and started again. Printed: from the signal until every partition is ACTIVE at another server, and the longest
time that a member went without an answer. Then sixteen nodes in one process only renew their leases: what that costs
Postgres. Servers, Postgres, members and this program share the cores. It ends after fifteen minutes at the latest.
"""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import psycopg

from groups.core.model.group import partition_of
from groups.engine.agent import NodeAgent
from kcoord.config import Config
from kcoord.process.runtime import Runtime
from tests.support.database import ephemeral_database
from tests.support.http_members import HttpMember, make_token
from tests.support.processes import Running, start_server

GROUPS = 100_000
ROUNDS = 5
SERVERS = 3
MEMBERS = 9
PAUSE_SECONDS = 0.05
NODES = 16
LEASE_SECONDS = 20.0
LIMIT_SECONDS = 900.0
PARTITIONS = 50

FILL = """
with made as (
    insert into groups_group (group_id, type, state, previous_state, state_since, generation_id, protocol_type,
                              protocol_name, new_member_added, wake_at, partition, version, created_at, updated_at)
    select name, 'classic', 'Stable', 'CompletingRebalance', 0, 1, 'consumer', 'range', false, %(deadline)s, partition,
           1, 0, 0
    from unnest(%(names)s::text[], %(partitions)s::int[]) as n (name, partition)
    returning id
)
insert into groups_member (group_id, member_id, client_id, client_host, session_timeout_ms, rebalance_timeout_ms,
                           protocol_type, protocol_names, protocol_metadata, assignment, is_new, pending_sync,
                           session_deadline)
select id, 'm', 'bench', '', 1800000, 1800000, 'consumer', '{range}', array[''::bytea], '', false, false, %(deadline)s
from made
"""
OWNED_BY = """
select count(*)
from groups_coordinatorpartition p
join groups_coordinatornode n on n.id = p.owner_id
where p.state = 'ACTIVE' and n.ended_at is null and n.node_id <> %s
"""


class Members:
    """Members that heartbeat all the time; `longest` is the longest time without an answer since `watch`."""

    def __init__(self, members: list[HttpMember]) -> None:
        self._members = members
        self._last = dict.fromkeys(range(len(members)), time.perf_counter())
        self.longest = 0.0
        self.refused = 0
        self._tasks = [asyncio.create_task(self._beat(number)) for number in range(len(members))]

    def watch(self) -> None:
        """Forget what was."""
        self._last = dict.fromkeys(self._last, time.perf_counter())
        self.longest = 0.0

    async def _beat(self, number: int) -> None:
        while True:
            status, _ = await self._members[number].heartbeat()
            now = time.perf_counter()
            if status == 200:
                self.longest = max(self.longest, now - self._last[number])
                self._last[number] = now
            else:
                self.refused += status not in (0, 503)
            await asyncio.sleep(PAUSE_SECONDS)

    def stop(self) -> None:
        """End them."""
        for task in self._tasks:
            task.cancel()


def fill(conninfo: str, count: int) -> None:
    """Groups whose only member's session ends in half an hour."""
    deadline = time.time_ns() // 1_000_000 + 1_800_000
    with psycopg.connect(conninfo) as connection:
        for start in range(0, count, 5_000):
            names = [f"bench-{number}" for number in range(start, min(start + 5_000, count))]
            partitions = [partition_of(name, PARTITIONS) for name in names]
            connection.execute(FILL, {"names": names, "partitions": partitions, "deadline": deadline})
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("vacuum analyze groups_group")
        connection.execute("vacuum analyze groups_member")


async def active_elsewhere(connection: psycopg.AsyncConnection[Any], name: str) -> None:
    """Until every partition is active at another node than this one."""
    while True:
        row = await (await connection.execute(OWNED_BY, [name])).fetchone()
        if row is not None and row[0] == PARTITIONS:
            return
        await asyncio.sleep(0.005)


async def fail_over(conninfo: str, secret: str) -> None:
    """The first part."""

    def start(number: int) -> Running:
        settings = {"KCOORD_NODE_ID": f"n{number}", "KCOORD_LOG_LEVEL": "warning"}
        return start_server(conninfo, env=settings)

    servers = [start(number) for number in range(SERVERS)]
    async with AsyncExitStack() as open_things:
        connection = await psycopg.AsyncConnection.connect(conninfo, autocommit=True)
        open_things.push_async_callback(connection.close)
        client = httpx.AsyncClient(headers={"Authorization": f"Bearer {secret}"}, timeout=10)
        open_things.push_async_callback(client.aclose)
        await active_elsewhere(connection, "nobody")
        urls = [server.url for server in servers]
        members = [HttpMember(client, urls, f"member-{number}", 30_000, at=number) for number in range(MEMBERS)]
        for member in members:
            await member.join()
            await member.sync({member.member_id: {"t": [0]}})
        busy = Members(members)
        for number in (signal.SIGKILL, signal.SIGTERM):
            took, gaps = [], []
            for turn in range(ROUNDS):
                place = turn % SERVERS
                await asyncio.sleep(5)  # shares are even again
                busy.watch()
                began = time.perf_counter()
                servers[place].send(number)
                await active_elsewhere(connection, f"n{place}")
                took.append(time.perf_counter() - began)
                await asyncio.sleep(2)
                gaps.append(busy.longest)
                servers[place].popen.wait(10)
                servers[place] = start(place)
                for member in members:
                    member.urls = [server.url for server in servers]
            print(
                f"{number.name}: active elsewhere after {min(took):.2f} to {max(took):.2f} s (median "
                f"{statistics.median(took):.2f}), longest time without an answer {max(gaps):.2f} s, "
                f"requests refused {busy.refused}"
            )
        busy.stop()
    for server in servers:
        server.close()


async def leases(conninfo: str) -> None:
    """The second part."""
    async with AsyncExitStack() as running:
        agents = []
        for number in range(NODES):
            values = {"node.id": f"lease-{number}", "advertised.url": f"http://n{number}:1", "database.pool.size": 2}
            runtime = Runtime(Config(values), conninfo)
            await runtime.start()
            running.push_async_callback(runtime.stop)
            agents.append(runtime.get(NodeAgent))
            agents[-1].start()
        await asyncio.sleep(10)
        with psycopg.connect(conninfo, autocommit=True) as connection:
            before = measure(connection)
            await asyncio.sleep(LEASE_SECONDS)
            after = measure(connection)
    wal, cpu, commits = (b - a for a, b in zip(before, after, strict=True))
    print(
        f"{NODES} nodes: {commits / LEASE_SECONDS:.0f} transactions, {wal / LEASE_SECONDS / 1024:.1f} KiB of WAL, "
        f"{1000 * cpu / LEASE_SECONDS:.0f} ms of CPU in Postgres a second, timers of owners included"
    )


def measure(connection: psycopg.Connection[Any]) -> tuple[float, float, float]:
    """WAL in bytes, CPU seconds of all backends of this database, transactions."""
    row = connection.execute(
        "select pg_current_wal_lsn() - '0/0', xact_commit from pg_stat_database where datname = current_database()"
    ).fetchone()
    assert row is not None
    pids = connection.execute("select pid from pg_stat_activity where datname = current_database()").fetchall()
    ticks = 0
    for (pid,) in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return float(row[0]), ticks / os.sysconf("SC_CLK_TCK"), float(row[1])


def main() -> None:
    """Measure, and print."""
    groups = int(sys.argv[1]) if len(sys.argv) > 1 else GROUPS
    with ephemeral_database() as conninfo:
        fill(conninfo, groups)
        print(f"{groups} groups, {SERVERS} servers, {MEMBERS} members")
        secret = make_token(conninfo)
        asyncio.run(asyncio.wait_for(fail_over(conninfo, secret), LIMIT_SECONDS))
        asyncio.run(asyncio.wait_for(leases(conninfo), LIMIT_SECONDS))


if __name__ == "__main__":
    main()
