"""Members of Python, Go and Java clients with one interface, for tests that ask the same of each."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

import pytest

from tests.processes.test_examples import TOPIC, partitions_of
from tests.wire.go_members import FranzGo
from tests.wire.java_members import Java
from tests.wire.kafka_workers import Listening

SECONDS = 90.0
OUTLASTING_MS = 120_000
"""A session that no test outlives."""


class Member(Protocol):
    """A consumer of the topic of the workers. `revoked`: what it had to give up, set by set."""

    revoked: list[set[int]]

    def poll(self) -> None: ...

    def numbers(self) -> set[int]: ...

    def commit(self, partition: int, offset: int) -> None: ...

    def committed(self, partition: int) -> int: ...

    def close(self) -> None: ...


class Confluent:
    """A member of librdkafka."""

    def __init__(self, listening: Listening, group: str, protocol: str, instance: str, assignor: str, **more: Any):
        confluent = pytest.importorskip("confluent_kafka")
        settings: dict[str, Any] = {**listening.login(), "group.id": group, "group.protocol": protocol, **more}
        settings["enable.auto.commit"] = False
        if instance:
            settings["group.instance.id"] = instance
        if protocol == "classic":
            settings |= {"session.timeout.ms": OUTLASTING_MS, "heartbeat.interval.ms": 500}
            settings |= {"partition.assignment.strategy": assignor}
        self._partition = confluent.TopicPartition
        self._consumer = confluent.Consumer(settings)
        self.revoked: list[set[int]] = []
        self._consumer.subscribe([TOPIC], on_revoke=lambda _, lost: self.revoked.append({p.partition for p in lost}))

    def poll(self) -> None:
        self._consumer.poll(0.05)

    def numbers(self) -> set[int]:
        return {partition.partition for partition in self._consumer.assignment()}

    def commit(self, partition: int, offset: int) -> None:
        self._consumer.commit(offsets=[self._partition(TOPIC, partition, offset)], asynchronous=False)

    def committed(self, partition: int) -> int:
        return int(self._consumer.committed([self._partition(TOPIC, partition)], SECONDS)[0].offset)

    def close(self) -> None:
        self._consumer.close()


class KafkaPython:
    """A member of kafka-python, of the classic protocol."""

    def __init__(self, listening: Listening, group: str, protocol: str, instance: str, assignor: str, **more: Any):
        kafka = pytest.importorskip("kafka")
        from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
        from kafka.coordinator.assignors.range import RangePartitionAssignor

        assert protocol == "classic", "it speaks no other"
        assignors = {"range": RangePartitionAssignor, "cooperative-sticky": CooperativeStickyAssignor}
        login = listening.login()
        settings: dict[str, Any] = {
            "bootstrap_servers": login["bootstrap.servers"],
            "security_protocol": login["security.protocol"],
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "any",
            "sasl_plain_password": login["sasl.password"],
        }
        self._kafka = kafka
        self._consumer = kafka.KafkaConsumer(
            **{**settings, **more},
            group_id=group,
            group_instance_id=instance or None,
            partition_assignment_strategy=[assignors[assignor]],
            enable_auto_commit=False,
            session_timeout_ms=OUTLASTING_MS,
            request_timeout_ms=OUTLASTING_MS + 10_000,
            heartbeat_interval_ms=500,
        )
        self.revoked: list[set[int]] = []
        revoked = self.revoked

        class Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
            def on_partitions_assigned(self, assigned: Any) -> None: ...

            def on_partitions_revoked(self, lost: Any) -> None:
                revoked.append({partition.partition for partition in lost})

        self._consumer.subscribe([TOPIC], listener=Listener())
        # It forgets an assignment if it learns of the topic while it joins and a poll ends before the join (3.0.12).
        self._consumer.partitions_for_topic(TOPIC)

    def poll(self) -> None:
        self._consumer.poll(timeout_ms=50)

    def numbers(self) -> set[int]:
        return {partition.partition for partition in self._consumer.assignment()}

    def commit(self, partition: int, offset: int) -> None:
        where = self._kafka.TopicPartition(TOPIC, partition)
        self._consumer.commit({where: self._kafka.OffsetAndMetadata(offset, "", -1)})

    def committed(self, partition: int) -> int:
        found = self._consumer.committed(self._kafka.TopicPartition(TOPIC, partition))
        return -1 if found is None else int(getattr(found, "offset", found))

    def close(self) -> None:
        self._consumer.close(autocommit=False)


KINDS: dict[str, tuple[Callable[..., Member], str]] = {
    "kafka-python": (KafkaPython, "classic"),
    "confluent": (Confluent, "classic"),
    "confluent-consumer": (Confluent, "consumer"),
    "franz-go": (FranzGo, "classic"),
    "franz-go-consumer": (FranzGo, "consumer"),
    "java": (Java, "classic"),
    "java-consumer": (Java, "consumer"),
}
"""Clients with the protocol that their members speak."""


def member_of(
    kind: str, listening: Listening, group: str, *, instance: str = "", assignor: str = "range", **more: Any
) -> Member:
    """A member of a group. `more`: settings by the names of its client."""
    make, protocol = KINDS[kind]
    return make(listening, group, protocol, instance, assignor, **more)


def polled(condition: Callable[[], bool], *members: Member) -> None:
    """Poll the members in turn until `condition`."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, [member.numbers() for member in members]
        for member in members:
            member.poll()


def described(listening: Listening, group: str) -> tuple[int, dict[str, set[int]]]:
    """Generation or epoch of a group, and the shares of its static members."""
    found = listening.service.describe(group)
    shares = {member["group_instance_id"]: partitions_of(member) for member in found["members"]}
    return found.get("generation_id", found.get("group_epoch")), shares
