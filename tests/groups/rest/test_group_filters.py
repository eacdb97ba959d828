"""The list of groups by topics: what members own, what is committed, and labels of topics."""

from __future__ import annotations

import itertools

import httpx
import psycopg
import pytest

from groups.core.model.types import GroupState
from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from kcoord.setting_table import SESSION_TIMEOUT
from tests.conformance.fixtures_consumer import consumer_group
from tests.groups.rest.test_groups import all_ids, ids
from tests.support.api import assert_problem
from tests.support.fixtures import ClientWith
from tests.support.rest_groups import group, member


@pytest.fixture(autouse=True)
async def world(
    api: httpx.AsyncClient, service: GroupService, topics: TopicService, runtime: Runtime, clock: VirtualClock
) -> None:
    """Groups that own partitions of a topic, have committed on one, subscribe to one, or do none of it."""
    await topics.create("orders", 3, {"team": "billing", "tier": "1"})
    await topics.create("refunds", 3, {"team": "billing", "odd=name": "x"})
    await topics.create("stock", 3, {"team": "store", "tier": "2"})
    await service.put(group("owner", GroupState.STABLE, member("m1", 0, topic="orders")))
    await service.put(group("bystander", GroupState.EMPTY))
    for group_id, topic in (("committer", "orders"), ("keeper", "stock")):
        body = {"topics": [{"name": topic, "partitions": [{"partition": 1, "committed_offset": 7}]}]}
        assert (await api.post(f"/v1/groups/{group_id}/offsets/commit", json=body)).status_code == 200
    subscriber = {"member_id": "m", "member_epoch": 1, "subscribed_topic_names": ["refunds"]}
    given = {"group_id": "subscriber", "group_epoch": 1, "members": [subscriber]}
    view = await runtime.get(TopicService).view()
    await service.put(consumer_group(given, runtime.config.int(SESSION_TIMEOUT), view, clock.now_ms()))


FILTERS: list[tuple[str, list[str]]] = [
    ("topic=orders", ["committer", "owner"]),
    ("topic=stock", ["keeper"]),
    ("topic=stock&state=Stable", []),
    ("topic=refunds", []),
    ("label=team%3Dbilling", ["committer", "owner", "subscriber"]),
    ("label=team", ["committer", "keeper", "owner", "subscriber"]),
    ("label=tier%3D1", ["committer", "owner"]),
    ("label=tier%3D1&label=tier%3D2", ["committer", "keeper", "owner"]),
    ("label=tier%3D1&topic=stock", []),
    ("label=tier%3D1&type=classic&q=own", ["owner"]),
    ("label=tier%3D3", []),
    ("label=tier%3D", []),
    ("label=Team", []),
    ("label=billing", []),
    ("label=%25", []),
    ("client_id=clie", ["owner"]),
    ("client_id=nobody", []),
    ("host=192.0", ["owner"]),
    ("host=192.0&member=m1&client_id=client", ["owner"]),
    ("host=192.0&client_id=nobody", []),
    ("assignor=UNIF", ["subscriber"]),
    ("regex=er%24", ["bystander", "committer", "keeper", "owner", "subscriber"]),
    ("regex=%5E(o|k)", ["keeper", "owner"]),
    ("regex=%5E(o|k)&topic=orders", ["owner"]),
    ("regex=%5EO", []),
    ("regex=(%3Fi)%5EO", ["owner"]),
]


async def test_filters_in_every_order(api: httpx.AsyncClient) -> None:
    orders = itertools.cycle(("group_id", "-updated_at", "state", "-state", "members", "lag"))
    for (query, expected), sort in zip(FILTERS + FILTERS, orders, strict=False):
        assert sorted(await ids(api, f"?{query}&sort={sort}")) == expected, (query, sort)


async def test_pages_of_a_filter_join_up(api: httpx.AsyncClient) -> None:
    assert await all_ids(api, "&label=team") == ["committer", "keeper", "owner", "subscriber"]


async def test_labels_of_topics_that_the_caller_may_not_see_say_nothing(client_with: ClientWith) -> None:
    client = await client_with("describe:group:*", "describe:topic:stock")
    assert await ids(client, "?label=team") == ["keeper"]


async def test_a_committed_offset_that_is_deleted_is_no_topic_any_more(api: httpx.AsyncClient) -> None:
    body = {"topics": [{"name": "stock", "partitions": [1]}]}
    assert (await api.post("/v1/groups/keeper/offsets/delete", json=body)).status_code == 200
    assert await ids(api, "?topic=stock") == []


@pytest.mark.parametrize("value", ["", "%3Dbilling", "x" * 320, "a%00"])
async def test_bad_labels_name_the_parameter(api: httpx.AsyncClient, value: str) -> None:
    assert_problem(await api.get(f"/v1/groups?label={value}"), Error.INVALID_REQUEST, field="label")


async def test_twenty_labels_at_most(api: httpx.AsyncClient) -> None:
    query = "&".join(f"label=l{number}" for number in range(21))
    assert_problem(await api.get(f"/v1/groups?{query}"), Error.INVALID_REQUEST, field="label")


async def test_names_of_labels_are_not_split_further(api: httpx.AsyncClient, database: str) -> None:
    """The first '=' ends the name: a label whose name has one is found by what stands before it, or not at all."""
    assert await ids(api, "?label=odd%3Dname") == []
    with psycopg.connect(database) as connection:
        connection.execute("update groups_topic set labels = '{\"odd\": \"name=x\"}' where name = 'refunds'")
    assert await ids(api, "?label=odd%3Dname%3Dx") == ["subscriber"]


async def test_a_broken_regular_expression_names_itself(api: httpx.AsyncClient) -> None:
    problem = assert_problem(await api.get("/v1/groups?regex=("), Error.INVALID_REGULAR_EXPRESSION)
    assert problem["field"] == "regex"
    assert "missing" in problem["detail"]


async def test_an_order_by_all_topics_is_not_for_everybody(api: httpx.AsyncClient, client_with: ClientWith) -> None:
    assert_problem(await api.get("/v1/groups?sort=partitions"), Error.INVALID_REQUEST)
    client = await client_with("describe:group:*", "describe:topic:stock")
    for query in ("sort=time_lag_ms", "sort=-time_lag_ms", "min_time_lag_ms=0"):
        assert_problem(await client.get(f"/v1/groups?{query}"), Error.TOPIC_AUTHORIZATION_FAILED)


async def test_held_groups_are_found_besides_those_in_a_state(api: httpx.AsyncClient) -> None:
    await api.post("/v1/groups/bystander/hold", json={"duration_ms": 60_000, "reason": "bug 17"})
    assert await ids(api, "?held=true") == ["bystander"]
    assert await ids(api, "?held=true&state=Stable") == ["bystander", "owner", "subscriber"]
    assert len(await ids(api, "?held=false")) == 5
    assert_problem(await api.get("/v1/groups?held=1"), Error.INVALID_REQUEST, field="held")
    (line,) = (await api.get("/v1/groups?q=bystander")).json()["groups"]
    assert line["held_until"] is not None


async def test_members_are_not_searched_in_groups_that_the_caller_may_not_describe(client_with: ClientWith) -> None:
    client = await client_with("describe:cluster:kafka-cluster", "describe:group:keeper", "describe:topic:*")
    assert await ids(client, "?regex=owner") == ["owner"]
    assert await ids(client, "?host=192.0") == []
    assert await ids(client, "?client_id=client") == []


async def test_a_topic_that_many_rows_name_is_found_as_well(
    api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("offsets.group_list.FEW_ROWS", 1)
    assert sorted(await ids(api, "?topic=orders")) == ["committer", "owner"]
    assert sorted(await ids(api, "?label=team")) == ["committer", "keeper", "owner", "subscriber"]
