"""Topics and settings as Kafka's admin clients ask for them."""

from __future__ import annotations

from typing import Any

import pytest

from groups.configs import GroupConfigs
from groups.topics import TopicService
from kcoord.process.runtime import Runtime
from tests.support.wire import BY_NAME, Wire, WireWith

CREATES = range(BY_NAME["create_topics"].versions[0], BY_NAME["create_topics"].versions[1] + 1)
GROUP, TOPIC, BROKER = 32, 2, 4
SESSION = "consumer.session.timeout.ms"
OF_GROUP = 8
"""Source of a setting that a group overrides."""


def new(name: str = "orders", **changes: Any) -> dict[str, Any]:
    return {"name": name, "num_partitions": 3, "replication_factor": 1, **changes}


async def created(wire: Wire, *topics: dict[str, Any], version: int = 7, **changes: Any) -> list[int]:
    answer = await wire.ask("create_topics", version, topics=list(topics), **changes)
    return [topic.error_code for topic in answer.topics]


@pytest.mark.parametrize("version", CREATES)
async def test_each_version_creates_topics(wire: Wire, topics: TopicService, version: int) -> None:
    answer = await wire.ask("create_topics", version, topics=[new()])
    (shown,) = answer.topics
    found = await topics.get("orders")
    assert (shown.name, shown.error_code, found.partitions) == ("orders", 0, 3)
    if version >= 7:
        assert (shown.topic_id, shown.num_partitions) == (found.topic_id, 3)


async def test_topics_that_cannot_be_created(wire: Wire, wire_with: WireWith, topics: TopicService) -> None:
    assert await created(wire, new("a"), new("b/"), new("c"), new("c"), new("d", num_partitions=0)) == [
        0,
        17,
        42,
        42,
        37,
    ]
    assert await created(wire, new("a")) == [36]
    assert await created(wire, new("a"), validate_only=True) == [36]
    assert await created(wire, new("e"), validate_only=True) == [0]
    assert await created(wire_with("describe:topic:*"), new("e")) == [29]
    assert "e" not in (await topics.current()).by_name


@pytest.mark.parametrize("version", CREATES)
async def test_settings_of_a_new_topic_are_not_kept(wire: Wire, topics: TopicService, version: int) -> None:
    """Differs from Kafka: they are accepted, since consoles send some with every topic that they create."""
    given = [{"name": "cleanup.policy", "value": "delete"}, {"name": "retention.ms", "value": "1"}]
    answer = await wire.ask("create_topics", version, topics=[new(configs=given)])
    (shown,) = answer.topics
    assert (shown.error_code, (await topics.get("orders")).partitions) == (0, 3)
    if version >= 5:
        assert shown.configs == ()
    resources = [{"resource_type": TOPIC, "resource_name": "orders", "configuration_keys": None}]
    (described,) = (await wire.ask("describe_configs", 4, resources=resources)).results
    assert (described.error_code, described.configs) == (0, ())


async def test_the_number_of_partitions_may_be_left_out(wire: Wire, topics: TopicService) -> None:
    assignments = [{"partition_index": n, "broker_ids": [1]} for n in range(2)]
    await created(wire, new("a", num_partitions=-1), new("b", num_partitions=-1, assignments=assignments))
    assert ((await topics.get("a")).partitions, (await topics.get("b")).partitions) == (1, 2)


@pytest.mark.parametrize("version", range(1, 7))
async def test_each_version_deletes_topics(wire: Wire, topics: TopicService, topic: str, version: int) -> None:
    asked = {"topic_names": [topic]} if version < 6 else {"topics": [{"name": topic}]}
    answer = await wire.ask("delete_topics", version, **asked)
    assert [found.error_code for found in answer.responses] == [0]
    assert topic not in (await topics.current()).by_name
    assert [found.error_code for found in (await wire.ask("delete_topics", version, **asked)).responses] == [3]


async def test_topics_are_deleted_by_id(wire: Wire, wire_with: WireWith, topics: TopicService, topic: str) -> None:
    by_id = {"topics": [{"topic_id": (await topics.get(topic)).topic_id}]}
    for rules, error in (((), 100), (("describe:topic:*",), 29)):
        answer = await wire_with(*rules).ask("delete_topics", 6, **by_id)
        assert answer.responses[0].error_code == error
    (found,) = (await wire.ask("delete_topics", 6, **by_id)).responses
    assert (found.error_code, found.name) == (0, topic)
    assert (await wire.ask("delete_topics", 6, **by_id)).responses[0].error_code == 100


async def test_partitions_are_added(wire: Wire, topics: TopicService, topic: str) -> None:
    async def raised(count: int, **changes: Any) -> int:
        asked = {"topics": [{"name": topic, "count": count}], "validate_only": False, **changes}
        return int((await wire.ask("create_partitions", 3, **asked)).results[0].error_code)

    assert await raised(5, validate_only=True) == 0
    assert (await topics.get(topic)).partitions == 3
    assert (await raised(5), (await topics.get(topic)).partitions) == (0, 5)
    assert (await raised(5), await raised(4, validate_only=True)) == (37, 37)


@pytest.mark.parametrize("version", range(1, 5))
async def test_each_version_describes_settings(wire: Wire, topic: str, version: int) -> None:
    """Differs from Kafka: a topic or broker has no settings."""
    resources = [
        {"resource_type": GROUP, "resource_name": "g", "configuration_keys": None},
        {"resource_type": GROUP, "resource_name": "g", "configuration_keys": [SESSION]},
        {"resource_type": TOPIC, "resource_name": topic, "configuration_keys": None},
        {"resource_type": TOPIC, "resource_name": "missing", "configuration_keys": None},
        {"resource_type": BROKER, "resource_name": "1", "configuration_keys": None},
    ]
    answer = await wire.ask("describe_configs", version, resources=resources, include_synonyms=True)
    assert [found.error_code for found in answer.results] == [0, 0, 0, 3, 0]
    every, one, *others = answer.results
    assert SESSION in {config.name for config in every.configs}
    (config,) = one.configs
    assert (config.value, config.config_source, config.read_only) == ("45000", 5, False)
    assert [(synonym.value, synonym.source) for synonym in config.synonyms] == [("45000", 5)]
    assert [found.configs for found in others] == [(), (), ()]


async def altered(wire: Wire, *configs: dict[str, Any], kind: int = GROUP, name: str = "g", **changes: Any) -> int:
    resource = {"resource_type": kind, "resource_name": name, "configs": list(configs)}
    asked = {"resources": [resource], "validate_only": False, **changes}
    return int((await wire.ask("incremental_alter_configs", 1, **asked)).responses[0].error_code)


async def test_settings_of_a_group_are_changed(wire: Wire, wire_with: WireWith, runtime: Runtime, topic: str) -> None:
    def change(value: str | None, operation: int = 0, name: str = SESSION) -> dict[str, Any]:
        return {"name": name, "config_operation": operation, "value": value}

    async def value() -> object:
        return (await runtime.get(GroupConfigs).resolved("g"))[SESSION]

    assert (await altered(wire, change("50000"), validate_only=True), await value()) == (0, 45_000)
    assert (await altered(wire, change("50000")), await value()) == (0, 50_000)
    assert (await altered(wire, change(None, operation=1)), await value()) == (0, 45_000)
    assert await altered(wire, change("soon")) == 40
    assert await altered(wire, change("1", name="retention.ms")) == 40
    assert await altered(wire, change("1", operation=2)) == 40
    assert await altered(wire, change("50000"), change("50001")) == 42
    assert await altered(wire, change(None)) == 42
    assert await altered(wire_with("read:group:g"), change("50000")) == 30
    assert await altered(wire, change("1", name="retention.ms"), kind=TOPIC, name=topic) == 40
    assert await altered(wire_with(), change("1"), kind=TOPIC, name=topic) == 29
    assert await altered(wire, change("1"), kind=BROKER, name="1") == 40
    assert await altered(wire_with(), change("1"), kind=BROKER, name="1") == 31
    assert await altered(wire, change("1"), kind=99) == 42
    assert await value() == 45_000


async def described(wire: Wire, group: str = "g") -> dict[str, Any]:
    """The settings of a group by name."""
    resources = [{"resource_type": GROUP, "resource_name": group, "configuration_keys": None}]
    (found,) = (await wire.ask("describe_configs", 4, resources=resources, include_synonyms=True)).results
    return {config.name: config for config in found.configs}


def synonyms(config: Any) -> list[tuple[str, str, int]]:
    return [(one.name, one.value, one.source) for one in config.synonyms]


async def test_settings_of_groups_that_are_not_served_are_kept(wire: Wire, topic: str) -> None:
    """As a broker of 4.4 lists and accepts them, which was asked, beside those of share groups that count.

    Differs from Kafka: they are without effect.
    """

    def change(name: str, value: str | None, operation: int = 0) -> dict[str, Any]:
        return {"name": name, "config_operation": operation, "value": value}

    lock, kept = "share.record.lock.duration.ms", "share.renew.acknowledge.enable"
    before = await described(wire)
    assert (before[lock].value, before[lock].config_type) == ("30000", 3)
    assert synonyms(before[lock]) == [(f"group.{lock}", "30000", 5)]
    assert before["share.renew.acknowledge.enable"].config_type == 1
    assert synonyms(before["streams.assignor.name"]) == [("group.streams.assignors", "sticky", 5)]
    for name, values in {
        lock: ["14999", "60001", "long", ""],
        "share.delivery.count.limit": ["1", "11"],
        "share.isolation.level": ["READ_COMMITTED"],
        "share.auto.offset.reset": ["LATEST", "by_duration:PT1H"],
        "share.renew.acknowledge.enable": ["maybe"],
        "streams.assignor.name": ["x"],
    }.items():
        for value in values:
            assert await altered(wire, change(name, value)) == 40, (name, value)
    assert await described(wire) == before
    assert await altered(wire, change(lock, " 20000 "), change(kept, "FALSE")) == 0
    after = await described(wire)
    assert synonyms(after[lock]) == [(lock, "20000", 8), (f"group.{lock}", "30000", 5)]
    assert after[kept].value == "false"
    assert await altered(wire, change(lock, None, operation=1)) == 0
    assert (await described(wire))[lock] == before[lock]


@pytest.mark.parametrize("version", range(3))
async def test_altering_in_whole_leaves_no_other_override(wire: Wire, topic: str, version: int) -> None:
    async def whole(**settings: str) -> int:
        configs = [{"name": name.replace("_", "."), "value": value} for name, value in settings.items()]
        resources = [{"resource_type": GROUP, "resource_name": "g", "configs": configs}]
        answer = await wire.ask("alter_configs", version, resources=resources, validate_only=False)
        return int(answer.responses[0].error_code)

    async def overridden() -> dict[str, str]:
        return {name: one.value for name, one in (await described(wire)).items() if one.config_source == OF_GROUP}

    assert await whole(share_session_timeout_ms="50000", consumer_session_timeout_ms="50000") == 0
    assert await overridden() == {"share.session.timeout.ms": "50000", SESSION: "50000"}
    assert await whole(consumer_session_timeout_ms="51000") == 0
    assert await overridden() == {SESSION: "51000"}
    assert await whole(consumer_session_timeout_ms="soon") == 40
    assert await overridden() == {SESSION: "51000"}
    assert await whole() == 0
    assert await overridden() == {}


async def test_what_has_settings_is_listed(wire: Wire, wire_with: WireWith, topic: str) -> None:
    """Groups that override one, brokers and topics; version 0 asks for client metrics, of which there are none."""

    async def found(client: Wire, *kinds: int, version: int = 1) -> tuple[int, list[tuple[int, str]]]:
        asked = {"resource_types": kinds} if version else {}
        answer = await client.ask("list_config_resources", version, **asked)
        return answer.error_code, [(one.resource_type, one.resource_name) for one in answer.config_resources]

    await altered(wire, {"name": SESSION, "config_operation": 0, "value": "50000"}, name="b")
    await altered(wire, {"name": SESSION, "config_operation": 0, "value": "50000"}, name="a")
    assert await found(wire) == (0, [(GROUP, "a"), (GROUP, "b"), (8, "1"), (BROKER, "1"), (TOPIC, topic)])
    assert await found(wire, GROUP, TOPIC) == (0, [(GROUP, "a"), (GROUP, "b"), (TOPIC, topic)])
    assert await found(wire, 16) == await found(wire, version=0) == (0, [])
    assert await found(wire, 99) == (35, [])
    assert await found(wire_with("describe:group:a")) == (31, [])
    limited = wire_with("describe:cluster:kafka-cluster", "describe:group:b")
    assert await found(limited, GROUP, TOPIC) == (0, [(GROUP, "b")])


async def pages(wire: Wire, limit: int, names: tuple[str, ...] = ()) -> list[list[tuple[str, list[int]]]]:
    """What DescribeTopicPartitions tells, page by page: names with numbers of partitions."""
    found: list[list[tuple[str, list[int]]]] = []
    cursor: dict[str, Any] | None = None
    while True:
        asked = {"topics": [{"name": name} for name in names], "response_partition_limit": limit, "cursor": cursor}
        answer = await wire.ask("describe_topic_partitions", 0, **asked)
        found.append([(topic.name, [p.partition_index for p in topic.partitions]) for topic in answer.topics])
        if answer.next_cursor is None:
            return found
        at = answer.next_cursor
        cursor = {"topic_name": at.topic_name, "partition_index": at.partition_index}


async def test_partitions_are_described_in_pages(wire: Wire, wire_with: WireWith, topics: TopicService) -> None:
    for name, partitions in (("a", 3), ("b", 1), ("c", 2)):
        await topics.create(name, partitions)
    whole = [("a", [0, 1, 2]), ("b", [0]), ("c", [0, 1])]
    assert await pages(wire, 2_000) == [whole]
    assert await pages(wire, 2) == [[("a", [0, 1])], [("a", [2]), ("b", [0])], [("c", [0, 1])]]
    assert await pages(wire, 3) == [[("a", [0, 1, 2])], [("b", [0]), ("c", [0, 1])]]
    assert await pages(wire, 9, ("c", "b")) == [[("b", [0]), ("c", [0, 1])]]
    limited = wire_with("describe:topic:b")
    assert await pages(limited, 9) == [[("b", [0])]]
    answer = await limited.ask("describe_topic_partitions", 0, topics=[{"name": "a"}, {"name": "b"}])
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [("a", 29), ("b", 0)]
    (partition,) = answer.topics[1].partitions
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ((), ()), "the Java client fails on null"
    answer = await wire.ask("describe_topic_partitions", 0, topics=[{"name": "missing"}])
    assert answer.topics[0].error_code == 3
