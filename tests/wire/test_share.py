"""Share groups over the wire: the heartbeat, the description, and what there is not."""

from __future__ import annotations

from kcoord.protocol.errors import Error
from tests.wire.client import WireClient

MINE = {"group_id": "s", "member_id": "worker-1"}


async def test_a_member_joins_stays_and_leaves(wire: WireClient, topic: str) -> None:
    joined = await wire.ask("share_group_heartbeat", 1, **MINE, member_epoch=0, subscribed_topic_names=[topic])
    assert (joined.error_code, joined.member_id, joined.member_epoch) == (0, "worker-1", 1)
    (entry,) = joined.assignment.topic_partitions
    assert sorted(entry.partitions) == [0, 1, 2]
    steady = await wire.ask("share_group_heartbeat", 1, **MINE, member_epoch=1)
    assert (steady.member_epoch, steady.assignment, steady.heartbeat_interval) == (1, None, 5_000)
    left = await wire.ask("share_group_heartbeat", 1, **MINE, member_epoch=-1)
    assert (left.error_code, left.member_epoch, left.heartbeat_interval) == (0, -1, 0)
    again = await wire.ask("share_group_heartbeat", 1, **MINE, member_epoch=1)
    assert (again.error_code, again.member_id, again.heartbeat_interval) == (Error.UNKNOWN_MEMBER_ID.code, None, 0)
    assert again.error_message


async def test_it_is_described_and_listed(wire: WireClient, topic: str) -> None:
    fields = {**MINE, "member_epoch": 0, "subscribed_topic_names": [topic], "rack_id": "r1"}
    await wire.ask("share_group_heartbeat", 1, **fields)
    asked = {"group_ids": ["s", "nobody"], "include_authorized_operations": True}
    group, missing = (await wire.ask("share_group_describe", 1, **asked)).groups
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 1, 1)
    assert group.assignor_name == "simple"
    assert group.authorized_operations > 0
    (member,) = group.members
    assert (member.member_id, member.rack_id, member.member_epoch) == ("worker-1", "r1", 1)
    assert (member.client_id, member.client_host, member.subscribed_topic_names) == ("t", "/127.0.0.1", [topic])
    (entry,) = member.assignment.topic_partitions
    assert (entry.topic_name, sorted(entry.partitions)) == (topic, [0, 1, 2])
    assert missing.error_code == Error.GROUP_ID_NOT_FOUND.code
    (line,) = (await wire.ask("list_groups", 5, types_filter=["share"])).groups
    assert (line.group_id, line.group_type, line.protocol_type, line.group_state) == ("s", "share", "share", "Stable")
    (dead,) = (await wire.ask("describe_groups", 6, groups=["s"])).groups
    assert (dead.error_code, dead.group_state) == (Error.GROUP_ID_NOT_FOUND.code, "Dead")
    (other,) = (await wire.ask("consumer_group_describe", 1, group_ids=["s"])).groups
    assert other.error_code == Error.GROUP_ID_NOT_FOUND.code


async def test_what_only_brokers_ask_for_is_not_offered(wire: WireClient) -> None:
    served = await wire.ask("api_versions", 4, client_software_name="t", client_software_version="1")
    keys = {entry.api_key for entry in served.api_keys}
    assert {76, 77, 78, 79, 90, 91, 92} <= keys
    assert not keys & {83, 84, 85, 86, 87}
    assert {"share.version": (1, 1)}.items() <= {
        feature.name: (feature.min_version, feature.max_version) for feature in served.supported_features
    }.items()
