"""What requests of share groups are answered: membership and administration. Part of `scenarios`.

Records are not played: here items have none (share.md 5). `DIFFERS` is why an answer that has an epoch is another one.
"""

from __future__ import annotations

from typing import Any

from kcoord.door.kafka.codec import Fields
from tests.differential.scenes import Scene, scenario

DIFFERS = "a partition needs no initialising, so that the first epoch is 1 and has partitions (share.md 2.3)"


async def beat(s: Scene, name: str = "a", epoch: int = 0, **given: Any) -> Fields:
    """ShareGroupHeartbeat; with epoch 0 all of what a member has to say."""
    s.ids.setdefault(name, f"{s.group}-{name}")
    body: dict[str, Any] = {"member_id": s.ids[name], "member_epoch": epoch}
    if epoch == 0:
        body["subscribed_topic_names"] = ["orders"]
    answer = await s.ask("share_group_heartbeat", 1, **{**body, **given})
    if not answer.error_code and answer.member_epoch > 0:
        s.generation = answer.member_epoch
    return answer


async def alter(s: Scene, start: int, partition: int = 0, topic: str = "orders") -> None:
    """AlterShareGroupOffsets of one partition."""
    partitions = [{"partition_index": partition, "start_offset": start}]
    await s.ask("alter_share_group_offsets", 0, topics=[{"topic_name": topic, "partitions": partitions}])


async def delete(s: Scene, topic: str = "orders") -> None:
    await s.ask("delete_share_group_offsets", 0, topics=[{"topic_name": topic}])


@scenario("share_group_heartbeat")
async def a_heartbeat_that_cannot_be(s: Scene) -> None:
    for given in (
        {"subscribed_topic_names": None},
        {"subscribed_topic_names": []},
        {"member_id": ""},
        {"member_id": "m" * 37},
        {"member_epoch": -2},
    ):
        await beat(s, **given)


@scenario("share_group_heartbeat")
async def a_heartbeat_in_a_group_that_does_not_exist(s: Scene) -> None:
    await beat(s, epoch=5)
    await beat(s, epoch=-1)


@scenario("share_group_heartbeat", differs=DIFFERS)
async def a_member_that_stays_and_leaves(s: Scene) -> None:
    await beat(s)
    await beat(s, epoch=s.generation)
    await beat(s, epoch=s.generation + 9)
    await beat(s, "stranger", epoch=5)
    await beat(s, "stranger", epoch=-1)
    await beat(s, epoch=-1)
    await beat(s, epoch=s.generation)


@scenario("share_group_heartbeat")
async def a_share_heartbeat_in_a_consumer_group(s: Scene) -> None:
    await s.beat()
    for epoch in (0, 1, -1):
        await beat(s, "b", epoch)


@scenario("share_group_heartbeat")
async def a_share_heartbeat_in_a_group_that_has_only_offsets(s: Scene) -> None:
    await s.commit(7)
    for epoch in (0, 1, -1):
        await beat(s, "b", epoch)


@scenario("share_group_describe")
async def a_description_of_no_share_group(s: Scene) -> None:
    await s.commit(7, group_id=s.other)
    await s.ask("share_group_describe", 1, group_ids=[s.group, s.other])


@scenario("alter_share_group_offsets")
async def a_start_that_is_altered(s: Scene) -> None:
    await alter(s, 0)
    await alter(s, 0, partition=99)
    await alter(s, 0, topic="no-such-topic")
    await s.ask("list_groups", 5, types_filter=["share"])


@scenario("share_group_describe", differs="there the epoch grows when a partition is initialised")
async def a_description_of_a_group_that_a_start_has_created(s: Scene) -> None:
    await alter(s, 0)
    await s.ask("share_group_describe", 1, group_ids=[s.group])


@scenario("alter_share_group_offsets", differs=DIFFERS)
async def a_start_that_is_altered_while_a_member_works(s: Scene) -> None:
    await beat(s)
    await alter(s, 0)
    await delete(s)
    await s.ask("delete_groups", 2, groups_names=[s.group])


@scenario("delete_share_group_offsets")
async def a_group_that_forgets(s: Scene) -> None:
    await delete(s)
    await alter(s, 0)
    await delete(s, "refunds")
    await delete(s)
    await delete(s)


@scenario("describe_share_group_offsets")
async def where_a_group_is_that_does_not_exist(s: Scene) -> None:
    for topics in (None, [{"topic_name": "orders", "partitions": [0]}]):
        await s.ask("describe_share_group_offsets", s.v, groups=[{"group_id": s.group, "topics": topics}])


@scenario("delete_groups")
async def a_share_group_is_deleted(s: Scene) -> None:
    await alter(s, 0)
    await s.ask("delete_groups", s.v, groups_names=[s.group])
    await s.ask("delete_groups", s.v, groups_names=[s.group])


@scenario("share_group_heartbeat", differs=DIFFERS)
async def other_protocols_in_a_share_group(s: Scene) -> None:
    await beat(s)
    await s.ask("join_group", 5, **s.joining("b"))
    await s.beat("c")
    await s.commit(7)
    await s.ask("describe_groups", 6, groups=[s.group])
    await s.ask("consumer_group_describe", 1, group_ids=[s.group])
    await s.ask("offset_delete", 0, topics=s.topics("offset_delete", {"orders": [0]}))
