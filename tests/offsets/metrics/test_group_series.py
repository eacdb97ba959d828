"""Groups in /metrics: who sees which, under which names, how many, and from when."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from groups.catalogue.topics import TopicService, Watermark
from groups.core.model.types import VerdictKind
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from kcoord.setting import Value
from offsets.lag.samples import SampleService
from offsets.metrics.dialects import DIALECTS, GroupRow, TopicRow, VerdictRow
from offsets.metrics.series import GroupMetrics
from offsets.metrics.text import rendered
from offsets.verdicts.checks import VerdictChecks
from tests.support.api import Members, assert_problem, client_of
from tests.support.fixtures import ClientWith
from tests.support.offsets import commit

Series = dict[str, dict[tuple[tuple[str, str], ...], float]]

TOPIC = (("group", "billing"), ("topic", "orders"))
BILLING = (("group", "billing"),)


@pytest.fixture
def settings() -> dict[str, Value]:
    """Settings of the test, by their names."""
    return {}


@pytest.fixture
def config(config: Config, settings: dict[str, Value]) -> Config:
    """Nothing is repeated unless the test says so."""
    return config.override({"metrics.cache.ms": 0, **settings})


@pytest.fixture
async def sampled(
    runtime: Runtime, topics: TopicService, members: Members, clock: VirtualClock
) -> Callable[[], Awaitable[None]]:
    """Group billing, Stable, is 50 behind on orders and 10 on refunds; mailing has read all orders. Sampled once."""
    service = runtime.get(SampleService)
    for topic in ("orders", "refunds"):
        await topics.create(topic, 2)
        await topics.set_watermarks(topic, [Watermark(0, 0, 100)])
    await service.sample()
    clock.advance(60_000)
    await topics.set_watermarks("orders", [Watermark(0, 0, 200)])
    await topics.set_watermarks("refunds", [Watermark(0, 0, 110)])
    await commit(runtime, "mailing", "orders", 0, offset=200)
    await commit(runtime, "billing", "orders", 0, offset=150)
    await commit(runtime, "billing", "orders", 1, offset=7)
    await commit(runtime, "billing", "refunds", 0, offset=100)
    await members.stable("billing")
    clock.advance(60_000)
    await service.sample()
    return service.sample  # type: ignore[return-value]


def series(text: str) -> Series:
    """Values by name and labels."""
    found: Series = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = tuple(sorted(sample.labels.items()))
            assert labels not in found.setdefault(sample.name, {}), f"{sample.name}{labels} twice"
            found[sample.name][labels] = sample.value
    return found


async def scrape(client: httpx.AsyncClient) -> Series:
    """What /metrics says."""
    response = await client.get("/metrics")
    assert response.status_code == 200, response.text
    return series(response.text)


async def test_our_names(api: httpx.AsyncClient, sampled: object) -> None:
    found = await scrape(api)
    assert {name: of[BILLING] for name, of in found.items() if BILLING in of} == {
        "kcoord_group_members": 1,
        "kcoord_group_rebalances_total": 1,
        "kcoord_group_lag": 60,
        "kcoord_group_max_lag": 50,
        "kcoord_group_lag_seconds": 123,
    }
    assert {name: of[TOPIC] for name, of in found.items() if TOPIC in of} == {
        "kcoord_group_topic_lag": 50,
        "kcoord_group_topic_lag_seconds": 93,
        "kcoord_group_topic_committed_offset_sum": 157,
        "kcoord_group_topic_log_end_offset_sum": 200,
        "kcoord_group_topic_unknown_partitions": 1,
    }
    assert found["kcoord_group_state"] == {
        (("group", "billing"), ("state", "Stable"), ("type", "classic")): 1,
        (("group", "mailing"), ("state", "Empty"), ("type", "classic")): 1,
    }


async def test_without_a_token_groups_are_counted_but_not_named(sampled: object, clock: VirtualClock) -> None:
    clock.advance(4_500)
    async with client_of(None) as client:
        text = (await client.get("/metrics")).text
    found = series(text)
    assert found["kcoord_groups"] == {
        (("state", "Empty"), ("type", "classic")): 1,
        (("state", "Stable"), ("type", "classic")): 1,
    }
    assert found["kcoord_members"] == {(("type", "classic"),): 1}
    assert found["kcoord_offsets"] == {(): 4}
    assert found["kcoord_sample_age_seconds"] == {(): 4.5}
    for name in ("billing", "mailing", "orders", "refunds"):
        assert name not in text


async def test_a_token_sees_what_it_may_describe(client_with: ClientWith, sampled: object) -> None:
    found = await scrape(await client_with("read:group:bill*", "describe:topic:refunds"))
    assert found["kcoord_group_lag"] == {BILLING: 10}, "other topics do not count"
    assert found["kcoord_group_lag_seconds"] == {BILLING: 123}
    assert list(found["kcoord_group_topic_lag"]) == [(("group", "billing"), ("topic", "refunds"))]
    assert len(found["kcoord_group_members"]) == 1
    found = await scrape(await client_with("describe:group:mailing"))
    assert found["kcoord_group_members"] == {(("group", "mailing"),): 0}
    assert "kcoord_group_lag" not in found
    found = await scrape(await client_with("describe:topic:*"))
    assert "kcoord_group_members" not in found
    assert "kcoord_groups" in found


async def test_verdicts_are_counted_for_all_and_named_to_those_who_may_know(
    api: httpx.AsyncClient,
    client_with: ClientWith,
    sampled: object,
    runtime: Runtime,
    clock: VirtualClock,
) -> None:
    """The group was left alone, by its members and by those who report watermarks."""
    wrong = {"uncovered", "stalled", "late", "stale"}
    checks = runtime.get(VerdictChecks)
    assert "kcoord_verdicts" not in await scrape(api), "nobody has judged them"
    clock.advance(400_000)
    await checks.check_members()
    await checks.check_offsets()
    clock.advance(2_500)
    async with client_of(None) as client:
        text = (await client.get("/metrics")).text
    counts = {dict(labels)["verdict"]: count for labels, count in series(text)["kcoord_verdicts"].items()}
    assert counts == {kind.value: 0 for kind in VerdictKind} | dict.fromkeys(wrong, 1)
    assert series(text)["kcoord_verdict_age_seconds"] == {(("check", "members"),): 2.5, (("check", "offsets"),): 2.5}
    assert "billing" not in text
    named = {dict(labels)["verdict"] for labels in (await scrape(api))["kcoord_group_verdict_since_seconds"]}
    assert named == wrong
    blind = await scrape(await client_with("describe:group:*"))
    named = {dict(labels)["verdict"] for labels in blind["kcoord_group_verdict_since_seconds"]}
    assert named == {"late"}, "the others are about topics"


async def test_a_wrong_token_is_refused_not_ignored(runtime: Runtime) -> None:
    async with client_of("kc_wrong") as client:
        assert_problem(await client.get("/metrics"), Error.SASL_AUTHENTICATION_FAILED)


@pytest.mark.parametrize("settings", [{"metrics.public.groups": True}])
async def test_an_operator_may_let_everybody_see_groups(sampled: object) -> None:
    async with client_of(None) as client:
        assert (await scrape(client))["kcoord_group_lag"][BILLING] == 60


async def test_nothing_changes_until_groups_are_sampled_again(
    api: httpx.AsyncClient,
    runtime: Runtime,
    sampled: Callable[[], Awaitable[None]],
    clock: VirtualClock,
) -> None:
    await commit(runtime, "mailing", "orders", 0, offset=100)
    assert (await scrape(api))["kcoord_group_lag"][(("group", "mailing"),)] == 0
    clock.advance(60_000)
    await sampled()
    assert (await scrape(api))["kcoord_group_lag"][(("group", "mailing"),)] == 100


async def test_the_groups_and_topics_of_the_largest_lag_are_kept(
    api: httpx.AsyncClient, runtime: Runtime, topics: TopicService
) -> None:
    await topics.create("orders", 1)
    await topics.create("unknown", 1)
    await topics.set_watermarks("orders", [Watermark(0, 0, 100)])
    for number, group_id in enumerate("abcd"):
        await commit(runtime, group_id, "orders", 0, offset=10 * number)
        await commit(runtime, group_id, "unknown", 0)
    await commit(runtime, "e", "unknown", 0)
    await runtime.get(SampleService).sample()
    metrics = runtime.get(GroupMetrics)
    metrics._max_groups, metrics._max_topics = 2, 3
    found = await scrape(api)
    assert found["kcoord_group_lag"] == {(("group", "a"),): 100, (("group", "b"),): 90}
    assert list(found["kcoord_group_topic_committed_offset_sum"]) == [
        (("group", "a"), ("topic", "orders")),
        (("group", "b"), ("topic", "orders")),
        (("group", "a"), ("topic", "unknown")),
    ]
    assert found["kcoord_metrics_left_out"] == {(("kind", "groups"),): 3, (("kind", "topics"),): 1}
    metrics._max_groups, metrics._max_topics = 5, 9
    assert set((await scrape(api))["kcoord_metrics_left_out"].values()) == {0}
    metrics._max_groups = 0
    assert "kcoord_group_members" not in await scrape(api)


@pytest.mark.parametrize("settings", [{"metrics.cache.ms": 5_000}])
async def test_an_answer_is_repeated_for_a_while_to_those_who_may_see_the_same(
    api: httpx.AsyncClient,
    client_with: ClientWith,
    sampled: Callable[[], Awaitable[None]],
    clock: VirtualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limited = await client_with("describe:group:mailing", "describe:topic:*")
    before, few = await scrape(api), await scrape(limited)
    clock.advance(60_000)
    await sampled()
    for age, client, earlier in ((4.9, api, before), (4.9, limited, few)):
        now = time.monotonic() + age
        monkeypatch.setattr("offsets.metrics.series.monotonic", lambda now=now: now)
        again = await scrape(client)
        assert again["kcoord_sample_age_seconds"] == earlier["kcoord_sample_age_seconds"]
        assert again["kcoord_group_lag"] == earlier["kcoord_group_lag"]
        monkeypatch.undo()
    assert set(few["kcoord_group_lag"]) == {(("group", "mailing"),)}
    now = time.monotonic() + 6
    monkeypatch.setattr("offsets.metrics.series.monotonic", lambda: now)
    assert (await scrape(api))["kcoord_group_lag_seconds"][BILLING] == 183


KMINION = {
    "kminion_kafka_consumer_group_info": {"group_id", "protocol", "protocol_type", "state", "coordinator_id"},
    "kminion_kafka_consumer_group_members": {"group_id"},
    "kminion_kafka_consumer_group_topic_lag": {"group_id", "topic_name"},
    "kminion_kafka_consumer_group_topic_offset_sum": {"group_id", "topic_name"},
}
KAFKA_EXPORTER = {
    "kafka_consumergroup_members": {"consumergroup"},
    "kafka_consumergroup_lag_sum": {"consumergroup", "topic"},
    "kafka_consumergroup_current_offset_sum": {"consumergroup", "topic"},
}
KAFKA_LAG_EXPORTER = {
    "kafka_consumergroup_group_max_lag": {"cluster_name", "group"},
    "kafka_consumergroup_group_max_lag_seconds": {"cluster_name", "group"},
    "kafka_consumergroup_group_sum_lag": {"cluster_name", "group"},
    "kafka_consumergroup_group_topic_sum_lag": {"cluster_name", "group", "topic"},
}


@pytest.mark.parametrize(
    ("settings", "theirs", "replaced"),
    [
        ({"metrics.dialect": "kminion"}, KMINION, {"members", "state", "topic_lag", "topic_committed_offset_sum"}),
        (
            {"metrics.dialect": "kafka_exporter"},
            KAFKA_EXPORTER,
            {"members", "topic_lag", "topic_committed_offset_sum"},
        ),
        (
            {"metrics.dialect": "kafka-lag-exporter"},
            KAFKA_LAG_EXPORTER,
            {"lag", "max_lag", "lag_seconds", "topic_lag"},
        ),
    ],
)
async def test_the_names_of_others_and_ours_where_they_have_none(
    api: httpx.AsyncClient, sampled: object, theirs: dict[str, set[str]], replaced: set[str]
) -> None:
    found = await scrape(api)
    foreign = {name for name in found if name.startswith(("kafka_", "kminion_"))}
    assert foreign == set(theirs)
    for name in theirs:
        for labels in found[name]:
            assert {label for label, _ in labels} == theirs[name], name
    of_groups = {name.removeprefix("kcoord_group_") for name in found if name.startswith("kcoord_group_")}
    others = {"members", "state", "rebalances_total", "lag", "max_lag", "lag_seconds"} | {
        f"topic_{quantity}"
        for quantity in ("lag", "lag_seconds", "committed_offset_sum", "log_end_offset_sum", "unknown_partitions")
    }
    process_wide = {"transactions_total", "batch_commands_bucket", "batch_commands_count", "batch_commands_sum"}
    assert of_groups - process_wide == others - replaced
    lag = next(name for name in theirs if name.endswith(("topic_lag", "lag_sum", "topic_sum_lag")))
    assert sorted(found[lag].values()) == [0, 10, 50]


@pytest.mark.parametrize("settings", [{"metrics.dialect": "kminion"}])
async def test_info_of_kminion_is_1_only_of_stable_groups(api: httpx.AsyncClient, sampled: object) -> None:
    found = (await scrape(api))["kminion_kafka_consumer_group_info"]
    states = {(dict(labels)["group_id"], dict(labels)["state"], value) for labels, value in found.items()}
    assert states == {("billing", "Stable", 1), ("mailing", "Empty", 0)}


def row(group: str, **changes: Any) -> GroupRow:
    """A group without members."""
    values = {"protocol": "", "members": 0, "lag": None, "max_lag": None, "time_lag_ms": None, **changes}
    return GroupRow(1, 1, group, "classic", "consumer", state="Empty", generation_id=3, **values)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_names_are_escaped_and_unknown_values_absent(dialect: str) -> None:
    odd = 'a"b\\c\nd{}, é'
    topic = TopicRow(1, odd, odd, None, None, 5, None, 1)
    found = series(rendered(DIALECTS[dialect], [row(odd)], [topic], [VerdictRow(odd, "late", 1_500)]).decode())
    assert found["kcoord_group_verdict_since_seconds"] == {(("group", odd), ("verdict", "late")): 1.5}
    labels = [dict(labels) for of in found.values() for labels in of]
    assert odd in {text for of in labels for text in of.values()}
    assert not any("lag" in name for name in found)
    largest = 2**63 - 1
    behind = series(rendered(DIALECTS[dialect], [row("g", lag=largest, time_lag_ms=1_500)], [], []).decode())
    assert largest in {value for of in behind.values() for value in of.values()}
    assert 1.5 in {value for of in behind.values() for value in of.values()}


def test_every_dialect_has_all_quantities() -> None:
    ours = DIALECTS["kcoord"]
    for dialect in DIALECTS.values():
        assert list(dialect.groups) == list(ours.groups)
        assert list(dialect.topics) == list(ours.topics)
        families = [*dialect.groups.values(), *dialect.topics.values()]
        assert len({family.name for family in families}) == len(families)
        assert all((family.kind == "counter") is family.name.endswith("_total") for family in families)
