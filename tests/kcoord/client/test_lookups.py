"""What users of other clients call: offsets and partitions of topics; and calls that would mean something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kcoord.client import (
    ClientTimeoutError,
    Consumer,
    IllegalStateError,
    InvalidConfigurationError,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    Record,
    TopicPartition,
)
from kcoord.protocol.errors import Error
from tests.kcoord.client import drivers
from tests.kcoord.client.journal import Journal
from tests.kcoord.client.scripted import Refusal, ScriptedCoordinator, consumer_of, stable
from tests.kcoord.client.sources import MemorySource, lettered

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def server() -> ScriptedCoordinator:
    return ScriptedCoordinator()


class Timed(MemorySource):
    """Record i has the timestamp 1000 + i."""

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> OffsetAndTimestamp | None:
        offset = max(0, timestamp_ms - 1000)
        return OffsetAndTimestamp(offset, 1000 + offset) if offset < self.end_offset(topic, partition) else None


def test_committed_of_one_partition_and_of_several(server: ScriptedCoordinator) -> None:
    server.committed["t", 0] = 7
    with consumer_of(server) as consumer:
        assert consumer.committed(T0) == 7
        assert consumer.committed(T1) is None
        assert consumer.committed(T0, metadata=True) == OffsetAndMetadata(7)
        assert consumer.committed(T0, False, 5000) == 7
        assert consumer.committed([T0, T1]) == {T0: OffsetAndMetadata(7), T1: None}
        assert consumer.committed([]) == {}


def test_first_and_last_offsets_leave_the_position_alone(server: ScriptedCoordinator) -> None:
    with consumer_of(server, "t", source=lettered(2, 5)) as consumer:
        assert consumer.beginning_offsets([T0, T1]) == {T0: 0, T1: 0}
        assert consumer.end_offsets([T1]) == {T1: 5}
        assert consumer.assignment() == frozenset(), "nothing was joined for it"


def test_offsets_by_time(server: ScriptedCoordinator) -> None:
    source = Timed({("t", 0): ["a", "b", "c"], ("t", 1): []})
    with consumer_of(server, source=source) as consumer:
        found = consumer.offsets_for_times({T0: 1001, T1: 1001})
        assert found == {T0: OffsetAndTimestamp(1, 1001), T1: None}
        assert consumer.offsets_for_times({T0: 0}) == {T0: OffsetAndTimestamp(0, 1000)}
        with pytest.raises(ValueError, match="t-0: -1"):
            consumer.offsets_for_times({T0: -1})


def test_what_a_source_cannot_know_is_an_error_that_says_what_it_needs(server: ScriptedCoordinator) -> None:
    needs = r"MemorySource does not find .* offset_for_time"
    with consumer_of(server, source=lettered(2, 5)) as consumer, pytest.raises(IllegalStateError, match=needs):
        consumer.offsets_for_times({T0: 1})
    with consumer_of(server) as consumer:
        for call in (consumer.beginning_offsets, consumer.end_offsets):
            with pytest.raises(IllegalStateError, match="no record source"):
                call([T0])
        with pytest.raises(IllegalStateError, match="no record source"):
            consumer.offsets_for_times({T0: 1})


def test_a_source_that_takes_longer_than_the_timeout(server: ScriptedCoordinator) -> None:
    with (
        consumer_of(server, source=lettered(2, 5)) as consumer,
        pytest.raises(ClientTimeoutError, match="1 of 2 partitions within 0 ms"),
    ):
        consumer.end_offsets([T0, T1], timeout_ms=0)


def test_partitions_of_a_topic(server: ScriptedCoordinator) -> None:
    with consumer_of(server) as consumer:
        server.script("topic", Refusal(Error.COORDINATOR_LOAD_IN_PROGRESS))
        assert consumer.partitions_for_topic("t") == {0, 1, 2, 3}
        assert consumer.partitions_for_topic("unknown") == set()


def test_records_have_the_timestamp_under_both_names() -> None:
    assert Record("t", 0, 1, timestamp_ms=5).timestamp == 5


def test_partitions_assigned_by_hand_are_committed_when_they_are_replaced(server: ScriptedCoordinator) -> None:
    with consumer_of(server, source=lettered(2, 5)) as consumer:
        consumer.assign([T0])
        assert consumer.poll(1000)
        consumer.assign([T1])
        server.wait_for("offsets/commit")
        assert server.committed == {("t", 0): 5}


def test_listener_may_come_second_or_third(server: ScriptedCoordinator) -> None:
    for order in (lambda c, j: c.subscribe(["t"], j), lambda c, j: c.subscribe(["t"], None, j)):
        journal = Journal()
        with consumer_of(server) as consumer:
            order(consumer, journal)
            stable(consumer)
        assert ("assigned", [0, 1, 2, 3]) in journal.calls


WRONG: dict[str, tuple[Callable[[Consumer], Any], type[Exception], str]] = {
    "close(5000)": (lambda c: c.close(5000), TypeError, "a time is given as timeout_ms="),  # type: ignore[arg-type]
    "close(timeout_ms=False)": (lambda c: c.close(True, False), TypeError, "whole number of milliseconds"),
    "poll in seconds": (lambda c: c.poll(1.0), TypeError, "milliseconds"),  # type: ignore[arg-type]
    "poll of the past": (lambda c: c.poll(-1), ValueError, "must not be negative"),
    "poll of nothing": (lambda c: c.poll(0, 0), ValueError, "max_records: 0"),
    "committed with a time second": (lambda c: c.committed(T0, 5000), TypeError, "timeout_ms="),  # type: ignore[call-overload]
    "committed of a name": (lambda c: c.committed("t"), TypeError, "TopicPartition"),
    "commit of a list": (lambda c: c.commit([T0]), TypeError, "offsets: "),  # type: ignore[arg-type]
    "commit of a record": (lambda c: c.commit(Record("t", 0, 1)), TypeError, "offsets: "),  # type: ignore[arg-type]
    "commit of a text": (lambda c: c.commit({T0: "1"}), TypeError, "expected an offset"),  # type: ignore[dict-item]
    "pause of a list": (lambda c: c.pause([T0]), TypeError, "one TopicPartition"),  # type: ignore[arg-type]
    "seek to a list": (lambda c: c.seek_to_beginning([T0]), TypeError, "one TopicPartition"),  # type: ignore[arg-type]
    "seek without an offset": (lambda c: c.seek(T0, None), TypeError, "whole number"),  # type: ignore[arg-type]
    "position of a number": (lambda c: c.position(0), TypeError, "one TopicPartition"),  # type: ignore[arg-type]
    "assign of one": (lambda c: c.assign(T0), TypeError, "a collection"),  # type: ignore[arg-type]
    "subscribe with any object": (lambda c: c.subscribe(["t"], None, object()), TypeError, "listener: "),  # type: ignore[arg-type]
    "subscribe with a number": (lambda c: c.subscribe(["t"], 7), TypeError, "pattern: 7"),  # type: ignore[arg-type]
    "subscribe with a callback": (
        lambda c: c.subscribe(["t"], on_assign=print),  # type: ignore[call-arg]
        TypeError,
        "on_assign",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_calls_of_other_clients_fail_loudly(server: ScriptedCoordinator, name: str) -> None:
    call, kind, says = WRONG[name]
    with consumer_of(server, source=lettered(4, 1)) as consumer:
        consumer.assign([T0])
        with pytest.raises(kind) as caught:
            call(consumer)
        assert says in str(caught.value)
        assert server.committed == {}, "and nothing was done"
        assert consumer.poll(1000), "and the consumer goes on"


FOREIGN: list[tuple[dict[str, Any], str]] = [
    ({"bootstrap_servers": "b:9092"}, "give the address of the service as url"),
    ({"bootstrap.servers": "b:9092"}, "give the address of the service as url"),
    ({"group.id": "g"}, "did you mean group_id?"),
    ({"value_deserializer": str}, "deserialize in the record source"),
    ({"security_protocol": "SASL_SSL"}, "https://"),
    ({"enable_auto_commit": "false"}, "expected True or False"),
    ({"consumer_timeout_ms": 1.5}, "whole number"),
]


@pytest.mark.parametrize(("settings", "says"), FOREIGN)
def test_settings_of_other_clients_are_explained(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidConfigurationError) as caught:
        drivers.consumer(ScriptedCoordinator().handle, **{"group_id": "g", **settings})
    assert says in str(caught.value)


def test_configuration_as_a_dict_is_an_error() -> None:
    with pytest.raises(TypeError, match="settings are given as keyword arguments"):
        drivers.consumer(ScriptedCoordinator().handle, {"group.id": "g"}, group_id="g")  # type: ignore[arg-type]


def test_infinite_iteration_may_be_written_as_in_kafka_python() -> None:
    consumer = drivers.consumer(ScriptedCoordinator().handle, group_id="g", consumer_timeout_ms=float("inf"))
    consumer.close()
