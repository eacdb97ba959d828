"""Members whose commits race with the end of their own generation, over HTTP and through `kcoord.commit_offsets`.

Every partition that a member gets has a committer of its own, which commits as fast as it can until it is refused: it
goes on while its member joins the next generation, or has left the group. `Ledger` judges what it is told.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx
import psycopg

from tests.support.chaos_members import Ledger

TOPIC = "t"
GROUP = "g"
SQL_COMMIT = "select kcoord.commit_offsets(%s, %s, %s, %s::text::jsonb)"
REFUSALS = {"ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "STALE_MEMBER_EPOCH"}
LATER = {"COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE"}

Answer = tuple[int, dict[str, Any]]


@dataclass
class Arena:
    """Where they race: two servers and some connections to the database."""

    client: httpx.AsyncClient
    urls: Sequence[str]
    connections: asyncio.Queue[psycopg.AsyncConnection[Any]]
    random: Random
    partitions: int
    ledger: Ledger = field(default_factory=Ledger)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    committers: set[asyncio.Task[None]] = field(default_factory=set)
    tenures: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    acknowledged: set[tuple[int, int, str]] = field(default_factory=set)
    """(partition, offset, member id) of every commit that was answered with success."""

    async def post(self, path: str, body: dict[str, Any]) -> Answer:
        """One request to either server."""
        response = await self.client.post(f"{self.random.choice(self.urls)}/v1/groups/{GROUP}/{path}", json=body)
        assert response.status_code != 500, response.text
        return response.status_code, response.json()

    async def fetch(self, partitions: Sequence[int]) -> dict[int, int]:
        """The committed offsets, -1 where there is none, checked against what was acknowledged before."""
        status, answer = await self.post("offsets/fetch", {"topics": [{"name": TOPIC, "partitions": list(partitions)}]})
        assert status == 200, answer
        return {entry["partition"]: entry["committed_offset"] for entry in answer["topics"][0]["partitions"]}

    async def commit(
        self, partition: int, offset: int, member_id: str, generation: int, lingers: asyncio.Event | None = None
    ) -> str:
        """Commit by one of the two ways; returns the error, "NONE" for success.

        `lingers` is set while a transaction has called the function and not been committed yet.
        """
        if self.random.random() < 0.4:
            error = await self._commit_in_sql(partition, offset, member_id, generation, lingers or asyncio.Event())
        else:
            error = await self._commit_over_http(partition, offset, member_id, generation)
        if error == "NONE":
            self.acknowledged.add((partition, offset, member_id))
        self.ledger.seen[error] += 1
        return error

    async def _commit_over_http(self, partition: int, offset: int, member_id: str, generation: int) -> str:
        entry = {"partition": partition, "committed_offset": offset}
        topics = [{"name": TOPIC, "partitions": [entry]}]
        _, answer = await self.post(
            "offsets/commit",
            {"member_id": member_id, "generation_id_or_member_epoch": generation, "topics": topics},
        )
        return str(answer["error"] if "error" in answer else answer["topics"][0]["partitions"][0]["error"])

    async def _commit_in_sql(
        self, partition: int, offset: int, member_id: str, generation: int, lingers: asyncio.Event
    ) -> str:
        offsets = json.dumps([{"topic": TOPIC, "partition": partition, "committed_offset": offset}])
        connection = await self.connections.get()
        try:
            async with connection.transaction():
                await connection.execute(SQL_COMMIT, (GROUP, member_id, generation, offsets))
                lingers.set()
                await asyncio.sleep(self.random.choice((0.0, 0.002, 0.01, 0.1)))
        except psycopg.Error as error:
            if not (error.sqlstate or "").startswith("KC"):
                raise
            return (error.diag.message_primary or "").partition(":")[0]
        finally:
            lingers.clear()
            self.connections.put_nowait(connection)
        self.ledger.seen["in_sql"] += 1
        return "NONE"

    def let_commit(self, committer: Any) -> asyncio.Task[None]:
        """Run a committer beside everything else."""
        task = asyncio.create_task(committer)
        self.committers.add(task)
        return task

    async def finish(self) -> None:
        """Wait for all committers. Raises what they found wrong."""
        await asyncio.gather(*self.committers)

    def check(self) -> None:
        """Raise what a committer that has ended found wrong."""
        for task in [task for task in self.committers if task.done()]:
            self.committers.discard(task)
            task.result()


@asynccontextmanager
async def arena(
    conninfo: str, token: str, urls: Sequence[str], random: Random, partitions: int
) -> AsyncIterator[Arena]:
    """An arena with its topic."""
    headers = {"Authorization": f"Bearer {token}"}
    limits = httpx.Limits(max_connections=200)
    connections: asyncio.Queue[psycopg.AsyncConnection[Any]] = asyncio.Queue()
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(httpx.AsyncClient(headers=headers, timeout=60, limits=limits))
        for _ in range(6):
            connection = await psycopg.AsyncConnection.connect(conninfo, autocommit=True)
            connections.put_nowait(await stack.enter_async_context(connection))
        made = await client.post(f"{urls[0]}/v1/topics", json={"name": TOPIC, "partitions": partitions})
        assert made.status_code == 201, made.text
        yield Arena(client, urls, connections, random, partitions)


@dataclass
class ClassicRacer:
    """A member of a classic group that joins again and again."""

    arena: Arena
    member_id: str = ""
    generation_id: int = -1
    leads: bool = False

    async def run(self) -> None:
        """Live until the race is stopped."""
        while not self.arena.stop.is_set():
            if await self._enter():
                await self._stay()

    async def _enter(self) -> bool:
        arena, floor = self.arena, self.arena.ledger.highest
        status, joined = await arena.post("join", {
            "member_id": self.member_id, "client_id": "racer", "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 5_000, "protocol_type": "consumer",
            "protocols": [{"name": "range", "subscription": {"topics": [TOPIC]}}], "max_wait_ms": 10_000,
        })  # fmt: skip
        if status != 200:
            self.member_id = joined.get("member_id", "") if joined.get("error") != "UNKNOWN_MEMBER_ID" else ""
            return False
        self.generation_id = joined["generation_id"]
        arena.ledger.generation(self.member_id, self.generation_id, floor)
        members = [member["member_id"] for member in joined["members"]]
        self.leads = bool(members)
        shares = {member: list(range(n, arena.partitions, len(members))) for n, member in enumerate(members)}
        status, synced = await arena.post("sync", {
            "member_id": self.member_id, "generation_id": self.generation_id, "protocol_type": "consumer",
            "protocol_name": "range", "max_wait_ms": 10_000,
            "assignments": [{"member_id": m, "partitions": {TOPIC: share}} for m, share in shares.items()],
        })  # fmt: skip
        if status != 200:
            return False
        await self._begin(synced["partitions"].get(TOPIC, []))
        return True

    async def _begin(self, partitions: list[int]) -> None:
        arena, ledger = self.arena, self.arena.ledger
        ledger.assigned(self.member_id, self.generation_id, partitions)
        floors = {partition: ledger.acknowledged[partition] for partition in partitions}
        for partition, offset in (await arena.fetch(partitions)).items() if partitions else ():
            ledger.began(partition, self.generation_id, offset, floors[partition])
            arena.let_commit(self._commit(partition, offset, self.member_id, self.generation_id))

    async def _commit(self, partition: int, offset: int, member_id: str, generation: int) -> None:
        """Commit one step after the other in one generation, whatever becomes of the member."""
        while not self.arena.stop.is_set():
            error = await self.arena.commit(partition, offset + 1, member_id, generation)
            if error in LATER:
                continue
            if error != "NONE":
                assert error in REFUSALS, error
                return
            offset += 1
            self.arena.ledger.committed(partition, generation, offset)
            await asyncio.sleep(self.arena.random.uniform(0, 0.03))

    async def _stay(self) -> None:
        """Heartbeat until the group rebalances; the leader makes it do so."""
        random = self.arena.random
        for _ in range(random.randrange(2, 6) if self.leads else 1_000):
            await asyncio.sleep(random.uniform(0.02, 0.06))
            if self.arena.stop.is_set():
                return
            if random.random() < 0.03:
                self.arena.ledger.seen["leaves"] += 1
                await self.arena.post("leave", {"members": [{"member_id": self.member_id}]})
                self.member_id = ""
                return
            body = {"member_id": self.member_id, "generation_id": self.generation_id}
            if (await self.arena.post("heartbeat", body))[0] != 200:
                return


@dataclass
class ConsumerRacer:
    """A member of a consumer group that now and then leaves without telling its committers."""

    arena: Arena
    member_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    epoch: int = 0
    owned: dict[int, asyncio.Task[None]] = field(default_factory=dict)
    giving_up: set[int] = field(default_factory=set)
    acknowledge: bool = False
    lingers: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Live until the race is stopped, or until it leaves: if it can, while it is about to commit."""
        random = self.arena.random
        while not self.arena.stop.is_set():
            await self._beat()
            await asyncio.sleep(random.uniform(0.01, 0.03))
            if self.owned and random.random() < 0.1:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.lingers.wait(), 1)
                self.arena.ledger.seen["leaves"] += 1
                await self.arena.post("consumer-heartbeat", {"member_id": self.member_id, "member_epoch": -1})
                # The committers of the member that was know nothing of it.
                return

    async def _beat(self) -> None:
        body: dict[str, Any] = {"member_id": self.member_id, "member_epoch": self.epoch}
        if self.epoch == 0 or self.acknowledge:
            held = [{"topic": TOPIC, "partitions": sorted(self.owned)}] if self.owned else []
            body |= {"rebalance_timeout_ms": 10_000, "subscribed_topic_names": [TOPIC], "topic_partitions": held}
        else:
            body["max_wait_ms"] = 100
        status, answer = await self.arena.post("consumer-heartbeat", body)
        if status != 200:
            assert answer["error"] in LATER, answer
            self.acknowledge = True
            return
        self.epoch, self.acknowledge = answer["member_epoch"], False
        self.arena.ledger.highest = max(self.arena.ledger.highest, self.epoch)
        if answer["assignment"] is not None:
            entries = answer["assignment"]["topic_partitions"]
            await self._apply({partition for entry in entries for partition in entry["partitions"]})

    async def _apply(self, assigned: set[int]) -> None:
        """Stop committing what goes before saying so; go on where the owner before stopped."""
        arena, ledger = self.arena, self.arena.ledger
        gone = set(self.owned) - assigned
        self.giving_up |= gone
        await asyncio.gather(*(self.owned.pop(partition) for partition in gone))
        self.giving_up -= gone
        self.acknowledge = True
        new = sorted(assigned - set(self.owned))
        for partition in new:
            arena.tenures[partition] += 1
        tenures = {partition: arena.tenures[partition] for partition in new}
        floors = {partition: ledger.acknowledged[partition] for partition in new}
        for partition, offset in (await arena.fetch(new)).items() if new else ():
            ledger.seen["assignments"] += 1
            ledger.began(partition, tenures[partition], offset, floors[partition])
            self.owned[partition] = arena.let_commit(self._commit(partition, offset, tenures[partition]))

    async def _commit(self, partition: int, offset: int, tenure: int) -> None:
        """Commit one step after the other while the member has the partition, as far as this knows."""
        while not self.arena.stop.is_set() and partition not in self.giving_up:
            epoch = self.epoch
            error = await self.arena.commit(partition, offset + 1, self.member_id, epoch, self.lingers)
            if error in LATER or (error == "STALE_MEMBER_EPOCH" and self.epoch != epoch):
                continue
            if error != "NONE":
                assert error in REFUSALS, error
                return
            offset += 1
            self.arena.ledger.committed(partition, tenure, offset)
            await asyncio.sleep(self.arena.random.uniform(0, 0.03))
