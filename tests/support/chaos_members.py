"""Members that crash, leave, come back, repeat themselves and hang up, and a ledger of what they were told.

The ledger knows nothing of the service's insides. It judges answers alone, by what a client may conclude from them.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx

from tests.support.http_members import Answer, HttpMember

TOPIC = "t"
PARTITIONS = 24
SESSION_TIMEOUT_MS = 6_000
REBALANCE_TIMEOUT_MS = 3_000
MAX_WAIT_MS = 15_000
"""Longer than any barrier stands here: who has to ask again was not woken."""

MARGIN_SECONDS = 10.0
"""What a request may take beyond its wait, on a busy machine. It stands for "for ever"."""


@dataclass
class Ledger:
    """Every answer, and what contradicts it."""

    owners: dict[tuple[int, int], str] = field(default_factory=dict)
    acknowledged: dict[int, int] = field(default_factory=lambda: defaultdict(lambda: -1))
    fetched: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    highest: int = 0
    seen: Counter[str] = field(default_factory=Counter)

    def generation(self, who: str, generation: int, floor: int) -> None:
        """A join was answered; `floor` is the highest generation that anybody knew of when it was sent."""
        assert generation >= floor, f"{who}: generation {generation} after {floor}"
        self.highest = max(self.highest, generation)

    def assigned(self, who: str, generation: int, partitions: list[int]) -> None:
        """A sync was answered."""
        for partition in partitions:
            owner = self.owners.setdefault((generation, partition), who)
            assert owner == who, f"partition {partition} is {owner}'s and {who}'s in generation {generation}"
        self.seen["assignments"] += len(partitions)

    def committed(self, partition: int, generation: int, offset: int) -> None:
        """A commit was answered with success: nobody of a later generation can have read what was there before."""
        self.acknowledged[partition] = max(self.acknowledged[partition], offset)
        for later, found in self.fetched[partition]:
            assert later <= generation or found >= offset, (
                f"partition {partition}: offset {offset} was acknowledged in generation {generation}, "
                f"but generation {later} began at {found}"
            )
        self.seen["commits"] += 1

    def began(self, partition: int, generation: int, offset: int, floor: int) -> None:
        """The owner of a generation fetched where to go on; `floor` was acknowledged when it asked."""
        assert offset >= floor, f"partition {partition}: generation {generation} began at {offset}, not at {floor}"
        self.fetched[partition].append((generation, offset))


class Crashed(Exception):
    """The member falls silent: it says nothing to anybody."""


@dataclass
class ChaosMember(HttpMember):
    """A member with bad luck, until `quiet` is set."""

    ledger: Ledger = field(default_factory=Ledger)
    random: Random = field(default_factory=Random)
    quiet: asyncio.Event = field(default_factory=asyncio.Event)
    session_timeout_ms: int = SESSION_TIMEOUT_MS
    rebalance_timeout_ms: int = REBALANCE_TIMEOUT_MS
    stable: bool = False
    doomed: bool = False
    offsets: dict[int, int] = field(default_factory=dict)

    def strikes(self, chance: float, what: str) -> bool:
        """Whether this misfortune happens now."""
        if self.quiet.is_set() or self.random.random() >= chance:
            return False
        self.ledger.seen[what] += 1
        return True

    async def run(self, stop: asyncio.Event) -> None:
        """Live until `stop`, or until a crash."""
        try:
            while not stop.is_set():
                if await self.enter_generation():
                    await self.work(stop)
                self.stable = False
        except Crashed:
            self.stable = False

    async def call(self, path: str, body: dict[str, Any]) -> Answer:
        """One request, perhaps cut while it waits, perhaps sent twice at once; (0, {}) where no answer came."""
        seconds = body.get("max_wait_ms", 0) / 1000 + MARGIN_SECONDS
        # Not while it has no id: Kafka too lets an id that nobody uses hold up the others for a session timeout.
        if self.member_id and self.strikes(0.04, "cuts"):
            seconds = self.random.uniform(0.0, 0.6)
            try:
                return await asyncio.wait_for(self.post(path, body), seconds)
            except TimeoutError:
                return 0, {}
        times = 2 if self.strikes(0.06, "repeats") else 1
        try:
            answers = await asyncio.wait_for(asyncio.gather(*(self.post(path, body) for _ in range(times))), seconds)
        except TimeoutError:
            raise AssertionError(f"{self.member_id}: {path} was not answered within {seconds:g} s") from None
        for status, answer in answers:
            assert status != 500, f"{self.member_id}: {path}: {answer}"
            assert not ("max_wait_ms" in body and answer.get("action") == "retry" and status == 409), (
                f"{self.member_id}: {path} waited in vain: {answer}"
            )
            if status in (0, 503):
                await asyncio.sleep(0.1)
        return answers[0]

    async def enter_generation(self) -> bool:
        """Join, sync and fetch; true with an assignment."""
        floor = self.ledger.highest
        status, joined = await self.call(
            "join",
            {
                "member_id": self.member_id,
                "client_id": "chaos",
                "session_timeout_ms": self.session_timeout_ms,
                "rebalance_timeout_ms": self.rebalance_timeout_ms,
                "protocol_type": "consumer",
                "protocols": [{"name": "range", "subscription": {"topics": [TOPIC]}}],
                "max_wait_ms": MAX_WAIT_MS,
            },
        )
        if status != 200:
            if joined.get("error") == "MEMBER_ID_REQUIRED":
                self.member_id = joined["member_id"]
            elif joined.get("error") == "UNKNOWN_MEMBER_ID":
                self.member_id = ""
            return False
        self.generation_id = joined["generation_id"]
        self.ledger.generation(self.member_id, self.generation_id, floor)
        self.perhaps_die()
        return await self.get_assignment(joined)

    async def get_assignment(self, joined: dict[str, Any]) -> bool:
        """Sync, as leader with a plan for everybody, and ask where to go on."""
        ids = [member["member_id"] for member in joined["members"]]
        plan: list[dict[str, Any]] = [
            {"member_id": member_id, "partitions": {TOPIC: list(range(n, PARTITIONS, len(ids)))}}
            for n, member_id in enumerate(self.random.sample(ids, len(ids)))
        ]
        status, synced = await self.call(
            "sync",
            {
                "member_id": self.member_id,
                "generation_id": self.generation_id,
                "protocol_type": "consumer",
                "protocol_name": "range",
                "assignments": plan,
                "max_wait_ms": MAX_WAIT_MS,
            },
        )
        if status != 200:
            return False
        partitions = synced["partitions"].get(TOPIC, [])
        self.ledger.assigned(self.member_id, self.generation_id, partitions)
        return await self.fetch(partitions)

    async def fetch(self, partitions: list[int]) -> bool:
        """Where to go on with each partition."""
        floors = {partition: self.ledger.acknowledged[partition] for partition in partitions}
        status, answer = await self.call("offsets/fetch", {"topics": [{"name": TOPIC, "partitions": partitions}]})
        if status != 200:
            return False
        self.offsets = {}
        for entry in answer["topics"][0]["partitions"]:
            partition, offset = entry["partition"], entry["committed_offset"]
            self.ledger.began(partition, self.generation_id, offset, floors[partition])
            self.offsets[partition] = offset
        return True

    async def work(self, stop: asyncio.Event) -> None:
        """Heartbeat and commit until the generation is over."""
        self.stable = True
        while not stop.is_set():
            await asyncio.sleep(self.random.uniform(0.02, 0.15))
            self.perhaps_die()
            if self.strikes(0.02, "leaves"):
                await self.call("leave", {"members": [{"member_id": self.member_id}]})
                self.member_id = ""
                return
            if self.strikes(0.02, "rejoins"):
                return
            status, _ = await self.call("heartbeat", {"member_id": self.member_id, "generation_id": self.generation_id})
            if status not in (0, 200, 503) or not await self.commit_one():
                return

    def perhaps_die(self) -> None:
        """Fall silent if this is the end."""
        if self.doomed:
            self.ledger.seen["crashes"] += 1
            raise Crashed

    async def commit_one(self) -> bool:
        """Commit one step of one partition; false where this generation must not commit any more."""
        if not self.offsets:
            return True
        partition = self.random.choice(list(self.offsets))
        offset = self.offsets[partition] + 1
        entry = {"partition": partition, "committed_offset": offset}
        status, answer = await self.call(
            "offsets/commit",
            {
                "member_id": self.member_id,
                "generation_id_or_member_epoch": self.generation_id,
                "topics": [{"name": TOPIC, "partitions": [entry]}],
            },
        )
        if status in (0, 503):
            # It may still be under way. A later commit of this generation could be overtaken by it.
            del self.offsets[partition]
            return True
        if status != 200:
            return False
        assert answer["topics"][0]["partitions"][0]["error_code"] == 0, answer
        self.offsets[partition] = offset
        self.ledger.committed(partition, self.generation_id, offset)
        return True


def client_for(token: str) -> httpx.AsyncClient:
    """A client that waits as long as its callers let it."""
    return httpx.AsyncClient(
        headers={"Authorization": f"Bearer {token}"}, timeout=None, limits=httpx.Limits(max_connections=200)
    )
