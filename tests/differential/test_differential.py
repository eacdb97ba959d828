"""Random sequences to a broker and to the gateway, and what makes, compares and shrinks them."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Sequence

import pytest

from tests.bench.kafka import broker
from tests.differential.rules import canonical, compared, kind_of
from tests.differential.running import shrunk
from tests.differential.sequences import Step, sequence
from tests.support.database import cloned_database

BEAT = Step("beat", {"slot": 0})


def test_a_seed_says_all_of_a_sequence() -> None:
    assert sequence(7, 20) == sequence(7, 20)
    assert len(sequence(7, 20)) == 20
    kinds = {step.kind for seed in range(30) for step in sequence(seed, 20)}
    assert kinds >= {"join", "beat", "rebalance", "commit", "fetch", "transaction", "leave", "delete_group"}


def test_names_and_orders_of_each_side_are_made_the_same() -> None:
    topic_id = uuid.uuid4()
    answer = {"throttle_time": 5, "topics": [{"topic_id": topic_id}, {"topic_id": None}], "member_id": "x-1"}
    assert canonical(answer, {topic_id: "orders", "x-1": "m0"}) == {
        "topics": [{"topic_id": "orders"}, {"topic_id": None}],
        "member_id": "m0",
    }


def test_epochs_may_begin_later_but_stay_as_far_apart() -> None:
    steps = [BEAT, BEAT, BEAT]
    ours = [{"member_epoch": epoch} for epoch in (1, 2, 2)]
    assert compared(steps, ours, [{"member_epoch": epoch} for epoch in (2, 3, 3)]) == []
    (found,) = compared(steps, ours, [{"member_epoch": epoch} for epoch in (2, 3, 4)])
    assert kind_of(found) == "beat.member_epoch: 2 / 4"


def test_only_what_is_meant_is_left_out() -> None:
    transaction = Step("transaction", {})
    ours, theirs = [[{}, {}, {"error_code": 0, "producer_epoch": 1}]], [[{}, {}, {"error_code": 48}]]
    assert compared([transaction], ours, theirs) == []
    assert compared([BEAT], ours, theirs)
    assert compared([transaction], theirs, ours)


async def test_a_difference_is_shrunk_to_what_it_needs() -> None:
    steps = [Step("describe", {"version": version}) for version in range(16)]

    async def differ(given: Sequence[Step]) -> list[str]:
        versions = [step.given["version"] for step in given]
        return ["differs"] if {3, 11} <= set(versions) else []

    fewest, differences = await shrunk(steps, differ)
    assert [step.given["version"] for step in fewest] == [3, 11]
    assert differences == ["differs"]


@pytest.mark.processes
@pytest.mark.whole("scenarios and random sequences beside a broker; needs Java and the jars of Kafka")
def test_scenarios_and_sequences_are_answered_alike(postgres: str) -> None:
    from tests.differential.scenes import recorded
    from tests.differential.sides import played_and_compared

    if shutil.which("java") is None:
        pytest.skip("no java on the path")
    if not any(broker.CACHE.glob("kafka_2.13-*.jar")) and shutil.which("mvn") is None:
        pytest.skip("no mvn on the path to download Kafka's jars with")
    said: list[str] = []
    with cloned_database(postgres) as conninfo:
        compared, report = played_and_compared(broker.DOWNLOAD, conninfo, range(1, 41), 20, said.append)
    assert compared.unequal == {}
    assert compared.broker == recorded()
    assert report.sequences == 40
    assert not report.found, "\n".join(said)
