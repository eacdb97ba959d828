"""How members of a consumer group leave: by themselves, for a user who does not poll, or for a while."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kcoord.client import CommitFailedError, ConsumerRebalanceListener, MemberState, TopicPartition
from kcoord.protocol.errors import Error
from tests.kcoord.client.journal import Journal
from tests.kcoord.client.scripted import WAIT_S, Refusal, stable, wait_until
from tests.kcoord.client.scripted_group import API, ScriptedGroup, member_of, poll_until_owned, poll_until_read, t
from tests.kcoord.client.sources import lettered

LONG_MS = int(WAIT_S * 1000)


@pytest.fixture
def server() -> ScriptedGroup:
    return ScriptedGroup()


def test_user_who_does_not_poll_leaves_and_comes_back(server: ScriptedGroup) -> None:
    journal = Journal()
    with member_of(server, max_poll_interval_ms=300) as consumer:
        consumer.subscribe(["t"], journal)
        poll_until_owned(consumer, t(0, 1, 2, 3))
        member_id = consumer.generation.member_id
        wait_until(lambda: server.leaves() == [-1])
        wait_until(lambda: consumer.state is MemberState.UNJOINED)
        assert journal.calls == [("assigned", [0, 1, 2, 3])]
        with pytest.raises(CommitFailedError):
            consumer.commit({TopicPartition("t", 0): 1})
        count = len(server.heartbeats())
        consumer.poll()
        assert journal.calls[1] == ("lost", [0, 1, 2, 3])
        poll_until_owned(consumer, t(0, 1, 2, 3))
        assert server.heartbeats()[count]["member_epoch"] == 0
        assert server.heartbeats()[count]["topic_partitions"] == []
        assert consumer.generation.member_id == member_id


def test_user_who_does_not_poll_leaves_though_a_heartbeat_is_held() -> None:
    server = ScriptedGroup(holds=True, interval_ms=60_000)
    with member_of(server, "t", max_poll_interval_ms=300) as consumer:
        poll_until_owned(consumer, t(0, 1, 2, 3))
        wait_until(lambda: server.leaves() == [-1])


@pytest.mark.parametrize(("leave", "epochs"), [("close", [-2]), ("unsubscribe", [-2, -2]), ("silence", [-2, -2])])
def test_static_member_leaves_for_a_while(server: ScriptedGroup, leave: str, epochs: list[int]) -> None:
    with member_of(server, "t", group_instance_id="i1", max_poll_interval_ms=500) as consumer:
        poll_until_owned(consumer, t(0, 1, 2, 3))
        if leave == "unsubscribe":
            consumer.unsubscribe()
            consumer.subscribe(["t"])
        elif leave == "silence":
            wait_until(lambda: server.leaves() == [-2])
        poll_until_owned(consumer, t(0, 1, 2, 3))
        assert {body["instance_id"] for body in server.heartbeats()} == {"i1"}
    assert server.leaves() == epochs


def test_unsubscribing_commits_revokes_and_leaves_and_another_subscription_joins(server: ScriptedGroup) -> None:
    journal = Journal()
    with member_of(server, source=lettered(4, 1)) as consumer:
        consumer.subscribe(["t"], journal)
        poll_until_owned(consumer, t(0, 1, 2, 3))
        poll_until_read(consumer, 1)
        consumer.unsubscribe()
        assert server.committed == {("t", p): 1 for p in range(4)}
        assert journal.calls[-1] == ("revoked", [0, 1, 2, 3])
        assert server.leaves() == [-1]
        assert consumer.state is MemberState.UNJOINED
        consumer.subscribe(["t"])
        stable(consumer, generation=2)
        assert len({body["member_id"] for body in server.heartbeats()}) == 1


def test_leave_does_not_overtake_the_join(server: ScriptedGroup) -> None:
    asked, left, overtaken = threading.Event(), threading.Event(), threading.Event()

    def slowly(body: dict[str, Any]) -> Any:
        asked.set()
        wait_until(lambda: consumer.state is MemberState.UNJOINED)
        if left.wait(0.2):
            overtaken.set()
        return ScriptedGroup._consumer_heartbeat(server, body)

    def noting_leaves(body: dict[str, Any]) -> Any:
        if body["member_epoch"] < 0:
            left.set()
        return ScriptedGroup._consumer_heartbeat(server, body)

    server.script(API, slowly)
    server._consumer_heartbeat = noting_leaves  # type: ignore[method-assign]
    with member_of(server, "t") as consumer:
        consumer.poll()
        assert asked.wait(WAIT_S)
    assert left.is_set()
    assert not overtaken.is_set()
    # A heartbeat of the member's other thread may be under way beside the leave: it is refused, and has no effect.
    assert server.heartbeats()[0]["member_epoch"] == 0
    assert server.leaves() == [-1]


def test_consumer_that_never_joined_does_not_leave(server: ScriptedGroup) -> None:
    with member_of(server, "t"):
        pass
    assert not server.all(API)


def test_failed_leave_is_not_repeated(server: ScriptedGroup) -> None:
    def refuse_leaves(body: dict[str, Any]) -> Any:
        if body["member_epoch"] < 0:
            return Refusal(Error.COORDINATOR_NOT_AVAILABLE)
        return ScriptedGroup._consumer_heartbeat(server, body)

    server._consumer_heartbeat = refuse_leaves  # type: ignore[method-assign]
    with member_of(server, "t") as consumer:
        poll_until_owned(consumer, t(0, 1, 2, 3))
    assert server.leaves() == [-1]


def test_user_who_polls_again_while_the_member_leaves_has_nothing_left(server: ScriptedGroup) -> None:
    release = threading.Event()

    def slow_leaves(body: dict[str, Any]) -> Any:
        if body["member_epoch"] < 0:
            assert release.wait(WAIT_S)
        return ScriptedGroup._consumer_heartbeat(server, body)

    server._consumer_heartbeat = slow_leaves  # type: ignore[method-assign]
    journal = Journal()
    with member_of(server, source=lettered(4, 9), max_poll_interval_ms=300) as consumer:
        consumer.subscribe(["t"], journal)
        poll_until_owned(consumer, t(0, 1, 2, 3))
        wait_until(lambda: server.leaves() == [-1])
        assert consumer.poll() == {}
        assert journal.calls[1:] == [("lost", [0, 1, 2, 3])]
        assert not consumer.assignment()
        assert len(server.joins()) == 1
        release.set()
        poll_until_owned(consumer, t(0, 1, 2, 3))
        assert len(server.joins()) == 2


def test_listener_that_raises_does_not_keep_the_member_in_the_group(server: ScriptedGroup) -> None:
    class Raising(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: Any) -> None:
            raise ZeroDivisionError

    with member_of(server) as consumer:
        consumer.subscribe(["t"], Raising())
        poll_until_owned(consumer, t(0, 1, 2, 3))
        with pytest.raises(ZeroDivisionError):
            consumer.close()
        assert server.leaves() == [-1]
