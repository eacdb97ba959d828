"""The workers of docs/examples/kafka with unmodified clients against a real server, alone and in one group."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kcoord.client import Consumer
from tests.kcoord.client.live import owned, poll_until
from tests.processes.test_examples import PARTITIONS, TOPIC, Worker, ends, until
from tests.wire.kafka_workers import (
    CONFLUENT,
    FRANZ_GO,
    JAVA,
    KAFKA_PYTHON,
    KafkaPlace,
    Listening,
    place_of,
    sharing,
)

pytestmark = [
    pytest.mark.processes,
    pytest.mark.xdist_group("kafka-clients"),  # one server for all
    pytest.mark.whole("more Kafka clients and tools; the default has librdkafka, Java and aiokafka once each"),
]

SECONDS = 60.0


@pytest.mark.parametrize("name", [KAFKA_PYTHON, JAVA])
def test_workers_share_a_group_and_none_of_it_is_lost(listening: Listening, name: str, tmp_path: Path) -> None:
    place = place_of(listening, name, tmp_path, "lines-" + name.replace(".", "-").lower())
    with ExitStack() as stack:
        with place.files.growing():
            first = stack.enter_context(place.start())
            until(sharing(place, 1), first, what="the first has everything")
            second = stack.enter_context(place.start())
            until(sharing(place, 2), first, second, what="each has half")
            until(lambda: len(second.lines) > 20, first, second, what="the second works")
            first.stop()
            until(sharing(place, 1), second, what="the second has everything")
            killed = stack.enter_context(place.start())
            until(sharing(place, 2), second, killed, what="each has half again")
            killed.popen.kill()
            until(sharing(place, 1), second, what="the session of the killed one has ended")
        place.files.append()
        until(lambda: set(place.committed().values()) == set(place.files.lengths), second, what="all is committed")
        second.stop()
    done = set(first.lines) | set(second.lines) | set(killed.lines)
    assert done == set(place.files.expected())
    assert place.shares() == {}, "it left when it ended"


@pytest.mark.parametrize("names", [(KAFKA_PYTHON, CONFLUENT), (FRANZ_GO, JAVA)], ids=" ".join)
def test_clients_share_one_group(listening: Listening, names: tuple[str, str], tmp_path: Path) -> None:
    """One of the classic, one of the consumer protocol."""
    group = f"lines-mixed-{names[0].partition('.')[0]}"
    first, second = (place_of(listening, name, tmp_path / name, group) for name in names)
    second = replace(second, files=first.files)
    first.files.append()
    with first.start() as one:
        until(sharing(first, 1), one, what="the first has everything")
        with second.start() as other:
            until(sharing(first, 2), one, other, what="each has half")
            first.files.append()
            until(lambda: both_halves(first, one, other), one, other, what="both work")
            one.stop()
            until(sharing(first, 1), other, what="the second has everything")
            first.files.append()
            until(lambda: set(first.committed().values()) == {3}, other, what="all is committed")
            other.stop()
    assert set(one.lines) | set(other.lines) == set(first.files.expected())


def both_halves(place: KafkaPlace, *workers: Worker) -> bool:
    """Whether each worker did something, and all of it is committed."""
    return all(ends(worker) for worker in workers) and set(place.committed().values()) == {2}


@pytest.mark.parametrize(("name", "protocol"), [(KAFKA_PYTHON, "classic"), (CONFLUENT, "consumer")])
def test_members_over_http_share_a_group(listening: Listening, name: str, protocol: str, tmp_path: Path) -> None:
    service = listening.service
    place = place_of(listening, name, tmp_path, f"lines-http-{protocol}")
    if protocol == "consumer":
        settings = service.consumer_settings(place.group)
    else:
        settings = service.settings(place.group, partition_assignment_strategy=["range"])
    place.files.append()
    with Consumer(TOPIC, **settings) as consumer, place.start() as worker:
        poll_until(lambda: len(owned(consumer)) == 2 and sharing(place, 2)(), consumer, seconds=SECONDS)
        theirs = set(range(PARTITIONS)) - owned(consumer)
        poll_until(lambda: theirs <= set(ends(worker)) & set(place.committed()), consumer, seconds=SECONDS)
        worker.stop()
        poll_until(lambda: owned(consumer) == set(range(PARTITIONS)), consumer, seconds=SECONDS)
    assert {partition: place.committed()[partition] for partition in theirs} == dict.fromkeys(theirs, 1)


def polled(condition: Callable[[], bool], *consumers: Any) -> None:
    """Poll confluent-kafka's consumers in turn until `condition`."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, [consumer.assignment() for consumer in consumers]
        for consumer in consumers:
            consumer.poll(0.05)


def numbers(consumer: Any) -> set[int]:
    return {partition.partition for partition in consumer.assignment()}


def test_confluent_lists_topics(listening: Listening) -> None:
    admin = pytest.importorskip("confluent_kafka.admin")
    client = admin.AdminClient(listening.login())
    assert TOPIC in client.list_topics(timeout=SECONDS).topics
    assert len(client.list_topics(TOPIC, timeout=SECONDS).topics[TOPIC].partitions) == PARTITIONS


def test_a_transaction_of_confluent_commits_offsets(listening: Listening) -> None:
    confluent = pytest.importorskip("confluent_kafka")
    login = listening.login()
    consumer = confluent.Consumer({**login, "group.id": "tx", "enable.auto.commit": False})
    consumer.subscribe([TOPIC])
    polled(lambda: len(numbers(consumer)) == PARTITIONS, consumer)
    producer = confluent.Producer({**login, "transactional.id": "tx-of-confluent"})
    producer.init_transactions(SECONDS)

    def send(offset: int) -> None:
        producer.begin_transaction()
        offsets = [confluent.TopicPartition(TOPIC, 0, offset)]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), SECONDS)

    def committed() -> int:
        return int(consumer.committed([confluent.TopicPartition(TOPIC, 0)], SECONDS)[0].offset)

    send(11)
    producer.commit_transaction(SECONDS)
    assert committed() == 11
    send(12)
    producer.abort_transaction(SECONDS)
    assert committed() == 11
    consumer.close()
