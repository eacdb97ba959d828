"""As whom a sink commits inside a transaction of its own, and what: `group_metadata` and `sink_offsets`."""

from __future__ import annotations

import importlib.util
import threading
from typing import Any
from unittest.mock import MagicMock

import pytest

from kcoord.client import (
    CommitFailedError,
    MemberState,
    OffsetAndMetadata,
    RebalanceInProgressError,
    Record,
    TopicPartition,
)
from tests.kcoord.client.scripted import ScriptedCoordinator, consumer_of, stable, wait_until
from tests.kcoord.client.sources import MemorySource
from tests.support.processes import ROOT

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


def test_a_sink_names_the_topics_that_were_read_by_their_ids(server: ScriptedCoordinator) -> None:
    with consumer_of(server, "t", source=MemorySource({TopicPartition("t", 0): ["a"]})) as consumer:
        wait_until(lambda: bool(consumer.poll(10)))
        offsets = {TopicPartition("t", 0): OffsetAndMetadata(5, "m", 2), TopicPartition("other", 3): 7}
        assert consumer.sink_offsets(offsets) == [
            {"topic": "other", "partition": 3, "committed_offset": 7},
            {
                "topic": "t",
                "topic_id": "id-of-t",
                "partition": 0,
                "committed_offset": 5,
                "committed_leader_epoch": 2,
                "committed_metadata": "m",
            },
        ]
        with pytest.raises(ValueError, match="must not be negative"):
            consumer.sink_offsets({TopicPartition("t", 0): -1})


def test_the_example_of_a_sink_commits_with_the_ids_of_topics(server: ScriptedCoordinator) -> None:
    spec = importlib.util.spec_from_file_location("billing", ROOT / "docs/examples/billing.py")
    assert spec is not None
    assert spec.loader is not None
    billing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(billing)
    connection = MagicMock()
    with consumer_of(server, "t", source=MemorySource({TopicPartition("t", 0): ["a"]})) as consumer:
        batch: dict[TopicPartition, list[Record[Any]]] = {}
        wait_until(lambda: bool(batch.update(consumer.poll(10)) or batch))
        billing.bill(connection, consumer, {tp: [Record("t", 0, 0, value=("mara", 5))] for tp in batch})
    statement, (group_id, _, _, ends) = connection.cursor().__enter__().execute.call_args.args
    assert statement == billing.COMMIT
    assert group_id == "billing"
    assert [(one["topic"], one["topic_id"], one["committed_offset"]) for one in ends.obj] == [("t", "id-of-t", 1)]
