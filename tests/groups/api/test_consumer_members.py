"""The course of a membership over POST /v1/groups/{group_id}/consumer-heartbeat: what is reported, held, hidden."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from groups.core.model.types import TopicView
from groups.topics import TopicService
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.door.http.types import rfc3339
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from tests.kcoord.http.test_disconnect import goes_away
from tests.support.api import assert_problem
from tests.support.api_consumers import BEAT, Consumers, joining, partitions
from tests.support.fixtures import ClientWith
from tests.support.members import eventually

SESSION_TIMEOUT_MS = 45_000


@pytest.fixture
def consumers(api: httpx.AsyncClient, runtime: Runtime) -> Consumers:
    """Heartbeats of group g."""
    return Consumers(api, runtime)


@pytest.fixture
async def orders(consumers: Consumers) -> str:
    """The id of topic `orders`, which has three partitions."""
    return await consumers.topic("orders")


async def test_a_short_heartbeat_says_that_nothing_changed(
    consumers: Consumers, orders: str, clock: VirtualClock
) -> None:
    joined = await consumers.join()
    clock.advance(1_000)
    answer = await consumers.go_on(joined)
    assert answer["assignment"] is None
    assert answer["session_expires_at"] == rfc3339(clock.now_ms() + SESSION_TIMEOUT_MS)


async def test_a_full_heartbeat_is_told_its_assignment_again(consumers: Consumers, orders: str) -> None:
    joined = await consumers.join()
    full = {name: joining()[name] for name in ("rebalance_timeout_ms", "subscribed_topic_names")}
    answer = await consumers.go_on(joined, **full, topic_partitions=joined["assignment"]["topic_partitions"])
    assert answer["assignment"] == joined["assignment"]


async def test_null_means_unchanged(consumers: Consumers, orders: str) -> None:
    joined = await consumers.join(rack_id="r1")
    before = (await consumers.group()).members["m1"]
    fields = "instance_id rack_id rebalance_timeout_ms subscribed_topic_names subscribed_topic_regex server_assignor"
    nulls = dict.fromkeys((*fields.split(), "topic_partitions"))
    assert (await consumers.go_on(joined, **nulls))["member_epoch"] == joined["member_epoch"]
    assert (await consumers.group()).members["m1"] == before


async def test_differs_from_kafka_a_client_id_that_is_left_out_stays(consumers: Consumers, orders: str) -> None:
    joined = await consumers.join(client_id="billing")
    await consumers.go_on(joined)
    assert (await consumers.group()).members["m1"].client_id == "billing"
    await consumers.go_on(joined, client_id="shipping")
    assert (await consumers.group()).members["m1"].client_id == "shipping"


def by_id(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"topic_id": entry["topic_id"], "partitions": entry["partitions"]} for entry in entries]


def by_name(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"topic": entry["topic"], "partitions": entry["partitions"]} for entry in entries]


def as_it_came(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return entries


def one_by_one(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"topic": entry["topic"], "partitions": [p]} for entry in entries for p in entry["partitions"]]


@pytest.mark.parametrize("written", [by_id, by_name, as_it_came, one_by_one])
async def test_a_partition_changes_hands_when_its_member_reports_what_is_left(
    consumers: Consumers, orders: str, written: Any
) -> None:
    first = await consumers.join("m1")
    second = await consumers.join("m2")
    assert partitions(second) == {}
    told = await consumers.go_on(first)
    assert partitions(told) == {"orders": [0, 1]}
    still_all = await consumers.go_on(told, topic_partitions=written(first["assignment"]["topic_partitions"]))
    assert still_all["member_epoch"] == told["member_epoch"]
    assert partitions(await consumers.go_on(second)) is None
    given_up = await consumers.go_on(told, topic_partitions=written(told["assignment"]["topic_partitions"]))
    assert given_up["member_epoch"] == second["member_epoch"]
    assert partitions(await consumers.go_on(second)) == {"orders": [2]}


async def test_a_static_member_comes_back_to_its_partitions(consumers: Consumers, orders: str) -> None:
    first = await consumers.join("m1", instance_id="i1")
    away = await consumers.beat(member_id="m1", member_epoch=-2, instance_id="i1")
    assert away["member_epoch"] == -2
    again = await consumers.join("m2", instance_id="i1")
    assert again["assignment"] == first["assignment"]
    assert again["member_epoch"] == first["member_epoch"]
    problem = await consumers.api.post(BEAT, json=joining("m3", instance_id="i1"))
    assert_problem(problem, Error.UNRELEASED_INSTANCE_ID, action="retry")


class TestWaiting:
    async def test_a_heartbeat_waits_for_something_new(self, consumers: Consumers, orders: str) -> None:
        first = await consumers.join("m1")
        waiting = asyncio.create_task(consumers.go_on(first, max_wait_ms=60_000))
        await eventually(lambda: bool(consumers.service._parked._waiters), "the heartbeat waits")
        await consumers.join("m2")
        assert partitions(await asyncio.wait_for(waiting, 10)) == {"orders": [0, 1]}

    async def test_a_client_that_goes_away_is_noticed(
        self, consumers: Consumers, orders: str, token: str, clock: VirtualClock
    ) -> None:
        """Its request ends without an answer, and the session counts from then."""
        await consumers.join()
        body = {"member_id": "m1", "member_epoch": 1, "max_wait_ms": 60_000}
        waiting = asyncio.create_task(consumers.api.post(BEAT, json=body))
        await eventually(lambda: bool(consumers.service._parked._waiters), "the heartbeat waits")
        clock.advance(1_000)
        await goes_away(waiting)

        async def session_counts() -> bool:
            session = (await consumers.group()).timers.session["m1"]
            return session.deadline == clock.now_ms() + SESSION_TIMEOUT_MS

        await eventually(session_counts, "the session counts from the end of the connection")

    class TestCapped:
        @pytest.fixture
        def config(self) -> Config:
            return Config({"http.max.wait.ms": 20})

        async def test_no_wait_is_longer_than_the_setting(self, consumers: Consumers, orders: str) -> None:
            first = await consumers.join()
            answer = await asyncio.wait_for(consumers.go_on(first, max_wait_ms=60_000), 10)
            assert (answer["member_epoch"], answer["assignment"]) == (1, None)


class TestDeletedTopic:
    """A member can give up a topic that is deleted, however it names it."""

    @pytest.mark.parametrize("written", [by_id, by_name, as_it_came])
    async def test_it_is_given_up_like_any_other(
        self, consumers: Consumers, orders: str, runtime: Runtime, written: Any
    ) -> None:
        await consumers.topic("gone", 1)
        joined = await consumers.join(subscribed_topic_names=["gone", "orders"])
        assert partitions(joined) == {"gone": [0], "orders": [0, 1, 2]}
        await runtime.get(TopicService).delete("gone")
        owned = written(joined["assignment"]["topic_partitions"])
        told = await consumers.go_on(joined, topic_partitions=owned)
        assert partitions(told) == {"orders": [0, 1, 2]}
        not_yet = await consumers.go_on(told, topic_partitions=owned)
        assert not_yet["member_epoch"] == told["member_epoch"] == 1
        given_up = await consumers.go_on(told, topic_partitions=written(told["assignment"]["topic_partitions"]))
        assert given_up["member_epoch"] == 2

    async def test_whoever_has_to_rejoin_hears_that_first(
        self, consumers: Consumers, orders: str, runtime: Runtime, api: httpx.AsyncClient
    ) -> None:
        joined = await consumers.join()
        await runtime.get(TopicService).delete("orders")
        for owned in ([{"topic_id": orders, "partitions": [0]}], [{"topic": "orders", "partitions": [0]}]):
            stranger = {"member_id": "m2", "member_epoch": 1, "topic_partitions": owned}
            assert_problem(await api.post(BEAT, json=stranger), Error.UNKNOWN_MEMBER_ID)
            ahead = {"member_id": "m1", "member_epoch": 2, "topic_partitions": owned}
            assert_problem(await api.post(BEAT, json=ahead), Error.FENCED_MEMBER_EPOCH)
            elsewhere = await api.post("/v1/groups/h/consumer-heartbeat", json=stranger)
            assert_problem(elsewhere, Error.GROUP_ID_NOT_FOUND)
            leaving = {"member_id": "m2", "member_epoch": -1, "topic_partitions": owned}
            assert_problem(await api.post(BEAT, json=leaving), Error.UNKNOWN_MEMBER_ID)
        assert (await consumers.group()).members["m1"].member_epoch == joined["member_epoch"]


async def test_a_topic_that_only_other_processes_know_has_its_name(
    consumers: Consumers, orders: str, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined = await consumers.join()
    topics = runtime.get(TopicService)

    async def stale() -> TopicView:
        return TopicView()

    full = {name: joining()[name] for name in ("rebalance_timeout_ms", "subscribed_topic_names")}
    service = consumers.service
    world = await service._mailbox._contexts.context_of("g")

    async def fresh(group_id: str) -> Any:
        return world

    monkeypatch.setattr(service._mailbox._contexts, "context_of", fresh)
    monkeypatch.setattr(topics, "view", stale)
    answer = await consumers.go_on(joined, **full, topic_partitions=joined["assignment"]["topic_partitions"])
    assert answer["assignment"] == joined["assignment"]


class TestAccess:
    async def test_it_takes_the_right_to_read_the_group(self, orders: str, client_with: ClientWith) -> None:
        reader = await client_with("read:group:g", "describe:topic:*")
        assert (await reader.post(BEAT, json=joining())).status_code == 200
        stranger = await client_with("describe:group:g", "read:group:h", "describe:topic:*")
        assert_problem(await stranger.post(BEAT, json=joining()), Error.GROUP_AUTHORIZATION_FAILED)

    async def test_every_topic_named_must_be_describable(
        self, consumers: Consumers, orders: str, client_with: ClientWith
    ) -> None:
        reader = await client_with("read:group:g", "describe:topic:orders")
        body = joining(subscribed_topic_names=["orders", "secret"])
        body = assert_problem(
            await reader.post(BEAT, json=body),
            Error.TOPIC_AUTHORIZATION_FAILED,
            action="stop",
            field="subscribed_topic_names[1]",
        )
        assert "secret" in body["detail"]
        assert (await consumers.service.describe("g")).group is None

    async def test_what_one_may_not_see_looks_like_what_does_not_exist(
        self, consumers: Consumers, orders: str, client_with: ClientWith
    ) -> None:
        reader = await client_with("read:group:g", "describe:topic:orders")
        secret = await consumers.topic("secret")
        assert (await reader.post(BEAT, json=joining())).status_code == 200
        beat = {"member_id": "m1", "member_epoch": 1}
        for owned, error in (
            ({"topic": "secret", "partitions": [0]}, Error.UNKNOWN_TOPIC_OR_PARTITION),
            ({"topic_id": secret, "partitions": [0]}, Error.UNKNOWN_TOPIC_ID),
        ):
            assert_problem(await reader.post(BEAT, json={**beat, "topic_partitions": [owned]}), error)

    async def test_the_name_of_a_topic_that_one_may_not_see_is_left_out(
        self, consumers: Consumers, orders: str, client_with: ClientWith
    ) -> None:
        """A subscription by name stays when the right to describe the topic is gone."""
        first = await consumers.join("m1")
        second = await consumers.join("m2")
        kept = {"topic_id": orders, "partitions": [0, 1]}
        assert partitions(await consumers.go_on(first)) == {"orders": [0, 1]}
        await consumers.go_on(first, topic_partitions=[kept])
        reader = await client_with("read:group:g")
        beat = {"member_id": "m2", "member_epoch": second["member_epoch"]}
        told = (await reader.post(BEAT, json=beat)).json()
        assert told["assignment"]["topic_partitions"] == [{"topic_id": orders, "topic": None, "partitions": [2]}]
        echo = {"member_id": "m2", "member_epoch": told["member_epoch"], **told["assignment"]}
        assert (await reader.post(BEAT, json=echo)).status_code == 200


async def test_the_empty_group_id_is_refused_as_in_kafka(consumers: Consumers, api: httpx.AsyncClient) -> None:
    async def join(group_id: str) -> httpx.Response:
        return await api.post(f"/v1/groups/{group_id}/consumer-heartbeat", json=joining())

    for group_id in ("", "%20%20"):
        assert "group_id" in assert_problem(await join(group_id), Error.INVALID_REQUEST)["detail"]
    for group_id in ("a%2Fb", "%00", "x" * 256):
        assert_problem(await join(group_id), Error.INVALID_GROUP_ID)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"instance_id": "a b"}, "instance_id"),
        ({"instance_id": "."}, "instance_id"),
        ({"rebalance_timeout_ms": -2}, "rebalance_timeout_ms"),
        ({"rack_id": "r" * 256}, "rack_id"),
        ({"member_id": "m" * 301}, "member_id"),
        ({"subscribed_topic_names": ["orders", ""]}, "subscribed_topic_names[1]"),
        ({"subscribed_topic_names": ["t"] * 10_001}, "subscribed_topic_names"),
        ({"topic_partitions": [{"topic_id": "", "partitions": []}]}, "topic_partitions[0].topic_id"),
        ({"topic_partitions": [{"topic_id": "x", "partitions": []}]}, "topic_partitions[0].topic_id"),
        ({"topic_partitions": [{"topic": None, "partitions": []}]}, "topic_partitions[0]"),
    ],
)
async def test_bounds_of_fields(consumers: Consumers, orders: str, changes: dict[str, Any], field: str) -> None:
    response = await consumers.api.post(BEAT, json=joining(**changes))
    assert_problem(response, Error.INVALID_REQUEST, field=field)
    assert (await consumers.service.describe("g")).group is None


async def test_a_join_with_a_topic_of_no_partitions(consumers: Consumers, orders: str) -> None:
    """It owns nothing, and says so otherwise than by an empty list (consumer.md 2.2, row 10)."""
    owned = [{"topic_id": orders, "partitions": []}]
    response = await consumers.api.post(BEAT, json=joining(topic_partitions=owned))
    assert_problem(response, Error.INVALID_REQUEST)


async def test_a_topic_id_and_a_name_that_contradict_each_other(consumers: Consumers, orders: str) -> None:
    await consumers.topic("other")
    await consumers.join()
    owned = [{"topic_id": orders, "topic": "other", "partitions": [0]}]
    response = await consumers.api.post(BEAT, json={"member_id": "m1", "member_epoch": 1, "topic_partitions": owned})
    assert_problem(response, Error.INVALID_REQUEST, field="topic_partitions[0].topic")


async def test_a_member_of_someone_else(consumers: Consumers, orders: str) -> None:
    await consumers.join("m1", instance_id="i1")
    await consumers.join("m2", instance_id="i2")
    before = await consumers.service.describe("g")
    for epoch in (1, 2, -1):
        body = {"member_id": "m1", "member_epoch": epoch, "instance_id": "i2"}
        assert_problem(await consumers.api.post(BEAT, json=body), Error.FENCED_INSTANCE_ID)
    assert await consumers.service.describe("g") == before


async def test_commits_and_fetches_tell_the_member_epoch(consumers: Consumers, orders: str) -> None:
    joined = await consumers.join()

    async def commit(epoch: int) -> httpx.Response:
        entry = {"name": "orders", "partitions": [{"partition": 0, "committed_offset": 7}]}
        body = {"member_id": "m1", "generation_id_or_member_epoch": epoch, "topics": [entry]}
        return await consumers.api.post("/v1/groups/g/offsets/commit", json=body)

    async def fetch(member_id: str, epoch: int) -> httpx.Response:
        body = {"member_id": member_id, "member_epoch": epoch}
        return await consumers.api.post("/v1/groups/g/offsets/fetch", json=body)

    assert (await commit(joined["member_epoch"])).json()["topics"][0]["partitions"][0]["error_code"] == 0
    assert_problem(await commit(2), Error.STALE_MEMBER_EPOCH)
    assert_problem(await fetch("m1", 2), Error.STALE_MEMBER_EPOCH)
    assert_problem(await fetch("m2", 1), Error.UNKNOWN_MEMBER_ID)
    found = (await fetch("m1", 1)).json()["topics"][0]["partitions"]
    assert [entry["committed_offset"] for entry in found] == [7]
