"""DescribeShareGroupOffsets, AlterShareGroupOffsets and DeleteShareGroupOffsets over Kafka's protocol."""

from __future__ import annotations

from typing import Any

import pytest

from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from tests.support.wire import Wire, WireWith


async def described(wire: Wire, group: str = "mailing", version: int = 1, topics: Any = None) -> Any:
    """The answer about one group."""
    answer = await wire.ask("describe_share_group_offsets", version, groups=[{"group_id": group, "topics": topics}])
    (found,) = answer.groups
    return found


def starts(found: Any) -> dict[tuple[str, int], int]:
    """Start offsets by topic and partition."""
    return {(t.topic_name, p.partition_index): p.start_offset for t in found.topics for p in t.partitions}


async def alter(wire: Wire, start: int, group: str = "mailing", partition: int = 0, topic: str = "orders") -> Any:
    """The answer to an alteration of one partition."""
    partitions = [{"partition_index": partition, "start_offset": start}]
    topics = [{"topic_name": topic, "partitions": partitions}]
    return await wire.ask("alter_share_group_offsets", 0, group_id=group, topics=topics)


def only(answer: Any) -> int:
    """The error of the only partition of an alteration."""
    ((found,),) = [topic.partitions for topic in answer.responses]
    return int(found.error_code)


async def test_a_group_is_altered_described_and_forgotten(wire: Wire, topic: str) -> None:
    assert only(await alter(wire, 17)) == 0, "the group is created"
    found = await described(wire)
    assert (found.error_code, starts(found)["orders", 0]) == (0, 17)
    asked = [{"topic_name": "orders", "partitions": [0, 99]}, {"topic_name": "nothing", "partitions": [0]}]
    found = await described(wire, topics=asked)
    assert starts(found) == {("orders", 0): 17, ("orders", 99): -1, ("nothing", 0): -1}
    assert [p.error_code for t in found.topics for p in t.partitions] == [0, 0, 0]
    deleted = await wire.ask(
        "delete_share_group_offsets", 0, group_id="mailing",
        topics=[{"topic_name": "orders"}, {"topic_name": "nothing"}],
    )  # fmt: skip
    assert [one.error_code for one in deleted.responses] == [0, Error.UNKNOWN_TOPIC_OR_PARTITION.code]
    assert starts(await described(wire)) == {}


async def test_lag_comes_with_version_1(wire: Wire, topic: str) -> None:
    await alter(wire, 17)
    for version in (0, 1):
        (partition, *_) = (await described(wire, version=version)).topics[0].partitions
        assert partition.start_offset == 17
        assert hasattr(partition, "lag") == (version == 1)


async def test_an_unknown_group_has_nothing_and_cannot_be_forgotten(wire: Wire, topic: str) -> None:
    found = await described(wire, "nobody")
    assert (found.error_code, found.topics) == (0, ())
    deleted = await wire.ask("delete_share_group_offsets", 0, group_id="nobody", topics=[{"topic_name": "orders"}])
    assert deleted.error_code == Error.GROUP_ID_NOT_FOUND.code


@pytest.mark.parametrize(
    ("start", "partition", "topic_name", "error"),
    [
        (-1, 0, "orders", Error.INVALID_REQUEST),
        (10**18, 0, "orders", Error.INVALID_REQUEST),
        (5, 99, "orders", Error.UNKNOWN_TOPIC_OR_PARTITION),
        (5, 0, "nothing", Error.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
async def test_partitions_are_refused_by_themselves(
    wire: Wire, topic: str, start: int, partition: int, topic_name: str, error: Error
) -> None:
    assert only(await alter(wire, start, partition=partition, topic=topic_name)) == error.code
    assert starts(await described(wire)) == {}


async def test_a_group_with_members_is_not_changed(wire: Wire, runtime: Runtime, topic: str) -> None:
    await wire.ask(
        "share_group_heartbeat", 1, group_id="mailing", member_id="m", member_epoch=0,
        subscribed_topic_names=["orders"],
    )  # fmt: skip
    assert (await alter(wire, 3)).error_code == Error.NON_EMPTY_GROUP.code
    deleted = await wire.ask("delete_share_group_offsets", 0, group_id="mailing", topics=[{"topic_name": "orders"}])
    assert deleted.error_code == Error.NON_EMPTY_GROUP.code


async def test_rights_are_those_of_http(wire_with: WireWith, topic: str) -> None:
    reader = wire_with("describe:group:*")
    assert (await alter(reader, 3)).error_code == Error.GROUP_AUTHORIZATION_FAILED.code
    stranger = wire_with("describe:topic:*")
    assert (await described(stranger)).error_code == Error.GROUP_AUTHORIZATION_FAILED.code
    found = await described(reader, topics=[{"topic_name": "orders", "partitions": [0]}])
    assert found.topics[0].partitions[0].error_code == Error.TOPIC_AUTHORIZATION_FAILED.code
