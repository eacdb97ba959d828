"""Rebalances as the user sees them: listener, eager and cooperative moves, leaving, static members, assignors."""

from __future__ import annotations

import importlib.metadata
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kcoord import assignors
from kcoord.assignors import registry
from kcoord.client import (
    ConsumerRebalanceListener,
    IllegalStateError,
    InconsistentGroupProtocolError,
    InvalidConfigurationError,
    MemberState,
    TopicPartition,
)
from kcoord.errors import Action, Error
from tests.client.scripted import URL, WAIT_S, Refusal, ScriptedCoordinator, consumer_of, stable, wait_until
from tests.client.sources import lettered

LONG_MS = int(WAIT_S * 1000)


@pytest.fixture
def server() -> ScriptedCoordinator:
    return ScriptedCoordinator()


class Log(ConsumerRebalanceListener):
    def __init__(self) -> None:
        self.calls: list[tuple[str, list[int]]] = []

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.calls.append(("revoked", [tp.partition for tp in revoked]))

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.calls.append(("assigned", [tp.partition for tp in assigned]))


def given(partitions: list[int]) -> Any:
    """A sync answer that assigns `partitions` of topic t, whatever the leader said."""

    def answer(body: dict[str, Any]) -> Any:
        return {
            "protocol_type": "consumer",
            "protocol_name": body["protocol_name"],
            "assignment": "AAE=",
            "partitions": {"t": partitions},
        }

    return answer


def test_cooperative_member_keeps_reading_and_gives_up_only_what_moves(server: ScriptedCoordinator) -> None:
    listener = Log()
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
        stable(consumer, generation=2)
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

    listener = Log()
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


def test_slow_user_keeps_the_session_and_a_too_slow_one_leaves(server: ScriptedCoordinator) -> None:
    events: list[str] = []

    class Watching(ConsumerRebalanceListener):
        def on_partitions_lost(self, lost: Any) -> None:
            events.append("lost")

    with consumer_of(server, max_poll_interval_ms=400) as consumer:
        consumer.subscribe(["t"], Watching())
        stable(consumer)
        server.wait_for("heartbeat", 5)
        assert not server.all("leave")
        (left,) = server.wait_for("leave")
        member = left.body["members"][0]
        assert member["member_id"] == "m1"
        assert member["reason"].startswith("consumer poll timeout has expired")
        assert len(member["reason"]) <= 255
        assert consumer.state is MemberState.UNJOINED
        assert events == []
        stable(consumer, generation=2)
        assert events == ["lost"]
        assert server.all("join")[2].body["member_id"] == ""


def test_join_does_not_go_on_for_a_user_who_stopped_polling(server: ScriptedCoordinator) -> None:
    def not_yet(body: dict[str, Any]) -> Any:
        return Refusal(Error.REBALANCE_IN_PROGRESS, Action.RETRY, member_id="m1")

    server.script("join", Refusal(Error.MEMBER_ID_REQUIRED, member_id="m1"), *[not_yet] * 100_000)
    with consumer_of(server, "t", max_poll_interval_ms=50) as consumer:
        consumer.poll()
        server.wait_for("leave")
        rebalance = consumer._coordinator._rebalance
        assert rebalance is not None
        assert rebalance.join(WAIT_S)
        assert consumer.state is MemberState.UNJOINED


def test_static_member_does_not_leave(server: ScriptedCoordinator) -> None:
    with consumer_of(server, "t", group_instance_id="i1") as consumer:
        stable(consumer)
        assert [s.body["group_instance_id"] for s in server.all("join")] == ["i1"]
        server.wait_for("heartbeat")
    assert {s.body["group_instance_id"] for s in server.all("heartbeat")} == {"i1"}
    assert not server.all("leave")


def test_restarted_static_leader_skips_the_assignment_and_keeps_watching(server: ScriptedCoordinator) -> None:
    def restarted(body: dict[str, Any]) -> Any:
        return server._join(body) | {"skip_assignment": True}

    server.script("join", restarted)
    server.script("sync", given([0, 1]))
    with consumer_of(server, "t", group_instance_id="i1", metadata_max_age_ms=1, heartbeat_interval_ms=9_000) as c:
        stable(c)
        assert server.all("sync")[0].body["assignments"] == []
        server.topics["t"] = 6
        stable(c, generation=2)
        assert len(server.all("sync")[1].body["assignments"][0]["partitions"]["t"]) == 6


def test_leader_notices_more_partitions(server: ScriptedCoordinator) -> None:
    with consumer_of(server, "t", metadata_max_age_ms=1) as consumer:
        stable(consumer)
        server.topics["t"] = 5
        stable(consumer, generation=2)
        assert len(consumer.assignment()) == 5
        assert server.all("join")[2].body["reason"] == "the number of partitions changed: t 4 -> 5"


def test_follower_does_not_watch_topics(server: ScriptedCoordinator) -> None:
    def follower(body: dict[str, Any]) -> Any:
        return server._join(body) | {"leader": "somebody", "members": []}

    server.script("join", Refusal(Error.MEMBER_ID_REQUIRED, member_id="m1"), follower)
    server.script("sync", given([2]))
    with consumer_of(server, "t", metadata_max_age_ms=1) as consumer:
        stable(consumer)
        server.wait_for("heartbeat", 2)
        consumer.poll(20)
        assert server.all("sync")[0].body["assignments"] == []
        assert not server.all("topic")


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


def test_leaving_during_the_first_join_hands_the_member_id_back(server: ScriptedCoordinator) -> None:
    asked = threading.Event()

    def slowly(body: dict[str, Any]) -> Any:
        asked.set()
        wait_until(lambda: consumer._coordinator._rebalance is None)
        return server._join(body)

    server.script("join", slowly)
    with consumer_of(server, "t") as consumer:
        consumer.poll()
        assert asked.wait(WAIT_S)
    assert [s.body["members"][0]["member_id"] for s in server.all("leave")] == ["m1"]


class Reversed:
    """A custom assignor: everything to the last member."""

    name = "reversed"
    protocols = (assignors.RebalanceProtocol.EAGER,)

    def assign(self, partitions_per_topic: Any, subscriptions: Any, partition_racks: Any = None) -> Any:
        last = max(member.member_id for member in subscriptions)
        return {last: {topic: list(range(count)) for topic, count in partitions_per_topic.items()}}

    def subscription_user_data(self, topics: Any) -> bytes:
        return b"weight=3"

    def on_assignment(self, partitions: Any, generation_id: int, user_data: bytes) -> None:
        self.got = (partitions, generation_id, user_data)


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package publishes `Reversed`."""
    entry = importlib.metadata.EntryPoint("reversed", f"{__name__}:Reversed", registry.ENTRY_POINT_GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry] if group == entry.group else [])
    registry.get_assignor.cache_clear()
    yield
    registry.get_assignor.cache_clear()


def test_custom_assignor_by_entry_point(server: ScriptedCoordinator, published: None) -> None:
    server.script("sync", lambda body: server._sync(body) | {"user_data": "aGk="})
    with consumer_of(server, "t", partition_assignment_strategy=["reversed"]) as consumer:
        stable(consumer)
        assert len(consumer.assignment()) == 4
        protocol = server.all("join")[0].body["protocols"][0]
        assert protocol["name"] == "reversed"
        assert protocol["subscription"]["user_data"] == "d2VpZ2h0PTM="
        assert assignors.get_assignor("reversed").got == ({"t": [0, 1, 2, 3]}, 1, b"hi")  # type: ignore[attr-defined]


def test_unknown_assignor_is_a_configuration_error() -> None:
    with pytest.raises(InvalidConfigurationError, match="no assignor is named 'rangee'"):
        next(iter(consumer_of(ScriptedCoordinator(), partition_assignment_strategy=["rangee"]).gen))


def test_faulty_assignment_is_not_sent(server: ScriptedCoordinator) -> None:
    class Greedy(Reversed):
        def assign(self, partitions_per_topic: Any, subscriptions: Any, partition_racks: Any = None) -> Any:
            return {member.member_id: {"t": [0, 0]} for member in subscriptions}

    with consumer_of(server, "t", partition_assignment_strategy=[Greedy()]) as consumer:
        with pytest.raises(IllegalStateError, match="again"):
            consumer.poll(LONG_MS)
        assert not server.all("sync")


def test_cooperative_assignor_must_not_give_away_what_is_owned(server: ScriptedCoordinator) -> None:
    class Impatient(Reversed):
        protocols = (assignors.RebalanceProtocol.COOPERATIVE,)

    def with_another_owner(body: dict[str, Any]) -> Any:
        other = {"topics": ["t"], "owned_partitions": {"t": [0]}, "generation_id": 1}
        answer = server._join(body)
        answer["members"].append({"member_id": "a", "group_instance_id": None, "metadata": "", "subscription": other})
        return answer

    server.script("join", Refusal(Error.MEMBER_ID_REQUIRED, member_id="m1"), with_another_owner)
    with (
        consumer_of(server, "t", partition_assignment_strategy=[Impatient()]) as consumer,
        pytest.raises(IllegalStateError, match="t-0 to m1 while a still owns it"),
    ):
        consumer.poll(LONG_MS)


def test_leader_waits_for_the_catalogue(server: ScriptedCoordinator) -> None:
    server.script("topic", Refusal(Error.COORDINATOR_NOT_AVAILABLE), Refusal(Error.COORDINATOR_NOT_AVAILABLE))
    with consumer_of(server, "t", heartbeat_interval_ms=9_000) as consumer:
        stable(consumer)
        assert len(server.all("topic")) == 3
        assert len(server.all("join")) == 2


def test_topic_that_does_not_exist_is_not_assigned(server: ScriptedCoordinator) -> None:
    with consumer_of(server, "t", "missing") as consumer:
        stable(consumer)
        assert {tp.topic for tp in consumer.assignment()} == {"t"}


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
