"""Records, positions and commits: what a user does with an assignment."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kcoord.client import (
    ClientTimeoutError,
    CommitFailedError,
    Consumer,
    IllegalStateError,
    KcoordError,
    MemberState,
    NoOffsetForPartitionError,
    OffsetAndMetadata,
    RebalanceInProgressError,
    Record,
    TopicAuthorizationError,
    TopicPartition,
    WakeupError,
)
from kcoord.protocol.errors import Error
from tests.kcoord.client.scripted import WAIT_S, Refusal, ScriptedCoordinator, consumer_of, stable, wait_until
from tests.kcoord.client.sources import MemorySource, lettered

T0, T1, T2, T3 = (TopicPartition("t", p) for p in range(4))
LONG_MS = int(WAIT_S * 1000)


@pytest.fixture
def server() -> ScriptedCoordinator:
    return ScriptedCoordinator()


def read(consumer: Consumer, count: int, **options: Any) -> list[Record]:
    """Poll until `count` records came."""
    found: list[Record] = []
    while len(found) < count:
        polled = consumer.poll(LONG_MS, **options)
        assert polled, f"only {len(found)} of {count} records came"
        found.extend(record for records in polled.values() for record in records)
    return found


def test_reads_each_record_once_in_order(server: ScriptedCoordinator) -> None:
    with consumer_of(server, "t", source=lettered(4, 25), max_poll_records=10) as consumer:
        records = read(consumer, 100)
        for partition in range(4):
            assert [r.value for r in records if r.partition == partition] == [f"{partition}:{i}" for i in range(25)]


def test_poll_returns_at_most_max_records_and_takes_turns(server: ScriptedCoordinator) -> None:
    with consumer_of(server, "t", source=lettered(4, 100), max_poll_records=30) as consumer:
        turns = [set(consumer.poll(LONG_MS)) for _ in range(4)]
        assert turns == [{T0}, {T1}, {T2}, {T3}]
        assert sum(map(len, consumer.poll(LONG_MS, max_records=7).values())) == 7


def test_starts_at_committed_offsets_and_else_at_the_reset(server: ScriptedCoordinator) -> None:
    server.committed["t", 0] = 3
    with consumer_of(server, "t", source=lettered(4, 5), auto_offset_reset="latest") as consumer:
        assert [r.value for r in read(consumer, 2)] == ["0:3", "0:4"]
        assert [consumer.position(tp) for tp in (T0, T1, T2, T3)] == [5, 5, 5, 5]


def held_fetch(server: ScriptedCoordinator, release: threading.Event, offset: int) -> None:
    """The next fetch of committed offsets is answered with `offset` of t-0, when `release` is set."""

    def held(body: dict[str, Any]) -> Any:
        assert release.wait(WAIT_S)
        return {"topics": [{"name": "t", "partitions": [{"partition": 0, "committed_offset": offset}]}]}

    server.script("offsets/fetch", held)


def test_committed_offset_of_an_earlier_assignment_is_not_used(server: ScriptedCoordinator) -> None:
    """Somebody else may have owned the partition, and committed, since it was asked for."""
    release = threading.Event()
    held_fetch(server, release, 1)
    with consumer_of(server, "t", source=lettered(4, 9), heartbeat_interval_ms=9_000) as consumer:
        stable(consumer)
        server.wait_for("offsets/fetch")
        consumer.enforce_rebalance()
        stable(consumer, generation=2)
        server.committed["t", 0] = 5
        release.set()
        assert consumer.position(T0) == 5


def test_seek_wins_over_a_committed_offset_that_comes_later(server: ScriptedCoordinator) -> None:
    release = threading.Event()
    held_fetch(server, release, 1)
    with consumer_of(server, "t", source=lettered(4, 9), heartbeat_interval_ms=9_000) as consumer:
        stable(consumer)
        server.wait_for("offsets/fetch")
        consumer.seek(T0, 2)
        release.set()
        consumer.position(T1)
        assert consumer.position(T0) == 2


def test_without_a_reset_a_missing_offset_is_an_error(server: ScriptedCoordinator) -> None:
    with (
        consumer_of(server, "t", source=lettered(4, 5), auto_offset_reset="none") as consumer,
        pytest.raises(NoOffsetForPartitionError, match="t-0"),
    ):
        consumer.poll(LONG_MS)


def test_offset_out_of_range_is_reset(server: ScriptedCoordinator) -> None:
    server.committed["t", 0] = 99
    with consumer_of(server, "t", source=lettered(1, 2)) as consumer:
        assert [r.offset for r in read(consumer, 2)] == [0, 1]


def test_failing_source_loses_no_records(server: ScriptedCoordinator) -> None:
    source = lettered(4, 2)
    source.failing.add(("t", 2))
    with consumer_of(server, "t", source=source) as consumer:
        with pytest.raises(OSError, match="t-2"):
            consumer.poll(LONG_MS)
        source.failing.clear()
        assert len(read(consumer, 8)) == 8


def test_source_that_breaks_its_word_is_named(server: ScriptedCoordinator) -> None:
    class Rewinding(MemorySource):
        def fetch(self, topic: str, partition: int, offset: int, max_records: int) -> Any:
            return super().fetch(topic, partition, 0, max_records)

    server.committed["t", 0] = 1
    with (
        consumer_of(server, "t", source=Rewinding({("t", 0): ["a", "b"]})) as consumer,
        pytest.raises(ValueError, match="offset 0 of t-0; offset 1 was requested"),
    ):
        consumer.poll(LONG_MS)


def test_seek_pause_and_resume(server: ScriptedCoordinator) -> None:
    with consumer_of(server, "t", source=lettered(4, 3)) as consumer:
        read(consumer, 12)
        consumer.seek(T1, 1)
        assert consumer.position(T1) == 1
        consumer.pause(T1)
        assert consumer.paused() == {T1}
        assert consumer.poll(20) == {}
        consumer.resume(T1)
        assert [r.value for r in read(consumer, 2)] == ["1:1", "1:2"]
        consumer.seek_to_beginning(T2)
        assert [r.value for r in read(consumer, 3)] == ["2:0", "2:1", "2:2"]
        consumer.seek_to_beginning()
        consumer.seek_to_end()
        assert [consumer.position(tp) for tp in (T0, T1, T2, T3)] == [3, 3, 3, 3]


def test_calls_on_what_is_not_assigned(server: ScriptedCoordinator) -> None:
    with consumer_of(server) as consumer:
        with pytest.raises(IllegalStateError, match="subscribe"):
            consumer.poll()
        for call in (consumer.position, consumer.pause, consumer.resume, lambda tp: consumer.seek(tp, 0)):
            with pytest.raises(IllegalStateError, match="t-0 is not assigned"):
                call(T0)
        with pytest.raises(ValueError, match="-1"):
            consumer.seek(T0, -1)
        with pytest.raises(ValueError, match="must not be negative"):
            consumer.commit({T0: -1})


def test_commit_of_positions_and_of_given_offsets(server: ScriptedCoordinator) -> None:
    with consumer_of(server, "t", source=lettered(4, 5), enable_auto_commit=False) as consumer:
        read(consumer, 20)
        assert server.committed == {}
        consumer.commit()
        assert server.committed == {("t", p): 5 for p in range(4)}
        consumer.commit({T0: 2, T1: OffsetAndMetadata(3, "half")})
        sent = server.all("offsets/commit")[-1].body
        assert sent["generation_id_or_member_epoch"] == 1
        assert sent["member_id"] == "m1"
        assert sent["topics"] == [
            {
                "topic_id": "id-of-t",
                "partitions": [
                    {"partition": 0, "committed_offset": 2},
                    {"partition": 1, "committed_offset": 3, "committed_metadata": "half"},
                ],
            }
        ]
        assert consumer.committed([T0, T1]) == {T0: OffsetAndMetadata(2), T1: OffsetAndMetadata(3)}


def test_committed_of_nothing_is_none_and_unstable_offsets_are_waited_for(server: ScriptedCoordinator) -> None:
    def unstable(body: dict[str, Any]) -> Any:
        code = Error.UNSTABLE_OFFSET_COMMIT.code
        return {"topics": [{"name": "t", "partitions": [{"partition": 0, "committed_offset": -1, "error_code": code}]}]}

    server.script("offsets/fetch", unstable, Refusal(Error.COORDINATOR_LOAD_IN_PROGRESS))
    with consumer_of(server) as consumer:
        assert consumer.committed([T0]) == {T0: None}
        assert len(server.all("offsets/fetch")) == 3


def test_error_of_one_partition_fails_the_commit(server: ScriptedCoordinator) -> None:
    code = Error.TOPIC_AUTHORIZATION_FAILED.code
    server.script("offsets/commit", {"topics": [{"name": "t", "partitions": [{"partition": 0, "error_code": code}]}]})
    with consumer_of(server, "t") as consumer:
        stable(consumer)
        with pytest.raises(TopicAuthorizationError, match="t-0"):
            consumer.commit({T0: 1})


def test_asynchronous_commits_keep_their_order(server: ScriptedCoordinator) -> None:
    calls: list[tuple[int, KcoordError | None]] = []
    with consumer_of(server, "t", enable_auto_commit=False) as consumer:
        stable(consumer)
        server.script("offsets/commit", Refusal(Error.COORDINATOR_LOAD_IN_PROGRESS))
        for offset in (1, 2, 3):
            consumer.commit_async({T0: offset}, lambda offsets, error: calls.append((offsets[T0].offset, error)))
        consumer.commit({T0: 4})
        sent = [s.body["topics"][0]["partitions"][0]["committed_offset"] for s in server.all("offsets/commit")]
        assert sent == [1, 2, 3, 4]
        assert [offset for offset, _ in calls] == [1, 2, 3]
        assert calls[0][1] is not None
        assert calls[0][1].error is Error.COORDINATOR_LOAD_IN_PROGRESS
        assert calls[0][1].retriable
        assert [error for _, error in calls[1:]] == [None, None]


def test_commit_outside_of_the_group_is_refused_unsent(server: ScriptedCoordinator) -> None:
    errors: list[KcoordError | None] = []
    with consumer_of(server, "t") as consumer:
        with pytest.raises(CommitFailedError, match="not part of the group"):
            consumer.commit({T0: 1})
        consumer.commit_async({T0: 1}, lambda offsets, error: errors.append(error))
        stable(consumer)
        assert isinstance(errors[0], CommitFailedError)
        assert not server.all("offsets/commit")


def test_commit_waits_for_the_assignment_of_its_generation(server: ScriptedCoordinator) -> None:
    """Differs from Kafka: the member is stable again, but what was read belongs to the generation before."""
    release = threading.Event()

    def hold(body: dict[str, Any]) -> Any:
        assert release.wait(WAIT_S)
        return server._join(body)

    with consumer_of(server, "t", heartbeat_interval_ms=9_000) as consumer:
        stable(consumer)
        server.script("join", hold)
        consumer.enforce_rebalance()
        consumer.poll()
        release.set()
        wait_until(lambda: consumer.state is MemberState.STABLE and consumer.generation.generation_id == 2)
        with pytest.raises(RebalanceInProgressError):
            consumer.commit({T0: 1})
        assert not server.all("offsets/commit")


def test_commit_gives_up_after_its_time(server: ScriptedCoordinator) -> None:
    with consumer_of(server, "t") as consumer:
        stable(consumer)
        server.script("offsets/commit", *[Refusal(Error.COORDINATOR_LOAD_IN_PROGRESS)] * 1000)
        with pytest.raises(ClientTimeoutError, match="within 50 ms"):
            consumer.commit({T0: 1}, timeout_ms=50)


def test_automatic_commits_happen_at_later_polls(server: ScriptedCoordinator) -> None:
    with consumer_of(server, "t", source=lettered(4, 2), auto_commit_interval_ms=1) as consumer:
        read(consumer, 8)
        wait_until(lambda: not consumer.poll(1) and server.committed == {("t", p): 2 for p in range(4)})


def test_automatic_commits_repeat_what_a_fail_over_lost(server: ScriptedCoordinator) -> None:
    """Positions are committed each interval, though nothing was read since: docs/high-availability.md relies on it."""
    with consumer_of(server, "t", source=lettered(4, 2), auto_commit_interval_ms=1) as consumer:
        read(consumer, 8)
        read_all = {("t", p): 2 for p in range(4)}
        wait_until(lambda: not consumer.poll(1) and server.committed == read_all)
        server.committed.clear()
        wait_until(lambda: not consumer.poll(1) and server.committed == read_all)


def test_close_commits_the_positions_but_not_after_an_error(server: ScriptedCoordinator) -> None:
    """Differs from Kafka: there a consumer that is closed because of an error commits too."""
    with consumer_of(server, "t", source=lettered(4, 2)) as consumer:
        with pytest.raises(KeyError), consumer:
            {}[len(read(consumer, 8))]
        assert server.committed == {}
    with consumer_of(server, "t", source=lettered(4, 2)) as consumer:
        with consumer:
            read(consumer, 8)
        assert server.committed == {("t", p): 2 for p in range(4)}
        assert [api for api in server.apis() if api != "heartbeat"][-2:] == ["offsets/commit", "leave"]
        with pytest.raises(IllegalStateError, match="closed"):
            consumer.poll()
        consumer.close()


def test_partitions_assigned_by_hand(server: ScriptedCoordinator) -> None:
    with consumer_of(server, source=lettered(4, 2)) as consumer:
        consumer.assign([T1, T3])
        assert {r.partition for r in read(consumer, 4)} == {1, 3}
        consumer.commit()
        with pytest.raises(IllegalStateError, match="unsubscribe"):
            consumer.subscribe(["t"])
        sent = server.all("offsets/commit")[0].body
        assert (sent["generation_id_or_member_epoch"], sent["member_id"]) == (-1, "")
        assert not server.all("join")
        consumer.unsubscribe()
        assert consumer.assignment() == frozenset()
    assert not server.all("leave")


def test_wakeup_ends_a_poll(server: ScriptedCoordinator) -> None:
    with consumer_of(server, "t") as consumer:
        stable(consumer)
        waker = threading.Timer(0.02, consumer.wakeup)
        waker.start()
        with pytest.raises(WakeupError):
            consumer.poll(LONG_MS)
        waker.join()
        assert consumer.poll() == {}


def test_a_second_thread_is_refused(server: ScriptedCoordinator) -> None:
    caught: list[Exception] = []

    def intrude() -> None:
        try:
            consumer.poll()
        except IllegalStateError as error:
            caught.append(error)
        consumer.wakeup()

    with consumer_of(server, "t") as consumer:
        stable(consumer)
        intruder = threading.Timer(0.02, intrude)
        intruder.start()
        with pytest.raises(WakeupError):
            consumer.poll(LONG_MS)
        intruder.join()
    assert "in use by another" in str(caught[0])
