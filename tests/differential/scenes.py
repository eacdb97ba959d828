"""Scenarios of one request each, in every version that is served: what they are made of.

A scenario is a function of `scenarios`, which sends requests through a `Scene`. It is played to a broker and to the
gateway, each time in a group of its own, and all answers are compared, as those of random sequences are. What a broker
answered is kept in `RECORDED`, so that the gateway can be tested without one.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from kcoord.door.kafka.codec import Fields
from tests.differential.playing import ANSWER_SECONDS, WITH_IDS, Place, until_ready
from tests.differential.rules import canonical, compared
from tests.differential.sequences import UNKNOWN_TOPIC, Step
from tests.support.wire import BY_NAME
from tests.wire.client import WireClient

SUBSCRIBED = b"\0\1\0\0\0\1\0\6orders\xff\xff\xff\xff\0\0\0\0"
"""The metadata of a member that subscribes to `orders`."""
RECORDED = Path(__file__).parent / "scenarios.jsonl"
VERSIONS = Path(__file__).parent / "versions.json"
"""First and last version of each API of a broker, by its key."""
PARTITION_OF = {
    "offset_fetch": lambda number: number,
    "offset_delete": lambda number: {"partition_index": number},
}
OF_NO_SIDE = {"host", "port", "node_id", "heartbeat_interval"}
"""Fields that each side has in its own way."""

Play = Callable[["Scene"], Awaitable[None]]


@dataclass(frozen=True)
class Scenario:
    """`api`: whose versions it is played in, from `since` on. `differs`: why answers are not those of a broker."""

    name: str
    play: Play
    api: str
    since: int = 0
    differs: str = ""

    @property
    def versions(self) -> Sequence[int]:
        """The versions that are served."""
        first, last = BY_NAME[self.api].versions
        return range(max(first, self.since), last + 1)


ALL: list[Scenario] = []


def scenario(api: str, since: int = 0, differs: str = "") -> Callable[[Play], Play]:
    """Add a function to the scenarios."""

    def decorate(play: Play) -> Play:
        ALL.append(Scenario(f"{api}: {play.__name__.strip('_')}", play, api, since, differs))
        return play

    return decorate


class Scene:
    """One scenario in one version on one side. Members have names, by which answers call their ids.

    `v`: the version that is played. `generation`: that of the last join.
    """

    def __init__(self, place: Place, group: str, v: int) -> None:
        self.place, self.group, self.v = place, group, v
        self.other = f"{group}-2"
        self.ids: dict[str, str] = {}
        self.generation = 0
        self.answers: list[Any] = []
        self.producer: dict[str, Any] = {}
        self._clients: dict[str, WireClient] = {}

    async def __aenter__(self) -> Scene:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        for client in self._clients.values():
            client.abort()

    async def _client(self, name: str = "") -> WireClient:
        if name not in self._clients:
            self._clients[name] = await self.place.connect()
        return self._clients[name]

    async def ask(self, api: str, version: int, **body: Any) -> Fields:
        """A request about the group; the answer is one of those that are compared."""
        answer = await until_ready(await self._client(), api, version, **{"group_id": self.group, **body})
        self.answers.append(answer)
        return answer

    async def send(self, name: str, api: str, version: int, **body: Any) -> Callable[[], Awaitable[Fields]]:
        """A request of a member that may have to wait; what is returned gives the answer, which is compared."""
        client = await self._client(name)
        client.send(api, version, **{"group_id": self.group, **body})

        async def received() -> Fields:
            async with asyncio.timeout(ANSWER_SECONDS):
                answer = await client.receive(api, version)
            self.answers.append(answer)
            return answer

        return received

    # The classic protocol

    def joining(self, name: str, **given: Any) -> dict[str, Any]:
        """What a member sends to join."""
        body = {"session_timeout": 30_000, "rebalance_timeout": 30_000, "protocol_type": "consumer"}
        body |= {"member_id": self.ids.get(name, ""), "protocols": [{"name": "range", "metadata": SUBSCRIBED}]}
        return body | given

    async def join(self, name: str = "a", version: int = 5, **given: Any) -> Fields:
        """JoinGroup, and again with the id that it has to use; nobody else is waited for."""
        answer = await self.ask("join_group", version, **self.joining(name, **given))
        if answer.error_code == 79:
            self.ids[name] = answer.member_id
            answer = await self.ask("join_group", version, **self.joining(name, **given))
        if not answer.error_code:
            self.ids[name], self.generation = answer.member_id, answer.generation_id
        return answer

    async def stable(self, name: str = "a", **given: Any) -> None:
        """A group of one member that has its assignment."""
        await self.join(name, **given)
        instance = given.get("group_instance_id")
        shares = [{"member_id": self.ids[name], "assignment": b"all"}]
        await self.ask("sync_group", 3, assignments=shares, **self.who(name, group_instance_id=instance))

    async def rebalancing(self) -> Callable[[], Awaitable[Fields]]:
        """A stable group that another member joins, whose request waits; what is returned gives its answer."""
        await self.stable()
        self.ids["b"] = (await self.ask("join_group", 5, **self.joining("b"))).member_id
        received = await self.send("b", "join_group", 5, **self.joining("b"))
        async with asyncio.timeout(ANSWER_SECONDS):
            client, state = await self._client(), ""
            while state != "PreparingRebalance":
                state = (await client.ask("describe_groups", 5, groups=[self.group])).groups[0].group_state
        return received

    def who(self, name: str = "a", **given: Any) -> dict[str, Any]:
        """Id and generation of a member."""
        member_id = self.ids.get(name, name)
        number = self.generation
        body = {"member_id": member_id, "generation_id": number, "generation_id_or_member_epoch": number}
        return {**body, "member_epoch": number, **given}

    # The consumer protocol

    async def beat(self, name: str = "a", version: int = 1, epoch: int = 0, **given: Any) -> Fields:
        """ConsumerGroupHeartbeat; with epoch 0 all of what a member has to say."""
        self.ids.setdefault(name, f"{self.group}-{name}")
        body: dict[str, Any] = {"member_id": self.ids[name], "member_epoch": epoch, "rebalance_timeout": -1}
        if epoch == 0:
            body |= {"rebalance_timeout": 30_000, "subscribed_topic_names": ["orders"], "topic_partitions": []}
        answer = await self.ask("consumer_group_heartbeat", version, **{**body, **given})
        if not answer.error_code and answer.member_epoch > 0:
            self.ids[name], self.generation = answer.member_id, answer.member_epoch
        return answer

    # Offsets

    def topics(self, api: str, partitions: Mapping[str, Sequence[int]], metadata: str = "m") -> list[dict[str, Any]]:
        """Partitions by topic for the version that is played, which may name topics by id."""

        def entry(number: int) -> Any:
            return {"partition_index": number, "committed_offset": 7, "committed_metadata": metadata}

        key = "partition_indexes" if api == "offset_fetch" else "partitions"
        version = self.v if api in WITH_IDS else 0
        return [
            {
                **({"topic_id": self._topic_id(topic)} if version >= WITH_IDS.get(api, 99) else {"name": topic}),
                key: [PARTITION_OF.get(api, entry)(number) for number in numbers],
            }
            for topic, numbers in partitions.items()
        ]

    def _topic_id(self, topic: str) -> uuid.UUID:
        return uuid.UUID(int=7) if topic == UNKNOWN_TOPIC else self.place.topics[topic]

    async def commit(self, version: int | None = None, metadata: str = "m", **given: Any) -> Fields:
        """OffsetCommit of one partition, unless others are given, by nobody unless somebody is."""
        played, self.v = self.v, self.v if version is None else version
        partitions = given.pop("partitions", {"orders": [0]})
        body = {"generation_id_or_member_epoch": -1, "member_id": "", "retention_time": -1}
        body["topics"] = self.topics("offset_commit", partitions, metadata)
        answer = await self.ask("offset_commit", self.v, **{**body, **given})
        self.v = played
        return answer

    async def fetch(self, partitions: Mapping[str, Sequence[int]] | None, **given: Any) -> Fields:
        """OffsetFetch in the version that is played, in the form that it has."""
        topics = None if partitions is None else self.topics("offset_fetch", partitions)
        body: dict[str, Any] = {"group_id": self.group, "topics": topics, "member_epoch": -1, **given}
        stable = body.pop("require_stable", False)
        if self.v >= 8:
            return await self.ask("offset_fetch", self.v, groups=[body], require_stable=stable)
        return await self.ask("offset_fetch", self.v, require_stable=stable, **body)

    async def begin(self) -> None:
        """A producer with a transaction that the group is part of."""
        name = f"tx-{self.group}"
        made = await until_ready(
            await self._client(), "init_producer_id", 4, transactional_id=name, transaction_timeout=60_000
        )
        self.producer = {"transactional_id": name, "producer_id": made.producer_id, "producer_epoch": 0}
        await self.ask("add_offsets_to_txn", 3, **self.producer)

    async def pend(self, metadata: str = "m", **given: Any) -> Fields:
        """TxnOffsetCommit of one partition, unless others are given, by nobody unless somebody is."""
        partitions = given.pop("partitions", {"orders": [0]})
        body = {"generation_id": -1, "member_id": "", "topics": self.topics("txn_offset_commit", partitions, metadata)}
        return await self.ask("txn_offset_commit", self.v, **{**self.producer, **body, **given})

    def heard(self) -> list[Any]:
        """The answers, as JSON has them, with the names that both sides have in common."""
        names: dict[Any, str] = {topic_id: name for name, topic_id in self.place.topics.items()}
        names |= {self.group: "g", self.other: "g2"} | {member_id: name for name, member_id in self.ids.items()}
        found = [_of_both(canonical(self._own(answer), names)) for answer in self.answers]
        return list(json.loads(json.dumps(found, default=repr)))

    def _own(self, answer: Fields) -> Any:
        """Without groups of others, which a list has too."""
        if "groups" not in answer or not answer.groups or "protocol_type" not in answer.groups[0]:
            return answer
        mine = (self.group, self.other)
        return {**answer, "groups": [group for group in answer.groups if group.group_id in mine]}


def _of_both(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _of_both(entry) for key, entry in value.items() if key not in OF_NO_SIDE}
    return [_of_both(entry) for entry in value] if isinstance(value, list) else value


SILENT = {"no answer": True}
"""In place of an answer that did not come in time."""


async def heard(place: Place, wanted: Scenario, version: int, group: str) -> list[Any]:
    """What one side answers."""
    async with Scene(place, group, version) as scene:
        try:
            await wanted.play(scene)
        except TimeoutError:
            scene.answers.append(SILENT)
        return scene.heard()


def differences(wanted: Scenario, ours: Sequence[Any], theirs: Sequence[Any]) -> list[str]:
    """Of the answers of both sides."""
    steps = [Step(wanted.name)] * max(len(ours), len(theirs))
    missing = [f"{len(ours)} answers here, {len(theirs)} there"] if len(ours) != len(theirs) else []
    return [*compared(steps, ours, theirs), *missing]


Recorded = Mapping[tuple[str, int], list[Any]]
"""Answers of a broker, by the name and the version of a scenario."""


def recorded() -> Recorded:
    """What RECORDED has."""
    lines = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    return {(line["scenario"], version): line["answers"] for line in lines for version in line["versions"]}


def record(found: Compared) -> None:
    """Write RECORDED, where versions with the same answers share a line, and VERSIONS."""
    VERSIONS.write_text(json.dumps(found.versions) + "\n")
    lines: dict[tuple[str, str], list[int]] = {}
    for (name, version), answers in found.broker.items():
        lines.setdefault((name, json.dumps(answers)), []).append(version)
    text = (
        f'{{"scenario": {json.dumps(name)}, "versions": {versions}, "answers": {answers}}}\n'
        for (name, answers), versions in lines.items()
    )
    RECORDED.write_text("".join(text))


@dataclass
class Compared:
    """`plays`: scenarios times their versions; `unequal`: what is not as expected, by scenario and version.

    `broker`, `versions`: what the broker answers, and which versions of APIs it has.
    """

    plays: int
    answers: int
    unequal: dict[str, list[str]]
    broker: Recorded
    versions: Mapping[int, tuple[int, int]]


async def compare(ours: Place, theirs: Place, name: str, scenarios: Iterable[Scenario] = ALL) -> Compared:
    """Play scenarios in all versions to the gateway and to a broker. `name`: what their groups begin with."""
    found: dict[tuple[str, int], list[Any]] = {}
    report = Compared(0, 0, {}, found, await _versions(theirs))
    plays = [(each, version) for each in scenarios for version in each.versions]
    for number, (one, version) in enumerate(plays):
        group = f"{name}-{number}"
        here, there = await asyncio.gather(heard(ours, one, version, group), heard(theirs, one, version, group))
        found[one.name, version] = there
        report.plays += 1
        report.answers += len(there)
        if unequal := unexpected(one, here, there):
            report.unequal[f"{one.name}, version {version}"] = unequal
    return report


async def _versions(place: Place) -> dict[int, tuple[int, int]]:
    client = await place.connect()
    answer = await client.ask("api_versions", 4, client_software_name="kcoord", client_software_version="1")
    client.abort()
    return {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}


def unexpected(wanted: Scenario, ours: Sequence[Any], theirs: Sequence[Any]) -> list[str]:
    """What differs and should not; that nothing does, where a difference is meant."""
    found = differences(wanted, ours, theirs)
    if not wanted.differs:
        return found
    return [] if found else [f"nothing differs, though {wanted.differs}"]
