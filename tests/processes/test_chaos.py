"""A classic group under noise: two servers, worker and beat, members with bad luck, and a server that is killed.

What is checked is what clients were told (`tests/support/chaos_members.py`): within a generation no partition has two
owners, generations never fall, whoever takes over a partition finds every offset that was acknowledged before, every
request is answered within its wait, nobody waits in vain, and when the noise stops the group comes to rest with
everybody in it.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from random import Random

import psycopg
import pytest

from tests.support.chaos_members import PARTITIONS, TOPIC, ChaosMember, Ledger, client_for
from tests.support.processes import Running, start_beat, start_server, start_worker

pytestmark = [pytest.mark.processes, pytest.mark.whole("minutes of noise; the default has a short run of chaos")]

SEED = 20_251_122
NOISY_ROUNDS = 15
MEMBERS = 8
KILLED_IN, RESTARTED_IN = 5, 8
CRASHES_IN = (3, 11)
SETTLING_SECONDS = 45.0
"""Time for the sessions of the crashed to run out and a rebalance after it, on a busy machine."""

SETTINGS = {
    "KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 300,
    # Nobody looks again by himself while this test runs: who is not woken is found out.
    "KCOORD_NOTIFICATIONS_REPAIR_INTERVAL_MS": 60_000,
}


class Stack:
    """Two servers, of which one may die and come back at its address, a worker and beat."""

    def __init__(self, conninfo: str, processes: ExitStack) -> None:
        self._conninfo = conninfo
        self._processes = processes
        self.servers = [processes.enter_context(start_server(conninfo, env=SETTINGS)) for _ in range(2)]
        self.worker: Running = processes.enter_context(start_worker(conninfo, env=SETTINGS))
        self.beat: Running = processes.enter_context(start_beat(conninfo, env=SETTINGS))
        for server in self.servers:
            server.wait_ready()
        self.urls = [server.url for server in self.servers]

    def kill(self) -> None:
        """kill -9 of the first server."""
        self.servers[0].send(signal.SIGKILL)

    def restart(self) -> None:
        """Another server in its place."""
        killed = self.servers[0]
        killed.wait()
        self.servers[0] = self._processes.enter_context(
            start_server(self._conninfo, port=killed.port or 0, env=SETTINGS)
        )

    def tracebacks(self) -> list[str]:
        """What the servers and the worker called an error."""
        logs = [process.output.splitlines() for process in (*self.servers, self.worker)]
        return [line for lines in logs for line in lines if '"level":"error"' in line or "Traceback" in line]


class Crowd:
    """The members, and whoever takes the place of those that crashed."""

    def __init__(self, random: Random, token: str, urls: list[str]) -> None:
        self._random = random
        self._urls = urls
        self.client = client_for(token)
        self.ledger = Ledger()
        self.quiet, self.stop = asyncio.Event(), asyncio.Event()
        self._living: list[tuple[ChaosMember, asyncio.Task[None]]] = []

    def fill(self) -> None:
        """Replace who crashed. Raises what a member found wrong."""
        for _, task in self._living:
            if task.done():
                task.result()
        self._living = [(member, task) for member, task in self._living if not task.done()]
        while len(self._living) < MEMBERS:
            member = ChaosMember(
                self.client,
                self._urls,
                ledger=self.ledger,
                random=Random(self._random.random()),
                quiet=self.quiet,
                at=self._random.randrange(2),
            )
            self._living.append((member, asyncio.create_task(member.run(self.stop))))

    def doom(self) -> None:
        """One of them will fall silent."""
        self._random.choice(self.members).doomed = True

    @property
    def members(self) -> list[ChaosMember]:
        """Who lives."""
        return [member for member, _ in self._living]

    async def finish(self) -> None:
        """Let everybody come home. Raises what a member found wrong."""
        self.stop.set()
        await asyncio.wait_for(asyncio.gather(*(task for _, task in self._living)), SETTLING_SECONDS)

    def at_rest(self) -> bool:
        """Everybody believes to be in one generation and everything is owned."""
        self.fill()
        generations = {member.generation_id for member in self.members}
        return (
            all(member.stable for member in self.members)
            and len(generations) == 1
            and all((max(generations), partition) in self.ledger.owners for partition in range(PARTITIONS))
        )

    async def end(self) -> None:
        """End all requests, whatever became of them."""
        for _, task in self._living:
            task.cancel()
        await asyncio.gather(*(task for _, task in self._living), return_exceptions=True)
        await self.client.aclose()


@pytest.fixture
def stack(database: str) -> Iterator[Stack]:
    """The processes on a fresh database."""
    with ExitStack() as processes:
        yield Stack(database, processes)


async def test_what_clients_are_told_is_never_contradicted(stack: Stack, token: str, database: str) -> None:
    print(f"seed {SEED}")
    crowd = Crowd(Random(SEED), token, stack.urls)
    try:
        await make_noise(stack, crowd)
        crowd.quiet.set()
        await settle(crowd)
        await check_group(crowd, database)
        await crowd.finish()
        await check_offsets(crowd)
    finally:
        print(f"seen {dict(crowd.ledger.seen)}, generation {crowd.ledger.highest}")
        await crowd.end()
    assert stack.tracebacks() == []
    for misfortune in ("cuts", "repeats", "crashes", "leaves", "rejoins"):
        assert crowd.ledger.seen[misfortune] > 0, f"there were no {misfortune}: the noise is too low"
    assert crowd.ledger.seen["commits"] > PARTITIONS


async def make_noise(stack: Stack, crowd: Crowd) -> None:
    """Let the members live, and kill a server in the midst."""
    made = await crowd.client.post(f"{stack.urls[0]}/v1/topics", json={"name": TOPIC, "partitions": PARTITIONS})
    assert made.status_code == 201, made.text
    for round_ in range(NOISY_ROUNDS):
        crowd.fill()
        if round_ == KILLED_IN:
            stack.kill()
        if round_ == RESTARTED_IN:
            stack.restart()
        if round_ in CRASHES_IN:
            crowd.doom()
        await asyncio.sleep(1)


async def settle(crowd: Crowd) -> None:
    """Wait until the group is at rest with all living members in it."""
    deadline = asyncio.get_running_loop().time() + SETTLING_SECONDS
    while not crowd.at_rest():
        assert asyncio.get_running_loop().time() < deadline, "not at rest: " + "; ".join(
            f"{member.member_id} {member.generation_id} {member.stable} {member.answers[-2:]}"
            for member in crowd.members
        )
        await asyncio.sleep(0.05)


async def check_group(crowd: Crowd, database: str) -> None:
    """The service has the same picture as its clients."""
    living = sorted(member.member_id for member in crowd.members)
    with psycopg.connect(database) as connection:
        state = connection.execute("select state, generation_id from groups_group").fetchall()
        members = connection.execute("select member_id from groups_member order by 1").fetchall()
    assert state == [("Stable", crowd.ledger.highest)]
    assert sorted(member_id for (member_id,) in members) == living


async def check_offsets(crowd: Crowd) -> None:
    """Nothing that was acknowledged is lost, and nothing is there that nobody committed."""
    asker = crowd.members[0]
    status, answer = await asker.call("offsets/fetch", {"topics": None})
    assert status == 200, answer
    found = {entry["partition"]: entry["committed_offset"] for entry in answer["topics"][0]["partitions"]}
    for partition, offset in crowd.ledger.acknowledged.items():
        assert found.get(partition, -1) >= offset
