"""A topic is deleted and created again while it is read: its positions and commits are those of another topic."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager

import pytest

from kcoord.client import (
    CommitFailedError,
    Consumer,
    ConsumerRebalanceListener,
    KcoordError,
    NoOffsetForPartitionError,
    OffsetAndMetadata,
    TopicPartition,
    UnknownTopicIdError,
)
from kcoord.protocol.errors import Error
from tests.kcoord.client.live import Service, running_service
from tests.kcoord.client.scripted import ScriptedCoordinator, consumer_of, wait_until
from tests.kcoord.client.scripted_group import TOPIC_IDS, ScriptedGroup, member_of
from tests.kcoord.client.sources import MemorySource
from tests.support.database import cloned_database

T0 = TopicPartition("t", 0)
Events = list[tuple[str, list[int]]]
PROTOCOLS = ("classic", "consumer")


class Listener(ConsumerRebalanceListener):
    """Notes the calls since the first assignment."""

    def __init__(self) -> None:
        self.calls: Events = []

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        self.calls.append(("assigned", [p for _, p in assigned]))

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        self.calls.append(("revoked", [p for _, p in revoked]))

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        self.calls.append(("lost", [p for _, p in lost]))


class Group(ScriptedGroup):
    """A consumer group of topic t with one partition, whose member is told of a topic that was created again."""

    def __init__(self) -> None:
        super().__init__()
        self.target = frozenset({("t", 0)})

    def recreate(self, name: str) -> None:
        super().recreate(name)
        answer = self.answer(self.epoch, self.target)
        answer["assignment"]["topic_partitions"][0]["topic_id"] = self.topic_id(name)
        self.script("consumer-heartbeat", answer)


def server_of(protocol: str) -> ScriptedCoordinator:
    assert TOPIC_IDS["t"] == ScriptedCoordinator().topic_id("t")
    return ScriptedCoordinator({"t": 1}) if protocol == "classic" else Group()


def member(
    server: ScriptedCoordinator, source: MemorySource | None, protocol: str, **settings: object
) -> AbstractContextManager[Consumer]:
    if isinstance(server, Group):
        return member_of(server, source=source, **settings)
    return consumer_of(server, source=source, **settings)


def values(records: object) -> list[str]:
    assert isinstance(records, dict)
    return [record.value for found in records.values() for record in found]


def log_of(name: str, length: int) -> MemorySource:
    return MemorySource({("t", 0): [f"{name}{i}" for i in range(length)]})


def replaced(server: ScriptedCoordinator, source: MemorySource, length: int) -> None:
    """Another topic t, with another log."""
    server.recreate("t")
    source.partitions = log_of("new", length).partitions


def read_old(consumer: Consumer, count: int = 10) -> None:
    found: list[str] = []
    wait_until(lambda: found.extend(values(consumer.poll(5))) or len(found) >= count)
    assert found == [f"old{i}" for i in range(count)]


def committed_to_new(server: ScriptedCoordinator) -> list[int]:
    """What was committed for the new topic, by whichever key."""
    bodies = [sent.body for sent in server.all("offsets/commit")]
    return [
        p["committed_offset"]
        for body in bodies
        for topic in body["topics"]
        if topic.get("topic_id") == server.topic_id("t")
        for p in topic["partitions"]
    ]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_new_log_is_read_from_its_beginning(protocol: str) -> None:
    server, source, listener = server_of(protocol), log_of("old", 10), Listener()
    with member(server, source, protocol, auto_commit_interval_ms=20) as consumer:
        consumer.subscribe(["t"], listener)
        read_old(consumer)
        wait_until(lambda: consumer.poll(5) is not None and server.committed == {("t", 0): 10})
        listener.calls.clear()
        replaced(server, source, 15)
        found: list[str] = []
        wait_until(lambda: found.extend(values(consumer.poll(5))) or ("new0" in found and found[-1] == "new14"))
        assert found[-15:] == [f"new{i}" for i in range(15)]
        assert listener.calls == [("lost", [0]), ("assigned", [0])]
        consumer.commit()
    assert server.committed == {("t", 0): 15}
    assert set(committed_to_new(server)) <= {0, 15}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_commit_of_the_old_topic_is_refused_and_told(protocol: str) -> None:
    server, source = server_of(protocol), log_of("old", 10)
    with member(server, source, protocol, enable_auto_commit=False) as consumer:
        consumer.subscribe(["t"])
        read_old(consumer)
        consumer.commit()
        server.topic_ids["t"] = "another"
        server.committed = {}
        with pytest.raises(UnknownTopicIdError) as raised:
            consumer.commit()
        assert isinstance(raised.value, CommitFailedError)
        assert (raised.value.error, raised.value.fatal) == (Error.UNKNOWN_TOPIC_ID, False)
        told: list[KcoordError | None] = []
        consumer.commit_async({T0: OffsetAndMetadata(10)}, lambda _, error: told.append(error))
        server.wait_for("offsets/commit", 3)
        consumer.commit()
        wait_until(lambda: consumer.poll(5) is not None and bool(told))
        assert isinstance(told[0], UnknownTopicIdError)
        assert server.committed == {}


def test_iteration_drops_what_was_fetched_of_the_old_topic() -> None:
    server, source = server_of("classic"), log_of("old", 10)
    with member(server, source, "classic", enable_auto_commit=False) as consumer:
        consumer.subscribe(["t"])
        assert [next(consumer).value for _ in range(3)] == ["old0", "old1", "old2"]
        replaced(server, source, 4)
        with pytest.raises(UnknownTopicIdError):
            consumer.commit()
        consumer.poll(0)
        assert [next(consumer).value for _ in range(4)] == [f"new{i}" for i in range(4)]


def test_reset_policy_none_is_an_error() -> None:
    server, source = server_of("classic"), log_of("old", 10)
    server.committed["t", 0] = 0
    settings = {"auto_offset_reset": "none", "auto_commit_interval_ms": 20}
    with member(server, source, "classic", **settings) as consumer:
        consumer.subscribe(["t"])
        read_old(consumer)
        replaced(server, source, 15)
        with pytest.raises(NoOffsetForPartitionError):
            wait_until(lambda: consumer.poll(5) is None)
        assert server.committed == {}
        consumer.seek(T0, 0)
        assert values(consumer.poll(1000)) == [f"new{i}" for i in range(15)]


def test_offset_that_another_member_committed_counts() -> None:
    server, source = server_of("classic"), log_of("old", 10)
    with member(server, source, "classic", auto_commit_interval_ms=20) as consumer:
        consumer.subscribe(["t"])
        read_old(consumer)
        replaced(server, source, 10)
        server.committed["t", 0] = 4
        found: list[str] = []
        wait_until(lambda: found.extend(values(consumer.poll(5))) or len(found) >= 6)
        assert found == [f"new{i}" for i in range(4, 10)]


def test_member_that_does_not_commit_looks_now_and_then() -> None:
    server, source = server_of("classic"), log_of("old", 10)
    with member(server, source, "classic", enable_auto_commit=False, metadata_max_age_ms=50) as consumer:
        consumer.subscribe(["t"])
        read_old(consumer)
        replaced(server, source, 10)
        found: list[str] = []
        wait_until(lambda: found.extend(values(consumer.poll(5))) or len(found) >= 10)
        assert found == [f"new{i}" for i in range(10)]


def test_partition_of_a_deleted_topic_waits_for_the_next_topic() -> None:
    server, source = server_of("classic"), log_of("old", 10)
    with member(server, source, "classic", auto_commit_interval_ms=20, retry_backoff_max_ms=100) as consumer:
        consumer.subscribe(["t"])
        read_old(consumer)
        server.topic_ids["t"] = None
        server.committed = {}
        asked = len(server.all("offsets/fetch"))
        wait_until(lambda: consumer.poll(5) == {} and len(server.all("offsets/fetch")) >= asked + 3)
        assert server.committed == {}
        server.topic_ids["t"] = "another"
        source.partitions = log_of("new", 3).partitions
        found: list[str] = []
        wait_until(lambda: found.extend(values(consumer.poll(5))) or len(found) >= 3)
        assert found == ["new0", "new1", "new2"]


def test_reader_without_a_group_or_a_source() -> None:
    server, source = server_of("classic"), log_of("old", 10)
    with member(server, source, "classic", auto_commit_interval_ms=20) as lone:
        lone.assign([T0])
        read_old(lone)
        replaced(server, source, 15)
        found: list[str] = []
        wait_until(lambda: found.extend(values(lone.poll(5))) or ("new0" in found and found[-1] == "new14"))
        assert found[-15:] == [f"new{i}" for i in range(15)]
        lone.commit()
    with member(server, None, "classic", enable_auto_commit=False) as blind:
        blind.assign([T0])
        assert blind.committed(T0) == 15
        server.recreate("t")
        with pytest.raises(UnknownTopicIdError):
            blind.commit({T0: 16})
    assert server.committed == {}


@pytest.fixture(scope="module")
def service(postgres: str) -> Iterator[Service]:
    with cloned_database(postgres) as conninfo, running_service(conninfo) as running:
        yield running


@pytest.mark.processes
@pytest.mark.one_driver
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_with_a_real_service(service: Service, protocol: str) -> None:
    group, topic = f"group-{secrets.token_hex(4)}", service.topic(1)
    source = MemorySource({(topic, 0): [f"old{i}" for i in range(10)]})
    settings = service.settings(group) if protocol == "classic" else service.consumer_settings(group)
    with Consumer(topic, source=source, auto_commit_interval_ms=200, **settings) as consumer:
        found: list[str] = []
        wait_until(lambda: found.extend(values(consumer.poll(20))) or len(found) == 10)
        consumer.commit()
        assert service.request("DELETE", f"topics/{topic}").status_code == 204
        service.topic(1, topic)
        source.partitions = {(topic, 0): [f"new{i}" for i in range(15)]}
        wait_until(lambda: found.extend(values(consumer.poll(20))) or ("new0" in found and found[-1] == "new14"))
        assert found[-15:] == [f"new{i}" for i in range(15)]
        consumer.commit()
        assert consumer.committed(TopicPartition(topic, 0)) == 15
