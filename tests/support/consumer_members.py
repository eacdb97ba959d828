"""Consumer members over HTTP for tests with real processes, and a journal of who believed to own what."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx

Partition = tuple[str, int]

REJOIN = {"FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND"}


class TwoOwners(AssertionError):
    """Two members believed at one time that a partition is theirs."""


@dataclass
class Journal:
    """Who owns what, as the members themselves believe. One event loop writes it, so its order is that of time."""

    owners: dict[Partition, str] = field(default_factory=dict)
    handovers: int = 0

    def take(self, member: str, partitions: set[Partition]) -> None:
        """A member was told that these are its own."""
        for partition in partitions:
            holder = self.owners.setdefault(partition, member)
            if holder != member:
                raise TwoOwners(f"{partition} is given to {member} while {holder} has it")
            self.handovers += 1

    def give_up(self, member: str, partitions: set[Partition]) -> None:
        """A member stops using these; it has not said so yet."""
        for partition in partitions:
            assert self.owners.pop(partition, None) == member


@dataclass
class NoisyMember:
    """A member that does as the protocol says, while its requests get lost, are repeated, or it dies."""

    client: httpx.AsyncClient
    urls: Sequence[str]
    journal: Journal
    random: Random
    group_id: str = "g"
    topics: tuple[str, ...] = ("t",)
    noise: float = 0.1
    member_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    epoch: int = 0
    owned: set[Partition] = field(default_factory=set)
    acknowledge: bool = False
    epochs: list[int] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    async def run(self, stop: asyncio.Event, quiet: asyncio.Event) -> None:
        """Heartbeat until told to stop; without noise once `quiet` is set."""
        while not stop.is_set():
            await self.beat(noisy=not quiet.is_set())
            await asyncio.sleep(self.random.uniform(0.02, 0.1))

    async def beat(self, *, noisy: bool = False) -> None:
        """One heartbeat; its answer may get lost on the way, and then it is sent again in full."""
        lost = noisy and self.random.random() < self.noise
        body = self._body()
        for _ in range(2 if noisy and self.random.random() < self.noise else 1):
            answer = await self._post(body)
        if answer is None or lost:
            self.acknowledge = True  # nothing was learned: the next heartbeat is a full one
            return
        self._learn(answer)

    def _body(self) -> dict[str, Any]:
        body: dict[str, Any] = {"member_id": self.member_id, "member_epoch": self.epoch}
        if self.epoch == 0 or self.acknowledge:
            body |= {"rebalance_timeout_ms": 20_000, "subscribed_topic_names": list(self.topics)}
            by_topic: dict[str, list[int]] = {}
            for topic, partition in sorted(self.owned):
                by_topic.setdefault(topic, []).append(partition)
            body["topic_partitions"] = [{"topic": topic, "partitions": found} for topic, found in by_topic.items()]
        return body

    async def _post(self, body: dict[str, Any]) -> dict[str, Any] | None:
        url = self.random.choice(self.urls)
        try:
            response = await self.client.post(f"{url}/v1/groups/{self.group_id}/consumer-heartbeat", json=body)
        except httpx.TransportError as error:
            self.errors.append(repr(error))
            return None
        assert response.status_code < 500 or response.status_code == 503, response.text
        answer: dict[str, Any] = response.json()
        return None if response.status_code == 503 else answer

    def _learn(self, answer: dict[str, Any]) -> None:
        if "error" in answer and answer["error"] != "NONE":
            self.errors.append(answer["error"])
            assert answer["error"] in REJOIN, answer
            self.journal.give_up(self.member_id, self.owned)
            self.epoch, self.owned, self.acknowledge = 0, set(), False
            return
        assert answer["member_epoch"] >= self.epoch, "epochs never fall"
        self.epoch = answer["member_epoch"]
        self.epochs.append(self.epoch)
        self.acknowledge = False
        if answer["assignment"] is not None:
            self._apply(
                {
                    (entry["topic"], partition)
                    for entry in answer["assignment"]["topic_partitions"]
                    for partition in entry["partitions"]
                }
            )

    def _apply(self, assigned: set[Partition]) -> None:
        self.journal.give_up(self.member_id, self.owned - assigned)
        self.journal.take(self.member_id, assigned - self.owned)
        self.owned = assigned
        self.acknowledge = True

    async def leave(self) -> None:
        """Go home: stop using everything, then say so."""
        self.journal.give_up(self.member_id, self.owned)
        self.owned = set()
        await self._post({"member_id": self.member_id, "member_epoch": -1})
        self.epoch = 0
