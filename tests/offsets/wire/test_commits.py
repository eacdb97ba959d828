"""OffsetCommit, OffsetFetch and OffsetDelete as Kafka clients send them."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import pytest

from groups.topics import TopicService
from kcoord.process.runtime import Runtime
from offsets.api import handlers
from tests.support.api import Members
from tests.support.wire import BY_NAME, Wire, WireWith

COMMITS = range(BY_NAME["offset_commit"].versions[0], BY_NAME["offset_commit"].versions[1] + 1)
FETCHES = range(BY_NAME["offset_fetch"].versions[0], BY_NAME["offset_fetch"].versions[1] + 1)


def topic_of(version: int, first_with_ids: int, topic_id: uuid.UUID) -> dict[str, Any]:
    return {"topic_id": topic_id} if version >= first_with_ids else {"name": "orders"}


async def commit(wire: Wire, version: int = 9, group: str = "g", **changes: Any) -> list[int]:
    """The error codes of the partitions of a commit by nobody in particular, unless `changes` say more."""
    partitions = changes.pop("partitions", [{"partition_index": 0, "committed_offset": 7, "committed_metadata": "m"}])
    topic = changes.pop("topic", {"name": "orders"})
    request = {"group_id": group, "topics": [{**topic, "partitions": partitions}], "member_id": "", **changes}
    answer = await wire.ask("offset_commit", version, **request)
    return [partition.error_code for topic in answer.topics for partition in topic.partitions]


async def fetch(wire: Wire, version: int = 9, **changes: Any) -> Any:
    """The answer for one group, by whatever version."""
    topic_id = changes.pop("topic_id", None)
    topic = topic_of(version, 10, topic_id)
    asked = {"group_id": "g", "topics": [{**topic, "partition_indexes": [0, 1]}], **changes}
    if version < 8:
        return await wire.ask("offset_fetch", version, **asked)
    return (await wire.ask("offset_fetch", version, groups=[asked])).groups[0]


@pytest.mark.parametrize("version", COMMITS)
async def test_each_version_commits(wire: Wire, runtime: Runtime, topic: str, version: int) -> None:
    topic_id = (await runtime.get(TopicService).get(topic)).topic_id
    assert await commit(wire, version, topic=topic_of(version, 10, topic_id)) == [0]
    found = await fetch(wire, 9)
    assert [(p.committed_offset, p.metadata) for p in found.topics[0].partitions] == [(7, "m"), (-1, "")]


async def test_a_commit_that_is_refused_has_one_error(wire: Wire, topic: str) -> None:
    """Differs from Kafka: there a partition that does not exist has its own error, whatever the group's is."""
    asked = [{"partition_index": number, "committed_offset": 7, "committed_metadata": ""} for number in (0, 99)]
    member = {"member_id": "m", "generation_id_or_member_epoch": 3}
    assert await commit(wire, 9, group="missing", partitions=asked, **member) == [69, 69]


@pytest.mark.parametrize("version", FETCHES)
async def test_each_version_fetches(wire: Wire, runtime: Runtime, topic: str, version: int) -> None:
    topic_id = (await runtime.get(TopicService).get(topic)).topic_id
    await commit(wire)
    found = await fetch(wire, version, topic_id=topic_id)
    (shown,) = found.topics
    assert (shown.topic_id == topic_id) if version >= 10 else (shown.name == "orders")
    assert [(p.partition_index, p.committed_offset, p.error_code) for p in shown.partitions] == [(0, 7, 0), (1, -1, 0)]


@pytest.mark.parametrize("version", FETCHES[1:])
async def test_everything_is_fetched(wire: Wire, topic: str, version: int) -> None:
    await commit(wire)
    found = await fetch(wire, version, topics=None)
    assert [[p.committed_offset for p in topic.partitions] for topic in found.topics] == [[7]]


async def test_a_member_commits_in_its_generation_only(wire: Wire, members: Members, topic: str) -> None:
    joined = await members.stable()
    whose = {"member_id": joined["member_id"], "generation_id_or_member_epoch": joined["generation_id"]}
    assert await commit(wire, **whose) == [0]
    whose["generation_id_or_member_epoch"] += 1
    assert await commit(wire, **whose) == [22]
    assert await commit(wire, member_id="nobody", generation_id_or_member_epoch=1) == [25]


async def test_older_versions_get_errors_that_they_know(wire: Wire, topic: str) -> None:
    """Below version 9 nothing can be committed with an epoch (offsets.md 3.4 row 3)."""
    unknown = {"member_id": "m", "generation_id_or_member_epoch": 3}
    assert [await commit(wire, version, "nothing", **unknown) for version in (2, 8, 9)] == [[22], [22], [69]]
    joins = {
        "member_id": str(uuid.uuid4()),
        "member_epoch": 0,
        "topic_partitions": (),
        "subscribed_topic_names": [topic],
    }
    joined = await wire.ask("consumer_group_heartbeat", 1, group_id="c", rebalance_timeout=30_000, **joins)
    right = {"member_id": joined.member_id, "generation_id_or_member_epoch": joined.member_epoch}
    wrong = {**right, "generation_id_or_member_epoch": joined.member_epoch + 1}
    assert [await commit(wire, version, "c", **wrong) for version in (8, 9)] == [[35], [113]]
    assert [await commit(wire, version, "c", **right) for version in (8, 9)] == [[35], [0]]


@pytest.mark.parametrize("version", COMMITS[:-1])
async def test_no_task_waits_for_the_usual_commits(
    wire: Wire, members: Members, topic: str, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    joined = await members.stable()
    whose = {"member_id": joined["member_id"], "generation_id_or_member_epoch": joined["generation_id"]}
    await commit(wire, version, **whose)  # now the group is in memory
    partitions = [{"partition_index": n, "committed_offset": 9 + n, "committed_metadata": None} for n in (2, 0)]

    async def usual(*arguments: object) -> None:
        raise AssertionError("it was looked up")

    with monkeypatch.context() as patched:
        patched.setattr(handlers, "_commit", usual)
        assert await commit(wire, version, partitions=partitions, **whose) == [0, 0]
        whose["generation_id_or_member_epoch"] += 1
        assert await commit(wire, version, partitions=partitions, **whose) == [22, 22]
    found = await fetch(wire, 9)
    assert [p.committed_offset for p in found.topics[0].partitions] == [9, -1]


async def test_partitions_that_do_not_exist_and_retention(wire: Wire, topic: str) -> None:
    partitions = [{"partition_index": n, "committed_offset": 7, "committed_metadata": ""} for n in (0, 99, 0)]
    assert await commit(wire, partitions=partitions) == [0, 3, 0]
    assert await commit(wire, version=4, retention_time=1_000) == [0]
    assert await commit(wire, topic={"name": "nothing"}) == [3]


async def test_results_keep_the_order_of_the_request(wire: Wire, topic: str) -> None:
    numbers = [2, 9, 0]
    partitions = [{"partition_index": n, "committed_offset": n, "committed_metadata": None} for n in numbers]
    assert await commit(wire, partitions=partitions) == [0, 3, 0]


async def test_unknown_ids_are_told_per_topic(wire: Wire, topic: str) -> None:
    assert await commit(wire, 10, topic={"topic_id": uuid.uuid4()}) == [100]
    found = await fetch(wire, 10, topic_id=uuid.uuid4())
    assert [p.error_code for p in found.topics[0].partitions] == [100, 100]


async def test_rights_are_those_of_the_token(wire: Wire, wire_with: WireWith, topic: str) -> None:
    await commit(wire)
    nobody = wire_with()
    assert await commit(nobody) == [30]
    assert (await fetch(nobody, 9)).error_code == 30
    assert (await fetch(nobody, 2)).error_code == 30
    assert [p.error_code for p in (await fetch(nobody, 1)).topics[0].partitions] == [30, 30]
    member = wire_with("read:group:g")
    assert await commit(member) == [29]
    assert [p.error_code for p in (await fetch(member)).topics[0].partitions] == [29, 29]
    assert (await fetch(member, topics=None)).topics == ()


async def test_many_groups_fail_on_their_own(wire: Wire, wire_with: WireWith, topic: str) -> None:
    await commit(wire)
    limited = wire_with("describe:group:g", "describe:topic:*")
    answer = await limited.ask("offset_fetch", 8, groups=[{"group_id": "g"}, {"group_id": "h"}])
    assert [(group.group_id, group.error_code) for group in answer.groups] == [("g", 0), ("h", 30)]


async def test_offsets_are_deleted(wire: Wire, wire_with: WireWith, api: httpx.AsyncClient, topic: str) -> None:
    await commit(wire)
    asked = {"group_id": "g", "topics": [{"name": topic, "partitions": [{"partition_index": n} for n in (0, 9)]}]}
    assert (await wire_with("read:group:g").ask("offset_delete", 0, **asked)).error_code == 30
    answer = await wire.ask("offset_delete", 0, **asked)
    assert [p.error_code for p in answer.topics[0].partitions] == [0, 3]
    found = await fetch(wire)
    assert [p.committed_offset for p in found.topics[0].partitions] == [-1, -1]
    missing = await wire.ask("offset_delete", 0, group_id="missing", topics=[])
    assert (missing.error_code, missing.topics) == (69, ())
