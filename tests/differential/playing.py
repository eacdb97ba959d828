"""Plays a sequence to one of the two: sends its steps one after the other, and keeps what later steps refer to."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from kcoord.door.kafka.codec import Fields
from tests.differential.sequences import LONG_METADATA, SLOTS, STATIC, TOPICS, UNKNOWN_TOPIC, Step
from tests.wire.client import WireClient

ANSWER_SECONDS = 20.0
BUSY = {14, 15, 16, 51}
"""Errors that a broker answers while it loads or ends something: the request is sent again."""
PAUSE_SECONDS = 0.1
UNSTABLE = 88
MEMBER_ID_REQUIRED = 79
SESSION_MS, REBALANCE_MS = 30_000, 30_000
GIVES_EPOCHS = 5
"""The version of TxnOffsetCommit from which on a transaction is ended by EndTxn 5."""
WITH_IDS = {"offset_commit": 10, "offset_fetch": 10, "txn_offset_commit": 6}

Partitions = Iterable[tuple[str, int]]


@dataclass
class Slot:
    """What a member knows of itself. `instance`: its static id, "" if it has none."""

    member_id: str = ""
    epoch: int = 0
    previous: int = 0
    instance: str = ""
    assigned: list[dict[str, Any]] = field(default_factory=list)

    def at(self, epoch: int) -> None:
        """It was told its epoch or generation."""
        if epoch != self.epoch:
            self.previous, self.epoch = self.epoch, epoch

    def named(self, which: str) -> int:
        """An epoch by its name; that before the current one is a newer one if there was none."""
        if which == "current":
            return self.epoch
        return self.previous if which == "previous" and self.previous > 0 else self.epoch + 5


@dataclass(frozen=True)
class Place:
    """Where to play: a port, and the token for it, "" for a broker. `topics`: their ids by name."""

    port: int
    token: str
    topics: dict[str, uuid.UUID]

    async def connect(self) -> WireClient:
        """A connection that is logged in."""
        client = await WireClient(self.port).__aenter__()
        return await client.log_in(self.token) if self.token else client


async def prepared(port: int, token: str) -> Place:
    """A place with the topics of the sequences, and with coordinators that answer."""
    place = Place(port, token, {})
    client = await place.connect()
    missing = [{"name": name, "num_partitions": n, "replication_factor": 1} for name, n in TOPICS.items()]
    await client.ask("create_topics", 7, topics=missing, timeout=10_000)
    for kind in (0, 1):
        await until_ready(client, "find_coordinator", 4, key_type=kind, coordinator_keys=["any"])
    while len(place.topics) < len(TOPICS):
        found = await client.ask("metadata", 12, topics=[{"name": name} for name in TOPICS])
        place.topics.update({topic.name: topic.topic_id for topic in found.topics if not topic.error_code})
    client.abort()
    return place


async def until_ready(client: WireClient, name: str, version: int, **body: Any) -> Fields:
    """The first answer that has no error of those that pass by themselves."""
    async with asyncio.timeout(ANSWER_SECONDS * 3):
        while True:
            answer = await client.ask(name, version, **body)
            if not _codes(answer) & BUSY:
                return answer
            await asyncio.sleep(PAUSE_SECONDS)


def _codes(answer: Any) -> set[int]:
    if isinstance(answer, dict):
        own = {answer["error_code"]} if "error_code" in answer else set()
        return own.union(*map(_codes, answer.values()))
    return set().union(*map(_codes, answer)) if isinstance(answer, list) else set()


class Player:
    """One group on one side. Each step is a method, which returns the answer."""

    def __init__(self, place: Place, group: str) -> None:
        self.place, self.group = place, group
        self.slots = [Slot() for _ in SLOTS]
        self._clients: list[WireClient] = []
        self._producer: dict[str, Any] = {}
        self._leader = 0

    async def __aenter__(self) -> Player:
        self._clients = [await self.place.connect() for _ in (*SLOTS, None)]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        for client in self._clients:
            client.abort()

    async def play(self, steps: Sequence[Step]) -> list[Any]:
        """The answers."""
        return [await getattr(self, step.kind)(**step.given) for step in steps]

    async def _ask(self, name: str, version: int, **body: Any) -> Fields:
        return await until_ready(self._clients[-1], name, version, **body)

    def _topics(self, name: str, version: int, partitions: Partitions, entry: Any) -> list[dict[str, Any]]:
        """Partitions by topic, which versions with ids name by id."""
        by_topic: dict[str, list[Any]] = {}
        for topic, number in partitions:
            by_topic.setdefault(topic, []).append(entry(number))
        key = "partition_indexes" if name == "offset_fetch" else "partitions"
        with_ids = version >= WITH_IDS.get(name, 99)
        return [
            {**({"topic_id": self._id_of(topic)} if with_ids else {"name": topic}), key: entries}
            for topic, entries in by_topic.items()
        ]

    def _id_of(self, topic: str) -> uuid.UUID:
        return uuid.UUID(int=7) if topic == UNKNOWN_TOPIC else self.place.topics[topic]

    async def join(self, slot: int, version: int, topics: list[str], assignor: str | None) -> Any:
        """A member of the consumer protocol joins, or joins again, with ids that are the same on both sides."""
        one = self.slots[slot]
        one.member_id = one.member_id or f"{self.group}-{slot}"
        one.instance = f"i{slot}" if slot == STATIC else ""
        return await self._beat(one, version, 0, subscribed_topic_names=topics, assignor=assignor, owned="none")

    async def beat(self, slot: int, version: int, epoch: str, owned: str | None, topics: list[str] | None) -> Any:
        """A heartbeat of the consumer protocol; of a member that never joined with an epoch that nobody has."""
        one = self.slots[slot]
        return await self._beat(one, version, one.named(epoch), subscribed_topic_names=topics, owned=owned)

    async def leave_by_beat(self, slot: int, version: int, epoch: int) -> Any:
        """It leaves, for a while with -2."""
        return await self._beat(self.slots[slot], version, epoch)

    async def _beat(self, one: Slot, version: int, epoch: int, **given: Any) -> Any:
        owned = {"none": [], "assigned": one.assigned, None: None}[given.pop("owned", None)]
        answer = await self._ask(
            "consumer_group_heartbeat",
            version,
            group_id=self.group,
            member_id=one.member_id or "stranger",
            member_epoch=epoch,
            instance_id=one.instance or None,
            rebalance_timeout=REBALANCE_MS if epoch == 0 else -1,
            server_assignor=given.pop("assignor", None),
            topic_partitions=owned,
            **given,
        )
        if not answer.error_code:
            one.at(max(answer.member_epoch, 0))
            if answer.assignment is not None:
                one.assigned = answer.assignment["topic_partitions"]
        return answer

    async def rebalance(self, slot: int, version: int) -> Any:
        """A new member of the classic protocol joins, or else the leader again, all others join after it, and all sync.

        What one of them is told depends on who leads, which differs; so the answers are told as a whole.
        """
        first = self._leader if self.slots[slot].member_id and self.slots[self._leader].member_id else slot
        joining = [first, *(other for other in SLOTS if other != first and self.slots[other].member_id)]
        begun = [await self._begin_join(joining[0], version)]
        if len(joining) > 1 and begun[0] is None:
            await self._until_joining()
        begun += [await self._begin_join(other, version) for other in joining[1:]]
        joined = [
            answer or await self._received(other, "join_group", version)
            for other, answer in zip(joining, begun, strict=True)
        ]
        for other, answer in zip(joining, joined, strict=True):
            self._take(self.slots[other], answer)
        members = [other for other, answer in zip(joining, joined, strict=True) if answer.error_code == 0]
        leader = next((answer for answer in joined if answer.error_code == 0 and answer.members), None)
        shares = [{"member_id": self.slots[o].member_id, "assignment": f"{o}".encode()} for o in members]
        for other in members:
            is_leader = leader is not None and leader.leader == self.slots[other].member_id
            self._leader = other if is_leader else self._leader
            self._send(other, "sync_group", 5, assignments=shares if is_leader else [], **self._names(other))
        synced = {other: await self._received(other, "sync_group", 5) for other in members}
        return {
            "joined": [(answer.error_code, answer.generation_id, answer.protocol_name) for answer in joined],
            "members": leader and sorted(member.member_id for member in leader.members),
            "synced": {other: (answer.error_code, answer.assignment) for other, answer in synced.items()},
        }

    def _names(self, slot: int) -> dict[str, Any]:
        one = self.slots[slot]
        return {"member_id": one.member_id, "generation_id": one.epoch, "protocol_name": "range"}

    def _send(self, slot: int, name: str, version: int, **body: Any) -> None:
        self._clients[slot].send(name, version, group_id=self.group, protocol_type="consumer", **body)

    async def _received(self, slot: int, name: str, version: int) -> Fields:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await self._clients[slot].receive(name, version)

    async def _begin_join(self, slot: int, version: int) -> Fields | None:
        """Send a JoinGroup; the answer if there is one that says that the member does not wait."""
        one = self.slots[slot]
        body = {"session_timeout": SESSION_MS, "rebalance_timeout": REBALANCE_MS}
        body |= {"protocols": [{"name": "range", "metadata": b"\0\1\0\0\0\1\0\6orders\xff\xff\xff\xff\0\0\0\0"}]}
        if not one.member_id:
            self._send(slot, "join_group", version, member_id="", **body)
            answer = await self._received(slot, "join_group", version)
            if answer.error_code != MEMBER_ID_REQUIRED:
                return answer
            one.member_id = answer.member_id
        self._send(slot, "join_group", version, member_id=one.member_id, **body)
        return None

    def _take(self, one: Slot, answer: Fields) -> None:
        if answer.error_code:
            one.member_id = ""
        else:
            one.member_id = answer.member_id
            one.at(answer.generation_id)

    async def _until_joining(self) -> None:
        """Return when the group waits for its members, so that those who join now join the same generation."""
        async with asyncio.timeout(ANSWER_SECONDS):
            while True:
                (group,) = (await self._ask("describe_groups", 5, groups=[self.group])).groups
                if group.group_state != "Stable":
                    return
                await asyncio.sleep(PAUSE_SECONDS / 10)

    async def heartbeat(self, slot: int, version: int, epoch: str) -> Any:
        """Heartbeat."""
        one = self.slots[slot]
        body = {"member_id": one.member_id or "stranger", "generation_id": one.named(epoch)}
        return await self._ask("heartbeat", version, group_id=self.group, **body)

    async def leave(self, slot: int, version: int, by: str) -> Any:
        """LeaveGroup: by member id, instance id, both, or ids of nobody."""
        one = self.slots[slot]
        member_id = "" if by == "instance" else "stranger" if by == "nobody" or not one.member_id else one.member_id
        instance = one.instance or "nobody" if by in ("instance", "both") else None
        body: dict[str, Any] = {"member_id": member_id or "stranger"}
        if version >= 3:
            body = {"members": [{"member_id": member_id, "group_instance_id": instance}]}
        return await self._ask("leave_group", version, group_id=self.group, **body)

    async def commit(
        self, slot: int | None, version: int, epoch: str, partitions: Partitions, offset: int, metadata: int
    ) -> Any:
        """OffsetCommit; `slot` None: by nobody."""

        def entry(number: int) -> dict[str, Any]:
            text = "m" * metadata if number == 0 or metadata < LONG_METADATA else "m"
            return {"partition_index": number, "committed_offset": offset, "committed_metadata": text}

        topics = self._topics("offset_commit", version, partitions, entry)
        member_id, number = self._who(slot, epoch)
        body = {"member_id": member_id, "generation_id_or_member_epoch": number, "topics": topics}
        return await self._ask("offset_commit", version, group_id=self.group, **body)

    def _who(self, slot: int | None, epoch: str) -> tuple[str, int]:
        if slot is None:
            return "", -1
        one = self.slots[slot]
        return one.member_id or "stranger", one.named(epoch)

    async def fetch(
        self, slot: int | None, version: int, epoch: str, partitions: Partitions | None, stable: bool
    ) -> Any:
        """OffsetFetch, as a member from version 9 on."""
        asked = None if partitions is None else self._topics("offset_fetch", version, partitions, lambda number: number)
        body: dict[str, Any] = {"group_id": self.group, "topics": asked}
        if slot is not None and version >= 9:
            body["member_id"], body["member_epoch"] = self._who(slot, epoch)
        if version >= 8:
            body = {"groups": [body]}
        return await self._ask("offset_fetch", version, require_stable=stable, **body)

    async def transaction(
        self, slot: int | None, version: int, epoch: str, partitions: Partitions, offset: int, committed: bool
    ) -> Any:
        """A transaction of one commit, until its end shows; from version 5 on with an epoch of its own (KIP-890)."""
        name = f"tx-{self.group}"
        if not self._producer:
            made = await self._ask("init_producer_id", 4, transactional_id=name, transaction_timeout=60_000)
            self._producer = {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch}
        who = {"transactional_id": name, **self._producer}
        goes_on = version >= GIVES_EPOCHS
        added = None if goes_on else await self._ask("add_offsets_to_txn", 3, group_id=self.group, **who)

        def entry(number: int) -> dict[str, Any]:
            return {"partition_index": number, "committed_offset": offset, "committed_metadata": ""}

        member_id, generation = self._who(slot, epoch)
        body = {"member_id": member_id, "generation_id": generation}
        topics = self._topics("txn_offset_commit", version, partitions, entry)
        answer = await self._ask("txn_offset_commit", version, group_id=self.group, topics=topics, **body, **who)
        ended = await self._ask("end_txn", 5 if goes_on else 3, committed=committed, **who)
        await self._fetch_until_stable(partitions)
        return [added, answer, {"error_code": ended.error_code, **self._gone_on(ended)}]

    def _gone_on(self, ended: Fields) -> dict[str, Any]:
        """The producer of the next transaction, if an end gave one, as what became of the one before."""
        if "producer_epoch" not in ended or ended.error_code:
            return {}
        before, self._producer = self._producer, {key: ended[key] for key in self._producer}
        return {
            "is_same": before["producer_id"] == ended.producer_id,
            "later": ended.producer_epoch - before["producer_epoch"],
        }

    async def _fetch_until_stable(self, partitions: Partitions) -> None:
        async with asyncio.timeout(ANSWER_SECONDS):
            while True:
                if UNSTABLE not in _codes(await self.fetch(None, 7, "current", partitions, stable=True)):
                    return
                await asyncio.sleep(PAUSE_SECONDS)

    async def delete_offsets(self, partitions: Partitions) -> Any:
        """OffsetDelete."""
        topics = self._topics("offset_delete", 0, partitions, lambda number: {"partition_index": number})
        return await self._ask("offset_delete", 0, group_id=self.group, topics=topics)

    async def delete_group(self, version: int) -> Any:
        """DeleteGroups."""
        return await self._ask("delete_groups", version, groups_names=[self.group])

    async def describe(self, version: int) -> Any:
        """DescribeGroups."""
        return await self._ask("describe_groups", version, groups=[self.group])

    async def describe_consumer(self, version: int) -> Any:
        """ConsumerGroupDescribe."""
        return await self._ask("consumer_group_describe", version, group_ids=[self.group])

    async def list_groups(self, version: int) -> Any:
        """ListGroups, of this group."""
        answer = await self._ask("list_groups", version)
        return {**answer, "groups": [group for group in answer.groups if group.group_id == self.group]}
