"""What tools ask for: brokers, topics, coordinators, lists and descriptions of groups, deletion."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from groups.engine.service import GroupService
from kcoord.access.tokens import create_token, parse_rule
from kcoord.database.clock import VirtualClock
from kcoord.door.kafka.gateway import Gateway
from tests.wire.client import WireClient
from tests.wire.conftest import Connect
from tests.wire.support import joined, sync_fields


@pytest.fixture
async def limited(connect: Connect) -> WireClient:
    """A connection whose token may describe the group g and the topic orders."""
    rules = [parse_rule("describe:group:g"), parse_rule("describe:topic:orders")]
    return await connect((await asyncio.to_thread(create_token, "limited", rules)).secret)


@pytest.mark.parametrize("version", range(13))
async def test_every_version_of_metadata(wire: WireClient, gateway: Gateway, topic: str, version: int) -> None:
    answer = await wire.ask("metadata", version, topics=[{"name": topic}, {"name": "nothing"}])
    assert [(b.node_id, b.host, b.port) for b in answer.brokers] == [(1, "127.0.0.1", gateway.port)]
    found, missing = answer.topics
    assert (found.error_code, found.name) == (0, "orders")
    assert [(p.partition_index, p.leader_id) for p in found.partitions] == [(0, 1), (1, 1), (2, 1)]
    assert (missing.error_code, missing.name) == (3, "nothing")
    every = await wire.ask("metadata", version, topics=None if version else [])
    assert [entry.name for entry in every.topics] == ["orders"]
    if version:
        assert (await wire.ask("metadata", version, topics=[])).topics == []


async def test_metadata_by_topic_id(wire: WireClient, topic: str) -> None:
    (by_name,) = (await wire.ask("metadata", 12, topics=[{"name": topic}])).topics
    wanted = [{"topic_id": by_name.topic_id, "name": None}, {"topic_id": uuid.uuid4(), "name": None}]
    found, missing = (await wire.ask("metadata", 12, topics=wanted)).topics
    assert found == by_name
    assert (missing.error_code, missing.name) == (100, None)


async def test_a_name_beside_a_topic_id_is_no_name(wire: WireClient, topic: str) -> None:
    (by_name,) = (await wire.ask("metadata", 12, topics=[{"name": topic}])).topics
    wanted = [{"topic_id": by_name.topic_id, "name": ""}, {"topic_id": None, "name": "another"}]
    assert (await wire.ask("metadata", 12, topics=wanted)).topics == [by_name]


@pytest.mark.parametrize("version", [10, 11])
async def test_older_versions_of_metadata_refuse_topic_ids(wire: WireClient, topic: str, version: int) -> None:
    topic_id = uuid.uuid4()
    for wanted in ({"topic_id": topic_id, "name": None}, {"topic_id": topic_id, "name": topic}, {"name": None}):
        (refused,) = (await wire.ask("metadata", version, topics=[wanted])).topics
        assert (refused.error_code, refused.name, refused.topic_id) == (
            42,
            wanted["name"] or "",
            wanted.get("topic_id"),
        )


def bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


NOT_ASKED = -(2**31)
GROUP_OPERATIONS, TOPIC_OPERATIONS, CLUSTER_OPERATIONS = bits(3, 6, 8, 10, 11), bits(3, 5, 6, 7, 8, 10), bits(8, 10)


@pytest.mark.parametrize("flag", [True, False])
async def test_operations_are_described_where_asked_for(
    wire: WireClient, limited: WireClient, topic: str, service: GroupService, clock: VirtualClock, flag: bool
) -> None:
    """As the rules of the token have it; KIP-430."""
    await joined(wire, service, clock)
    beat = {"member_id": str(uuid.uuid4()), "member_epoch": 0, "rebalance_timeout": 30_000, "topic_partitions": []}
    await wire.ask("consumer_group_heartbeat", 1, group_id="new", subscribed_topic_names=[topic], **beat)
    for client, of_group, of_topic, of_cluster in (
        (wire, GROUP_OPERATIONS, TOPIC_OPERATIONS, CLUSTER_OPERATIONS),
        (limited, bits(8, 10), bits(8, 10), 0),
    ):
        named = {"topics": [{"name": topic}, {"name": "nothing"}], "include_topic_authorized_operations": flag}
        both = {**named, "include_cluster_authorized_operations": flag}
        metadata = await client.ask("metadata", 8, **both)
        found = [entry.topic_authorized_operations for entry in metadata.topics]
        assert found == [of_topic if flag else NOT_ASKED, NOT_ASKED]
        assert metadata.cluster_authorized_operations == (of_cluster if flag else NOT_ASKED)
        cluster = await client.ask("describe_cluster", 1, include_cluster_authorized_operations=flag)
        assert cluster.cluster_authorized_operations == (of_cluster if flag else NOT_ASKED)
        asked = {"include_authorized_operations": flag}
        (group,) = (await client.ask("describe_groups", 6, groups=["g"], **asked)).groups
        assert group.authorized_operations == (of_group if flag else NOT_ASKED)
        (other,) = (await client.ask("consumer_group_describe", 1, group_ids=["new"], **asked)).groups
        assert other.authorized_operations == (of_group if flag and other.error_code == 0 else NOT_ASKED)
        (paged,) = (await client.ask("describe_topic_partitions", 0, topics=[{"name": topic}])).topics
        assert paged.topic_authorized_operations == of_topic  # which has no flag


async def test_what_consumer_groups_leave_empty(wire: WireClient, topic: str) -> None:
    """A refused heartbeat names no member, and a member without a regular expression has an empty one."""
    member_id = str(uuid.uuid4())
    beat = {"group_id": "new", "member_id": member_id, "rebalance_timeout": 30_000, "subscribed_topic_names": [topic]}
    await wire.ask("consumer_group_heartbeat", 1, member_epoch=0, topic_partitions=[], **beat)
    refused = await wire.ask("consumer_group_heartbeat", 1, **{**beat, "member_id": "unknown"}, member_epoch=5)
    assert (refused.error_code, refused.member_id) == (25, None)
    (group,) = (await wire.ask("consumer_group_describe", 1, group_ids=["new"])).groups
    assert [member.subscribed_topic_regex for member in group.members] == [""]


async def test_topics_that_may_not_be_described(limited: WireClient, topic: str, topics: object) -> None:
    await topics.create("secret", 1)  # type: ignore[attr-defined]
    assert [entry.name for entry in (await limited.ask("metadata", 12, topics=None)).topics] == ["orders"]
    (refused, invalid) = (await limited.ask("metadata", 12, topics=[{"name": "secret"}, {"name": "a/b"}])).topics
    assert (refused.error_code, invalid.error_code) == (29, 17)


@pytest.mark.parametrize("version", range(2))
async def test_the_cluster(wire: WireClient, gateway: Gateway, version: int) -> None:
    answer = await wire.ask("describe_cluster", version)
    assert (answer.error_code, answer.controller_id) == (0, 1)
    assert [(b.broker_id, b.port) for b in answer.brokers] == [(1, gateway.port)]


@pytest.mark.parametrize("version", range(5))
async def test_every_version_of_find_coordinator(wire: WireClient, gateway: Gateway, version: int) -> None:
    for kind in (0, 1) if version else (0,):
        answer = await wire.ask("find_coordinator", version, key="g", key_type=kind, coordinator_keys=["g"])
        found = answer.coordinators[0] if version >= 4 else answer
        assert (found.error_code, found.node_id, found.port) == (0, 1, gateway.port)
    if version:
        answer = await wire.ask("find_coordinator", version, key="g", key_type=2, coordinator_keys=["g"])
        assert (answer.coordinators[0] if version >= 4 else answer).error_code == 42


async def test_a_coordinator_that_may_not_be_asked_for(limited: WireClient) -> None:
    answer = await limited.ask("find_coordinator", 4, key_type=0, coordinator_keys=["g", "h"])
    assert [entry.error_code for entry in answer.coordinators] == [0, 30]
    answer = await limited.ask("find_coordinator", 4, key_type=1, coordinator_keys=["tx"])
    assert [entry.error_code for entry in answer.coordinators] == [53]


async def stable(wire: WireClient, service: GroupService, clock: VirtualClock) -> str:
    answer = await joined(wire, service, clock)
    synced = await wire.ask("sync_group", 5, **sync_fields(answer, {answer.member_id: b"mine"}))
    assert synced.error_code == 0
    return str(answer.member_id)


@pytest.mark.parametrize("version", range(6))
async def test_every_version_of_list_groups(
    wire: WireClient, service: GroupService, clock: VirtualClock, version: int
) -> None:
    await stable(wire, service, clock)
    (group,) = (await wire.ask("list_groups", version)).groups
    assert (group.group_id, group.protocol_type) == ("g", "consumer")
    assert group.get("group_state", "Stable") == "Stable"
    assert group.get("group_type", "classic") == "classic"
    if version >= 4:
        assert (await wire.ask("list_groups", version, states_filter=["Empty"])).groups == []


@pytest.mark.parametrize("version", range(7))
async def test_every_version_of_describe_groups(
    wire: WireClient, service: GroupService, clock: VirtualClock, version: int
) -> None:
    member_id = await stable(wire, service, clock)
    group, missing = (await wire.ask("describe_groups", version, groups=["g", "h"])).groups
    assert (group.error_code, group.group_state, group.protocol_data) == (0, "Stable", "range")
    (member,) = group.members
    assert (member.member_id, member.client_id, member.client_host) == (member_id, "t", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (b"\x00\x01", b"mine")
    assert (missing.error_code, missing.group_state) == (69 if version >= 6 else 0, "Dead")


@pytest.mark.parametrize("version", range(4))
async def test_every_version_of_delete_groups(
    wire: WireClient, service: GroupService, clock: VirtualClock, version: int
) -> None:
    member_id = await stable(wire, service, clock)
    refused = await wire.ask("delete_groups", version, groups_names=["g", "h"])
    assert {entry.group_id: entry.error_code for entry in refused.results} == {"g": 68, "h": 69}
    if version >= 3:
        assert ["there is no group 'h'" in entry.error_message for entry in refused.results] == [False, True]
    await wire.ask("leave_group", 5, group_id="g", members=[{"member_id": member_id}])
    deleted = await wire.ask("delete_groups", version, groups_names=["g"])
    assert [(entry.error_code, entry.get("error_message")) for entry in deleted.results] == [(0, None)]


async def test_a_caller_sees_and_deletes_what_its_token_allows(
    wire: WireClient, limited: WireClient, service: GroupService, clock: VirtualClock
) -> None:
    await stable(wire, service, clock)
    assert [entry.group_id for entry in (await limited.ask("list_groups", 5)).groups] == ["g"]
    described = await limited.ask("describe_groups", 5, groups=["g", "h"])
    assert [entry.error_code for entry in described.groups] == [0, 30]
    deleted = await limited.ask("delete_groups", 2, groups_names=["g"])
    assert [entry.error_code for entry in deleted.results] == [30]
    described = await limited.ask("consumer_group_describe", 1, group_ids=["h"])
    assert [entry.error_code for entry in described.groups] == [30]


@pytest.mark.parametrize("version", range(2))
async def test_every_version_of_the_consumer_protocol(wire: WireClient, topic: str, version: int) -> None:
    first = await wire.ask(
        "consumer_group_heartbeat",
        version,
        group_id="c",
        member_id=str(uuid.uuid4()) if version else "",
        member_epoch=0,
        rebalance_timeout=30_000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )
    assert first.error_code == 0, first
    (entry,) = first.assignment.topic_partitions
    assert entry.partitions == [0, 1, 2]
    (by_name,) = (await wire.ask("metadata", 12, topics=[{"name": topic}])).topics
    assert entry.topic_id == by_name.topic_id
    beat = {"group_id": "c", "member_id": first.member_id, "member_epoch": first.member_epoch}
    owned = [{"topic_id": entry.topic_id, "partitions": [0, 1, 2]}]
    again = await wire.ask("consumer_group_heartbeat", version, topic_partitions=owned, **beat)
    assert (again.error_code, again.assignment) == (0, None)
    fenced = await wire.ask("consumer_group_heartbeat", version, **{**beat, "member_epoch": 9})
    assert fenced.error_code == 110
    group, missing = (await wire.ask("consumer_group_describe", version, group_ids=["c", "d"])).groups
    assert (group.error_code, group.group_state, group.assignor_name) == (0, "Stable", "uniform")
    (member,) = group.members
    assert (member.member_id, member.client_host) == (first.member_id, "/127.0.0.1")
    assert member.assignment.topic_partitions[0].partitions == [0, 1, 2]
    assert missing.error_code == 69
    left = await wire.ask("consumer_group_heartbeat", version, **{**beat, "member_epoch": -1})
    assert (left.error_code, left.member_epoch) == (0, -1)
