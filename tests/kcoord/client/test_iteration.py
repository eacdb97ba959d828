"""`for record in consumer`: a record moves the position when it is handed out, and counts as done when the next is."""

from __future__ import annotations

import threading

import pytest

from kcoord.client import IllegalStateError, TopicPartition, WakeupError
from tests.kcoord.client.scripted import ScriptedCoordinator, consumer_of, stable
from tests.kcoord.client.sources import lettered

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def server() -> ScriptedCoordinator:
    return ScriptedCoordinator({"t": 2})


def test_every_record_once_then_the_timeout(server: ScriptedCoordinator) -> None:
    with consumer_of(server, "t", source=lettered(2, 5), max_poll_records=3, consumer_timeout_ms=300) as consumer:
        values = [record.value for record in consumer]
        assert sorted(values) == [f"{p}:{i}" for p in (0, 1) for i in range(5)]
        assert [v for v in values if v[0] == "0"] == [f"0:{i}" for i in range(5)]
        assert list(consumer) == [], "it may be asked again"


def test_without_a_timeout_it_waits_for_records(server: ScriptedCoordinator) -> None:
    source = lettered(2, 0)
    with consumer_of(server, "t", source=source, fetch_wait_ms=1) as consumer:
        stable(consumer)
        later = threading.Timer(0.05, lambda: source.partitions["t", 1].append("late"))
        later.start()
        assert next(iter(consumer)).value == "late"
        later.join()


def test_position_is_behind_the_record_in_hand_and_commits_only_that_far(server: ScriptedCoordinator) -> None:
    with consumer_of(server, source=lettered(1, 10), enable_auto_commit=False) as consumer:
        consumer.assign([T0])
        records = iter(consumer)
        assert [next(records).offset for _ in range(3)] == [0, 1, 2]
        assert consumer.position(T0) == 3, "though ten were fetched"
        consumer.commit()
        assert server.committed == {("t", 0): 3}


def test_automatic_commit_does_not_count_records_that_were_not_handed_out(server: ScriptedCoordinator) -> None:
    with consumer_of(server, source=lettered(1, 6)) as consumer:
        consumer.assign([T0])
        records = iter(consumer)
        assert [next(records).offset, next(records).offset] == [0, 1]
        consumer.close()
        assert server.committed == {("t", 0): 2}


def test_seek_pause_and_polls_are_respected_in_between(server: ScriptedCoordinator) -> None:
    with consumer_of(server, source=lettered(2, 6), consumer_timeout_ms=100) as consumer:
        consumer.assign([T0, T1])
        records = iter(consumer)
        first = next(records)
        here, there = (T0, T1) if first.partition == 0 else (T1, T0)
        consumer.seek(here, 4)
        consumer.pause(there)
        assert [(r.partition, r.offset) for r in records] == [(here.partition, 4), (here.partition, 5)]
        consumer.resume(there)
        assert next(records).offset == 0
        assert [r.offset for r in consumer.poll(1000)[there]] == [1, 2, 3, 4, 5]
        assert list(records) == [], "what poll returned is not handed out again"


def test_records_of_partitions_that_are_gone_are_not_handed_out(server: ScriptedCoordinator) -> None:
    with consumer_of(server, source=lettered(2, 6), consumer_timeout_ms=100) as consumer:
        consumer.assign([T0, T1])
        records = iter(consumer)
        gone = TopicPartition("t", next(records).partition)
        left = T1 if gone == T0 else T0
        consumer.assign([left])
        assert {r.partition for r in records} == {left.partition}
        assert server.committed["t", gone.partition] == 1, "the position when it was given up"


def test_wakeup_and_close_end_it(server: ScriptedCoordinator) -> None:
    with consumer_of(server, "t", source=lettered(2, 0)) as consumer:
        stable(consumer)
        consumer.wakeup()
        with pytest.raises(WakeupError):
            next(iter(consumer))
        consumer.close()
        assert list(consumer) == []


def test_nothing_to_read_is_an_error(server: ScriptedCoordinator) -> None:
    with consumer_of(server) as consumer, pytest.raises(IllegalStateError, match="subscribe"):
        next(iter(consumer))
