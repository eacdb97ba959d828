"""What the leader of a classic group does: partition counts, assignors, checks of what they return."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from typing import Any

import pytest

from kcoord import assignors
from kcoord.assignors import registry
from kcoord.client import IllegalStateError, InvalidConfigurationError
from kcoord.protocol.errors import Error
from tests.kcoord.client.scripted import WAIT_S, Refusal, ScriptedCoordinator, consumer_of, given, stable

LONG_MS = int(WAIT_S * 1000)


@pytest.fixture
def server() -> ScriptedCoordinator:
    return ScriptedCoordinator()


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
    registry.forget()
    yield
    registry.forget()


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
