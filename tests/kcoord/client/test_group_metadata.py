"""`group_metadata`: as whom a sink commits inside a transaction of its own."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kcoord.client import CommitFailedError, MemberState, RebalanceInProgressError, TopicPartition
from tests.kcoord.client.scripted import ScriptedCoordinator, consumer_of, stable, wait_until

WAIT_S = 10.0


@pytest.fixture
def server() -> ScriptedCoordinator:
    """A service without a network."""
    return ScriptedCoordinator()


def test_it_is_the_member_whose_assignment_is_in_place(server: ScriptedCoordinator) -> None:
    with consumer_of(server, "t") as consumer:
        with pytest.raises(CommitFailedError, match="not part of the group"):
            consumer.group_metadata()
        stable(consumer)
        assert consumer.group_metadata() == consumer.generation
        assert consumer.group_metadata().known


def test_it_is_never_of_a_rebalance_that_no_poll_has_finished(server: ScriptedCoordinator) -> None:
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
            consumer.group_metadata()
        stable(consumer, generation=2)
        assert consumer.group_metadata().generation_id == 2


def test_without_a_group_it_is_nobody(server: ScriptedCoordinator) -> None:
    with consumer_of(server) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        assert (consumer.group_metadata().member_id, consumer.group_metadata().generation_id) == ("", -1)
