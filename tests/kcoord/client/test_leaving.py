"""How members of a classic group leave: by themselves, for a user who does not poll, or not at all."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kcoord.client import ConsumerRebalanceListener, MemberState
from kcoord.protocol.errors import Action, Error
from tests.kcoord.client.scripted import (
    WAIT_S,
    Refusal,
    ScriptedCoordinator,
    consumer_of,
    poll_until,
    stable,
    wait_until,
)


@pytest.fixture
def server() -> ScriptedCoordinator:
    return ScriptedCoordinator()


def test_slow_user_keeps_the_session_and_a_too_slow_one_leaves(server: ScriptedCoordinator) -> None:
    events: list[str] = []

    class Watching(ConsumerRebalanceListener):
        def on_partitions_lost(self, lost: Any) -> None:
            events.append("lost")

    with consumer_of(server, max_poll_interval_ms=400) as consumer:
        consumer.subscribe(["t"], Watching())
        stable(consumer)
        poll_until(consumer, lambda: bool(consumer.assignment()))
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
        poll_until(consumer, lambda: bool(events))
        assert events == ["lost"]
        assert server.all("join")[2].body["member_id"] == ""


def test_join_does_not_go_on_for_a_user_who_stopped_polling(server: ScriptedCoordinator) -> None:
    def not_yet(body: dict[str, Any]) -> Any:
        return Refusal(Error.REBALANCE_IN_PROGRESS, Action.RETRY, member_id="m1")

    server.script("join", Refusal(Error.MEMBER_ID_REQUIRED, member_id="m1"), *[not_yet] * 100_000)
    with consumer_of(server, "t", max_poll_interval_ms=50) as consumer:
        consumer.poll()
        server.wait_for("leave")
        rebalance = consumer._core.coordinator._rebalance  # type: ignore[attr-defined]
        assert rebalance is not None
        wait_until(lambda: rebalance.ended)
        assert consumer.state is MemberState.UNJOINED


def test_static_member_does_not_leave(server: ScriptedCoordinator) -> None:
    with consumer_of(server, "t", group_instance_id="i1") as consumer:
        stable(consumer)
        assert [s.body["group_instance_id"] for s in server.all("join")] == ["i1"]
        server.wait_for("heartbeat")
    assert {s.body["group_instance_id"] for s in server.all("heartbeat")} == {"i1"}
    assert not server.all("leave")


def test_leaving_during_the_first_join_hands_the_member_id_back(server: ScriptedCoordinator) -> None:
    asked = threading.Event()

    def slowly(body: dict[str, Any]) -> Any:
        asked.set()
        wait_until(lambda: consumer._core.coordinator._rebalance is None)
        return server._join(body)

    server.script("join", slowly)
    with consumer_of(server, "t") as consumer:
        consumer.poll()
        assert asked.wait(WAIT_S)
    assert [s.body["members"][0]["member_id"] for s in server.all("leave")] == ["m1"]
