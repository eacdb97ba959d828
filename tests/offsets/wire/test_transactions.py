"""Offsets in transactions as Kafka clients send them."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from kio.serial.errors import OutOfBoundValue

from groups.catalogue.topics import TopicService
from groups.core.model.group import partition_of
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from tests.offsets.wire.test_commits import fetch, topic_of
from tests.support.wire import BY_NAME, Wire, WireWith

ENDS = range(BY_NAME["end_txn"].versions[1] + 1)
WITH_IDS = 6
"""The first version of TxnOffsetCommit that names topics by id."""


async def begun(wire: Wire, version: int = 3, **changes: Any) -> dict[str, Any]:
    """The producer of a transactional id, as requests name it."""
    answer = await wire.ask("init_producer_id", version, transactional_id="tx", transaction_timeout=60_000, **changes)
    assert answer.error_code == 0
    return {"transactional_id": "tx", "producer_id": answer.producer_id, "producer_epoch": answer.producer_epoch}


async def pend(wire: Wire, producer: dict[str, Any], version: int, group: str = "g", **changes: Any) -> list[int]:
    """The error codes of an offset that becomes pending."""
    offset = changes.pop("offset", 7)
    partitions = [{"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}]
    topic_id = changes.pop("topic_id", None)
    topic = topic_of(version, WITH_IDS, topic_id)
    topics = [{**topic, "partitions": partitions}]
    answer = await wire.ask("txn_offset_commit", version, group_id=group, topics=topics, **producer, **changes)
    return [partition.error_code for topic in answer.topics for partition in topic.partitions]


@pytest.mark.parametrize("version", ENDS)
async def test_offsets_are_committed_with_their_transaction(wire: Wire, topic: str, version: int) -> None:
    producer = await begun(wire, version)
    assert (await wire.ask("add_offsets_to_txn", min(version, 4), group_id="g", **producer)).error_code == 0
    assert await pend(wire, producer, version) == [0]
    open_ = await fetch(wire, 9)
    assert open_.topics[0].partitions[0].committed_offset == -1
    answer = await wire.ask(
        "offset_fetch",
        9,
        require_stable=True,
        groups=[{"group_id": "g", "topics": [{"name": "orders", "partition_indexes": [0]}]}],
    )
    assert answer.groups[0].topics[0].partitions[0].error_code == 88
    assert (await wire.ask("end_txn", version, committed=True, **producer)).error_code == 0
    assert (await fetch(wire, 9)).topics[0].partitions[0].committed_offset == 7


@pytest.mark.parametrize("version", [5, 6])
async def test_a_commit_adds_its_group_to_the_transaction(
    wire: Wire, runtime: Runtime, topic: str, version: int
) -> None:
    """KIP-890: clients of these versions send no AddOffsetsToTxn."""
    producer = await begun(wire)
    topic_id = (await runtime.get(TopicService).get(topic)).topic_id
    assert await pend(wire, producer, version, topic_id=topic_id) == [0]
    assert (await fetch(wire, 9)).topics[0].partitions[0].committed_offset == -1
    assert (await wire.ask("end_txn", 4, committed=True, **producer)).error_code == 0
    assert (await fetch(wire, 9)).topics[0].partitions[0].committed_offset == 7


async def test_version_6_tells_what_is_wrong_with_topic_group_and_epoch(
    wire: Wire, runtime: Runtime, topic: str
) -> None:
    """KIP-1319; clients of versions before are told ILLEGAL_GENERATION. The codes are those of a broker of 4.4.0."""
    producer = await begun(wire)
    topic_id = uuid.UUID(str((await runtime.get(TopicService).get(topic)).topic_id))
    assert await pend(wire, producer, 6, topic_id=uuid.uuid4()) == [100]
    missing: dict[str, Any] = {"group": "missing", "topic_id": topic_id, "generation_id": 3, "member_id": "m"}
    assert await pend(wire, producer, 6, **missing) == [69]
    assert await pend(wire, producer, 5, **missing) == [22]
    joined = await wire.ask(
        "consumer_group_heartbeat",
        1,
        group_id="c",
        member_id="m",
        member_epoch=0,
        rebalance_timeout=30_000,
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    )
    stale: dict[str, Any] = {"group": "c", "topic_id": topic_id, "generation_id": 9, "member_id": "m"}
    assert await pend(wire, producer, 6, **stale) == [113]
    assert await pend(wire, producer, 5, **stale) == [22]
    assert await pend(wire, producer, 6, **{**stale, "generation_id": joined.member_epoch}) == [0]


async def test_an_aborted_transaction_leaves_nothing(wire: Wire, topic: str) -> None:
    producer = await begun(wire)
    await pend(wire, producer, 3)
    assert (await wire.ask("end_txn", 3, committed=False, **producer)).error_code == 0
    assert (await fetch(wire, 9)).topics[0].partitions[0].committed_offset == -1


async def test_the_producer_that_was_taken_over_is_refused(wire: Wire, topic: str) -> None:
    old = await begun(wire)
    new = await begun(wire)
    assert new["producer_epoch"] == old["producer_epoch"] + 1
    assert await pend(wire, old, 3) == [47]
    for version, code in ((1, 47), (2, 90)):
        assert (await wire.ask("add_offsets_to_txn", version, group_id="g", **old)).error_code == code
        assert (await wire.ask("end_txn", version, committed=True, **old)).error_code == code
    for version, code in ((3, 47), (4, 90)):
        again = await wire.ask("init_producer_id", version, transaction_timeout=1, **old)
        assert again.error_code == code, "it may not take over: it does not know that it was replaced (KIP-360)"
    assert (await begun(wire, 3, producer_id=new["producer_id"], producer_epoch=new["producer_epoch"]))[
        "producer_epoch"
    ] == new["producer_epoch"] + 1


async def ended(wire: Wire, producer: dict[str, Any], *, committed: bool = True, version: int = 5) -> tuple[int, int]:
    """The error of EndTxn, and how many epochs later the next transaction has."""
    answer = await wire.ask("end_txn", version, committed=committed, **producer)
    assert answer.error_code or answer.producer_id == producer["producer_id"]
    return answer.error_code, 0 if answer.error_code else answer.producer_epoch - producer["producer_epoch"]


def later(producer: dict[str, Any], epochs: int = 1) -> dict[str, Any]:
    return {**producer, "producer_epoch": producer["producer_epoch"] + epochs}


async def test_each_transaction_has_an_epoch_of_its_own(wire: Wire, topic: str) -> None:
    """offsets.md 4.5. The codes are those of a broker of 4.4.0."""
    producer = await begun(wire)
    assert await pend(wire, producer, 5) == [0]
    assert await ended(wire, producer) == (0, 1)
    assert await ended(wire, producer) == (0, 1), "it may be sent again: its answer was lost"
    assert (await fetch(wire, 9)).topics[0].partitions[0].committed_offset == 7
    assert await ended(wire, producer, committed=False) == (48, 0), "it was committed"
    assert await pend(wire, producer, 5) == [47], "late: it would become part of the next transaction"
    assert await pend(wire, later(producer), 5) == [0]
    assert await ended(wire, producer) == (90, 0), "the next transaction has begun"
    assert await ended(wire, later(producer, 2)) == (90, 0)
    assert await ended(wire, later(producer), committed=False) == (0, 1)
    assert await ended(wire, later(producer), committed=False) == (0, 1)
    assert await ended(wire, later(producer, 2), committed=False) == (0, 1), "nothing was pending"
    assert await ended(wire, later(producer), committed=False) == (90, 0)
    assert await ended(wire, {**producer, "transactional_id": "other"}) == (49, 0)


@pytest.mark.parametrize("version", [3, 4, 5])
async def test_an_epoch_that_ended_commits_nothing_after_the_answer(wire: Wire, topic: str, version: int) -> None:
    """Differs from Kafka: it accepts the commit until it has written the end marker (offsets.md 4.5)."""
    producer = await begun(wire)
    assert await pend(wire, producer, version) == [0]
    assert await ended(wire, producer) == (0, 1)
    assert await pend(wire, producer, version, offset=8) == [47]
    assert (await fetch(wire, 9)).topics[0].partitions[0].committed_offset == 7


@pytest.mark.parametrize("version", [3, 4])
async def test_a_commit_needs_no_add_offsets(wire: Wire, topic: str, version: int) -> None:
    """Differs from Kafka: INVALID_TXN_STATE there in version 3, TRANSACTION_ABORTABLE in 4; neither is in 5 and 6."""
    producer = await begun(wire)
    assert await pend(wire, producer, version) == [0]
    assert (await wire.ask("end_txn", 3, committed=True, **producer)).error_code == 0
    assert (await fetch(wire, 9)).topics[0].partitions[0].committed_offset == 7


async def test_a_producer_that_was_fenced_is_not_told_that_it_committed(wire: Wire, topic: str) -> None:
    producer = await begun(wire)
    assert await pend(wire, producer, 5) == [0]
    assert await ended(wire, producer) == (0, 1)
    assert await pend(wire, later(producer), 5) == [0]
    assert (await begun(wire))["producer_epoch"] == producer["producer_epoch"] + 2
    assert await ended(wire, later(producer)) == (90, 0)
    assert await ended(wire, producer) == (90, 0)


async def test_nothing_pending_is_committed_without_error(wire: Wire, topic: str) -> None:
    """Differs from Kafka: INVALID_TXN_STATE there; what was pending may be gone with its group here."""
    producer = await begun(wire)
    assert await ended(wire, producer) == (0, 1)


async def test_a_producer_whose_epochs_are_exhausted_goes_on_with_another_id(wire: Wire, topic: str) -> None:
    producer = {**await begun(wire), "producer_epoch": 32_767}
    assert await pend(wire, producer, 5) == [0]
    for _ in range(2):  # the second is sent again
        answer = await wire.ask("end_txn", 5, committed=True, **producer)
        assert (answer.error_code, answer.producer_epoch) == (0, 0)
        assert answer.producer_id != producer["producer_id"]
    assert (await fetch(wire, 9)).topics[0].partitions[0].committed_offset == 7


async def test_an_idempotent_producer_gets_an_id(wire: Wire) -> None:
    answers = [
        await wire.ask("init_producer_id", 4, transactional_id=None, transaction_timeout=60_000) for _ in range(2)
    ]
    assert [(answer.error_code, answer.producer_epoch) for answer in answers] == [(0, 0), (0, 0)]
    assert answers[0].producer_id != answers[1].producer_id


async def test_rights_and_bad_input(wire: Wire, wire_with: WireWith, topic: str) -> None:
    producer = await begun(wire)
    nobody = wire_with("read:group:g", "read:topic:*")
    refused = await nobody.ask("init_producer_id", 4, transactional_id="tx", transaction_timeout=1)
    assert (refused.error_code, refused.producer_id) == (53, -1)
    assert (await nobody.ask("add_offsets_to_txn", 3, group_id="g", **producer)).error_code == 53
    assert await pend(nobody, producer, 3) == [53]
    assert (await nobody.ask("end_txn", 3, committed=True, **producer)).error_code == 53
    no_group = wire_with("read:transactional-id:*", "read:topic:*")
    assert (await no_group.ask("add_offsets_to_txn", 3, group_id="g", **producer)).error_code == 30
    assert await pend(no_group, producer, 3) == [30]
    nameless = {**producer, "transactional_id": ""}
    assert (await wire.ask("end_txn", 3, committed=True, **nameless)).error_code == 42
    negative = {**producer, "producer_id": -5}
    assert await pend(wire, negative, 3) == [42]


async def listed(wire: Wire, version: int = 1, **changes: Any) -> dict[str, str]:
    """Transactional ids with their states."""
    request = {"state_filters": [], "producer_id_filters": [], **changes}
    answer = await wire.ask("list_transactions", version, **request)
    assert answer.error_code == 0
    return {each.transactional_id: each.transaction_state for each in answer.transaction_states}


async def test_transactions_are_listed_by_state_producer_and_age(wire: Wire, topic: str, clock: VirtualClock) -> None:
    assert await listed(wire) == {}
    producer = await begun(wire)
    assert await listed(wire, 0) == {"tx": "Empty"}
    await pend(wire, producer, 3)
    clock.advance(5_000)
    assert await listed(wire, 0) == await listed(wire, 1) == {"tx": "Ongoing"}
    assert await listed(wire, state_filters=["Empty", "CompleteAbort"]) == {}
    assert await listed(wire, producer_id_filters=[producer["producer_id"] + 1]) == {}
    assert await listed(wire, producer_id_filters=[producer["producer_id"]], state_filters=["Ongoing"]) == {
        "tx": "Ongoing"
    }
    assert await listed(wire, duration_filter=4_999) == {"tx": "Ongoing"}
    assert await listed(wire, duration_filter=5_000) == {}
    answer = await wire.ask("list_transactions", 1, state_filters=["Ongoing", "Resting"], producer_id_filters=[])
    assert answer.unknown_state_filters == ("Resting",)


async def test_a_transaction_is_described_with_the_partitions_of_its_groups(wire: Wire, topic: str) -> None:
    producer = await begun(wire)
    await pend(wire, producer, 3)
    await pend(wire, producer, 3, group="h")
    answer = await wire.ask("describe_transactions", 0, transactional_ids=["tx", "unknown"])
    found, unknown = answer.transaction_states
    assert (found.error_code, found.transaction_state) == (0, "Ongoing")
    assert (found.producer_id, found.producer_epoch) == (producer["producer_id"], producer["producer_epoch"])
    assert [(each.topic, each.partitions) for each in found.topics] == [
        ("__consumer_offsets", tuple(sorted({partition_of("g", 50), partition_of("h", 50)})))
    ]
    assert (unknown.error_code, unknown.transactional_id) == (105, "unknown")
    await wire.ask("end_txn", 3, committed=True, **producer)
    assert await listed(wire) == {"tx": "Empty"}
    with pytest.raises(OutOfBoundValue):  # it began at -1, as Kafka says; kio reads no such instant
        await wire.ask("describe_transactions", 0, transactional_ids=["tx"])


async def test_transactions_of_others_are_not_shown(wire: Wire, wire_with: WireWith, topic: str) -> None:
    await begun(wire)
    other = wire_with("read:group:g")
    assert await listed(other) == {}
    (found,) = (await other.ask("describe_transactions", 0, transactional_ids=["tx"])).transaction_states
    assert (found.error_code, found.producer_id) == (53, 0)
