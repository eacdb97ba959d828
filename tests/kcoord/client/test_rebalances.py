"""Rebalances of the classic protocol as the user sees them: listener, eager and cooperative moves."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kcoord.client import ConsumerRebalanceListener, InconsistentGroupProtocolError, MemberState, TopicPartition
from kcoord.protocol.errors import Error
from tests.kcoord.client.journal import Journal
from tests.kcoord.client.scripted import (
    URL,
    WAIT_S,
    Refusal,
    ScriptedCoordinator,
    consumer_of,
    given,
    poll_until,
    stable,
    wait_until,
)
from tests.kcoord.client.sources import lettered

LONG_MS = int(WAIT_S * 1000)


@pytest.fixture
def server() -> ScriptedCoordinator:
    return ScriptedCoordinator()


def test_cooperative_member_keeps_reading_and_gives_up_only_what_moves(server: ScriptedCoordinator) -> None:
    listener = Journal()
    release = threading.Event()

    def held(body: dict[str, Any]) -> Any:
        assert release.wait(WAIT_S)
        return server._join(body)

    settings: dict[str, Any] = {"partition_assignment_strategy": ["cooperative-sticky"], "enable_auto_commit": True}
    server.script("sync", given([0, 1, 2, 3]), given([0, 1]), given([0, 1]))
    with consumer_of(server, source=lettered(4, 1), heartbeat_interval_ms=9_000, **settings) as consumer:
        consumer.subscribe(["t"], listener)
        assert sum(len(records) for records in consumer.poll(LONG_MS).values()) == 4
        server.script("join", held)
        consumer.enforce_rebalance("a test")
        consumer.poll()
        consumer.seek_to_beginning()
        assert sum(len(records) for records in consumer.poll(LONG_MS).values()) == 4
        assert consumer.state is MemberState.REBALANCING
        release.set()
        stable(consumer, generation=3)
        assert {tp.partition for tp in consumer.assignment()} == {0, 1}
        owned = [s.body["protocols"][0]["subscription"]["owned_partitions"] for s in server.all("join")]
        generations = [s.body["protocols"][0]["subscription"]["generation_id"] for s in server.all("join")]
        assert owned == [{}, {}, {"t": [0, 1, 2, 3]}, {"t": [0, 1]}]
        assert generations == [-1, -1, 1, 2]
        assert server.all("join")[2].body["reason"] == "a test"
    assert listener.calls == [
        ("assigned", [0, 1, 2, 3]),
        ("revoked", [2, 3]),
        ("assigned", []),
        ("assigned", []),
        ("revoked", [0, 1]),
    ]
    commits = [
        [p["partition"] for t in s.body["topics"] for p in t["partitions"]] for s in server.all("offsets/commit")
    ]
    assert commits == [[0, 1, 2, 3], [2, 3], [0, 1]]


def test_revoked_partitions_can_be_committed_by_the_listener(server: ScriptedCoordinator) -> None:
    class Committing(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: Any) -> None:
            consumer.commit(dict.fromkeys(revoked, 7))

    server.script("sync", given([0, 1]), given([0]))
    strategies = ["cooperative-sticky"]
    with consumer_of(
        server, partition_assignment_strategy=strategies, heartbeat_interval_ms=9_000, enable_auto_commit=False
    ) as consumer:
        consumer.subscribe(["t"], Committing())
        stable(consumer)
        consumer.enforce_rebalance()
        # What is revoked goes to its new owner in a third generation, which would refuse the commits of a close.
        stable(consumer, generation=3)
        assert server.committed == {("t", 1): 7}
        assert server.all("offsets/commit")[0].body["generation_id_or_member_epoch"] == 2


def test_eager_commits_then_revokes_before_the_join(server: ScriptedCoordinator) -> None:
    seen: list[list[str]] = []

    class Watching(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: Any) -> None:
            seen.append(server.apis())

    with consumer_of(server, source=lettered(4, 1), heartbeat_interval_ms=9_000) as consumer:
        consumer.subscribe(["t"], Watching())
        stable(consumer)
        assert [consumer.position(tp) for tp in sorted(consumer.assignment())]
        consumer.enforce_rebalance()
        stable(consumer, generation=2)
    assert seen[0] == []
    assert seen[1][-1] == "offsets/commit"
    assert seen[1].count("join") == 2


def test_cooperative_partitions_are_lost_if_the_identity_is_lost_during_the_rebalance(
    server: ScriptedCoordinator,
) -> None:
    events: list[tuple[str, int]] = []

    class Watching(ConsumerRebalanceListener):
        def on_partitions_lost(self, lost: Any) -> None:
            events.append(("lost", len(lost)))

        def on_partitions_assigned(self, assigned: Any) -> None:
            events.append(("assigned", len(assigned)))

    with consumer_of(
        server, partition_assignment_strategy=["cooperative-sticky"], heartbeat_interval_ms=9_000
    ) as consumer:
        consumer.subscribe(["t"], Watching())
        stable(consumer)
        server.script("join", Refusal(Error.UNKNOWN_MEMBER_ID))
        consumer.enforce_rebalance()
        stable(consumer, generation=2)
        assert server.all("join")[-1].body["protocols"][0]["subscription"]["owned_partitions"] == {}
    poll_until(consumer, lambda: len(events) == 3)
    assert events == [("assigned", 4), ("lost", 4), ("assigned", 4)]


def test_cooperative_member_that_joins_twice_claims_its_partitions_in_the_latest_generation(
    server: ScriptedCoordinator,
) -> None:
    server.script("sync", given([0, 1]), Refusal(Error.REBALANCE_IN_PROGRESS), given([0, 1]))
    with consumer_of(
        server, "t", partition_assignment_strategy=["cooperative-sticky"], heartbeat_interval_ms=9_000
    ) as consumer:
        stable(consumer)
        consumer.enforce_rebalance()
        stable(consumer, generation=3)
        told = [s.body["protocols"][0]["subscription"] for s in server.all("join")[2:]]
        assert [(s["owned_partitions"], s["generation_id"]) for s in told] == [({"t": [0, 1]}, 1), ({"t": [0, 1]}, 2)]


@pytest.mark.parametrize("method", ["on_partitions_revoked", "on_partitions_assigned"])
def test_what_a_listener_raises_comes_out_of_poll_and_the_rebalance_goes_on(
    server: ScriptedCoordinator, method: str
) -> None:
    calls: list[str] = []

    def fail(partitions: Any) -> None:
        calls.append(method)
        if len(calls) == 1:
            raise ZeroDivisionError

    listener = Journal()
    setattr(listener, method, fail)
    with consumer_of(server, heartbeat_interval_ms=9_000) as consumer:
        consumer.subscribe(["t"], listener)
        with pytest.raises(ZeroDivisionError):
            consumer.poll(LONG_MS)
        stable(consumer)
        wait_until(lambda: not consumer.poll() and len(consumer.assignment()) == 4)
        assert calls == [method]


def test_sticky_is_told_what_was_owned_though_everything_is_revoked(server: ScriptedCoordinator) -> None:
    settings: dict[str, Any] = {"partition_assignment_strategy": ["sticky", "cooperative-sticky"]}
    server.script("sync", given([1, 3]))
    with consumer_of(server, "t", heartbeat_interval_ms=9_000, **settings) as consumer:
        stable(consumer)
        consumer.enforce_rebalance()
        stable(consumer, generation=2)
        sticky, cooperative = (p["subscription"] for p in server.all("join")[2].body["protocols"])
        assert (sticky["owned_partitions"], sticky["generation_id"]) == ({"t": [1, 3]}, 1)
        assert cooperative["owned_partitions"] == {}


def test_short_polls_join_with_one_request(server: ScriptedCoordinator) -> None:
    """Differs from Kafka: a join that waits goes on between polls, and is not sent again with each of them."""
    release = threading.Event()

    def hold(body: dict[str, Any]) -> Any:
        assert release.wait(WAIT_S)
        return server._join(body)

    server.script("join", Refusal(Error.MEMBER_ID_REQUIRED, member_id="m1"), hold)
    with consumer_of(server, "t") as consumer:
        for _ in range(20):
            assert consumer.poll(1) == {}
        server.wait_for("join", 2)
        assert consumer.state is MemberState.REBALANCING
        release.set()
        stable(consumer)
        assert len(server.all("join")) == 2


def test_member_that_the_leader_left_out_has_no_partitions(server: ScriptedCoordinator) -> None:
    """Differs from Kafka: there the member fails."""
    server.script("sync", {"protocol_type": "consumer", "protocol_name": "range", "assignment": "", "partitions": None})
    with consumer_of(server, "t") as consumer:
        stable(consumer)
        assert consumer.assignment() == frozenset()


def test_assignment_that_cannot_be_read_is_fatal(server: ScriptedCoordinator) -> None:
    server.script(
        "sync", {"protocol_type": "consumer", "protocol_name": "range", "assignment": "eA==", "partitions": None}
    )
    with consumer_of(server, "t") as consumer, pytest.raises(InconsistentGroupProtocolError, match="assignment"):
        consumer.poll(LONG_MS)


def test_changed_subscription_rejoins(server: ScriptedCoordinator) -> None:
    server.topics["u"] = 2
    with consumer_of(server, "t", heartbeat_interval_ms=9_000) as consumer:
        stable(consumer)
        consumer.subscribe(["u"])
        stable(consumer, generation=2)
        assert consumer.assignment() == {TopicPartition("u", 0), TopicPartition("u", 1)}
        consumer.subscribe([])
        assert consumer.subscription() == frozenset()
        assert server.all("leave")[0].body["members"][0]["reason"] == "the consumer unsubscribed from all topics"
        consumer.subscribe(["t"])
        stable(consumer, generation=3)
        assert server.all("join")[-1].body["member_id"] == "m2"


def test_requests_carry_token_and_identity(server: ScriptedCoordinator) -> None:
    settings: dict[str, Any] = {"token": "s3cret", "client_id": "billing", "client_rack": "r1", "url": URL + "/"}
    with consumer_of(server, "t", **settings) as consumer:
        stable(consumer)
    for sent in server.sent:
        assert sent.headers["authorization"] == "Bearer s3cret"
    body = server.all("join")[0].body
    assert (body["client_id"], body["session_timeout_ms"], body["rebalance_timeout_ms"]) == ("billing", 10_000, 300_000)
    assert [p["name"] for p in body["protocols"]] == ["range", "cooperative-sticky"]
    assert body["protocols"][0]["subscription"]["rack_id"] == "r1"
