"""Quotas over HTTP, in virtual time: what is refused, what never is, and that no membership is lost."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from prometheus_client import REGISTRY

from kcoord.access.quotas.budgets import Budget
from kcoord.access.quotas.quotas import Quotas
from kcoord.database.clock import VirtualClock
from kcoord.process import off_loop
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from tests.support.api import SESSION_TIMEOUT_MS, Members, assert_problem, identity, join_body
from tests.support.api_consumers import BEAT, Consumers
from tests.support.fixtures import ClientWith
from tests.support.quotas import limit

BEATS = "/v1/groups/g/heartbeat"
COMMITS = "/v1/groups/g/offsets/commit"


def commit_body(member: dict[str, Any] | None = None, offset: int = 1) -> dict[str, Any]:
    """A commit of a member, or of a consumer without group management."""
    return {
        "member_id": member["member_id"] if member else "",
        "generation_id_or_member_epoch": member["generation_id"] if member else -1,
        "topics": [{"name": "orders", "partitions": [{"partition": 0, "committed_offset": offset}]}],
    }


def assert_throttled(response: httpx.Response, budget: Budget, limit: float) -> dict[str, Any]:
    """The whole of a refusal by a quota."""
    body = assert_problem(response, Error.THROTTLING_QUOTA_EXCEEDED, action="retry")
    assert response.status_code == 429
    assert body["retriable"] is True
    assert (body["budget"], body["limit"]) == (budget.key, limit)
    assert body["used"] > 0
    assert budget.key in body["detail"]
    return body


def kept() -> float:
    return REGISTRY.get_sample_value("kcoord_quota_heartbeats_kept_total") or 0


async def test_a_fresh_service_limits_nothing_but_long_computations(runtime: Runtime) -> None:
    quotas = runtime.get(Quotas)
    assert {budget for budget in Budget if quotas.limits.any_of((budget,))} == {Budget.CPU}
    assert [quotas.is_hot, quotas.limits_joins, quotas.limits_connections] == [False] * 3


async def test_a_member_that_is_told_to_wait_keeps_its_session_for_as_long_as_it_obeys(
    api: httpx.AsyncClient, runtime: Runtime, members: Members, clock: VirtualClock, topic: str
) -> None:
    member = await members.stable()
    quotas = limit(runtime, heartbeats=0.1)
    quotas.charge(await principal(runtime, api), Budget.HEARTBEATS, 1)
    told, before = 0, kept()
    for _ in range(5 * SESSION_TIMEOUT_MS // 1_000):
        answer = await api.post(BEATS, json=identity(member))
        if answer.status_code == 429:
            assert_throttled(answer, Budget.HEARTBEATS, 0.1)
            told += 1
            clock.advance(int(answer.headers["retry-after"]) * 1_000)
        else:
            clock.advance(1_000)
        await members.service.tick("g")
    assert told > 30
    assert kept() - before == told, "none extends a session without being counted"
    group = (await members.service.describe("g")).group
    assert group is not None
    assert list(group.members) == [member["member_id"]]


async def test_a_throttled_member_that_stops_is_expired_one_session_after_its_last_heartbeat(
    api: httpx.AsyncClient, runtime: Runtime, members: Members, clock: VirtualClock, topic: str
) -> None:
    member = await members.stable()
    quotas = limit(runtime, heartbeats=0.1)
    quotas.charge(await principal(runtime, api), Budget.HEARTBEATS, 1)
    clock.advance(SESSION_TIMEOUT_MS - 1_000)
    assert (await api.post(BEATS, json=identity(member))).status_code == 429
    clock.advance(SESSION_TIMEOUT_MS - 1)
    await members.service.tick("g")
    group = (await members.service.describe("g")).group
    assert group is not None
    assert group.members
    clock.advance(1_001)
    await members.service.tick("g")
    group = (await members.service.describe("g")).group
    assert group is None or not group.members


async def test_a_sender_that_does_not_wait_stays_refused_and_owes_no_more_than_the_longest_wait(
    api: httpx.AsyncClient, runtime: Runtime, members: Members, clock: VirtualClock, topic: str
) -> None:
    member = await members.stable()
    limit(runtime, heartbeats=1)
    answers = [(await api.post(BEATS, json=identity(member))).status_code for _ in range(60)]
    assert answers == [200] * 10 + [429] * 50
    clock.advance(1_999)
    assert (await api.post(BEATS, json=identity(member))).status_code == 429
    clock.advance(2_001)
    assert (await api.post(BEATS, json=identity(member))).status_code == 200


async def test_what_a_member_has_to_know_is_not_kept_from_it(
    api: httpx.AsyncClient, runtime: Runtime, members: Members, topic: str
) -> None:
    member = await members.stable()
    quotas = limit(runtime, heartbeats=0.001)
    quotas.charge(await principal(runtime, api), Budget.HEARTBEATS, 1)
    stale = {**identity(member), "generation_id": member["generation_id"] + 7}
    assert_problem(await api.post(BEATS, json=stale), Error.ILLEGAL_GENERATION)
    many = [{"group_id": "g", **identity(member)}, {"group_id": "g", **stale}]
    answer = await api.post("/v1/heartbeats", json={"heartbeats": many})
    assert [result["error_code"] for result in answer.json()["heartbeats"]] == [0, Error.ILLEGAL_GENERATION.code]
    only = await api.post("/v1/heartbeats", json={"heartbeats": many[:1]})
    assert_throttled(only, Budget.HEARTBEATS, 0.001)


async def test_many_heartbeats_in_one_request_count_as_many(
    api: httpx.AsyncClient, runtime: Runtime, members: Members, topic: str
) -> None:
    member = await members.stable()
    limit(runtime, heartbeats=1)
    beats = {"heartbeats": [{"group_id": "g", **identity(member)}] * 10}
    assert (await api.post("/v1/heartbeats", json=beats)).status_code == 200
    assert (await api.post(BEATS, json=identity(member))).status_code == 429


async def test_consumer_heartbeats_are_refused_only_if_they_say_nothing_new(
    api: httpx.AsyncClient, runtime: Runtime, clock: VirtualClock
) -> None:
    consumers = Consumers(api, runtime)
    await consumers.topic("orders")
    quotas = limit(runtime, heartbeats=0.001)
    quotas.charge(await principal(runtime, api), Budget.HEARTBEATS, 1)
    joined = await consumers.join()
    assert joined["assignment"], "a join is not refused, nor is what it is answered with"
    beat = {"member_id": "m1", "member_epoch": joined["member_epoch"]}
    for _ in range(20):
        clock.advance(5_000)
        assert_throttled(await api.post(BEAT, json=beat), Budget.HEARTBEATS, 0.001)
    left = await api.post(BEAT, json={**beat, "member_epoch": -1})
    assert left.status_code == 200, left.text


async def test_commits_over_the_limit_are_refused_and_store_nothing_but_extend_the_session(
    api: httpx.AsyncClient, runtime: Runtime, members: Members, clock: VirtualClock, topic: str
) -> None:
    member = await members.stable()
    quotas = limit(runtime, commits=0.001)
    assert (await api.post(COMMITS, json=commit_body(member))).status_code == 200
    for _ in range(4):
        clock.advance(SESSION_TIMEOUT_MS - 1_000)
        assert_throttled(await api.post(COMMITS, json=commit_body(member, 2)), Budget.COMMITS, 0.001)
        await members.service.tick("g")
    assert (await api.post(BEATS, json=identity(member))).status_code == 200
    limit(runtime)
    fetched = await api.post("/v1/groups/g/offsets/fetch", json={"topics": None})
    assert fetched.json()["topics"][0]["partitions"][0]["committed_offset"] == 1
    assert quotas is runtime.get(Quotas)


async def test_budgets_do_not_use_up_each_other(
    api: httpx.AsyncClient, runtime: Runtime, members: Members, topic: str
) -> None:
    member = await members.stable()
    limit(runtime, commits=0.1, reads=0.2, writes=0.3, heartbeats=100)
    fetch = {"topics": [{"name": "orders", "partitions": [0]}]}
    assert (await api.post("/v1/groups/g/offsets/fetch", json=fetch)).status_code == 200
    assert_throttled(await api.post(COMMITS, json=commit_body(member)), Budget.COMMITS, 0.1)
    assert [(await api.get("/v1/topics")).status_code for _ in range(3)] == [200, 200, 429]
    assert_throttled(await api.get("/v1/coordinator", params={"group_id": "g"}), Budget.READS, 0.2)
    for name in "abc":
        made = await api.post("/v1/topics", json={"name": name, "partitions": 1, "labels": {}})
        assert made.status_code == 201
    assert_throttled(
        await api.post("/v1/topics", json={"name": "more", "partitions": 1, "labels": {}}), Budget.WRITES, 0.3
    )
    assert (await api.post(BEATS, json=identity(member))).status_code == 200


async def test_one_principal_does_not_use_up_the_budget_of_another(
    api: httpx.AsyncClient, runtime: Runtime, client_with: ClientWith
) -> None:
    other = await client_with("read:group:*")
    limit(runtime, reads=0.1)
    assert [(await api.get("/v1/topics")).status_code for _ in range(5)] == [200, 429, 429, 429, 429]
    assert (await other.get("/v1/topics")).status_code == 200


async def test_new_members_and_groups_are_limited_but_members_may_join_again(
    api: httpx.AsyncClient, runtime: Runtime, members: Members, topic: str
) -> None:
    limit(runtime, members=2, groups=1)
    named = assert_problem(await api.post("/v1/groups/g/join", json=join_body("")), Error.MEMBER_ID_REQUIRED)
    refused = await api.post("/v1/groups/h/join", json=join_body(""))
    assert_throttled(refused, Budget.GROUPS, 1)
    assert int(refused.headers["retry-after"]) == 60
    assert_throttled(await api.post(COMMITS.replace("/g/", "/h/"), json=commit_body()), Budget.GROUPS, 1)
    assert_problem(await api.post("/v1/groups/g/join", json=join_body("")), Error.MEMBER_ID_REQUIRED)
    assert_throttled(await api.post("/v1/groups/g/join", json=join_body("")), Budget.MEMBERS, 2)
    task = await members.parked_join(member_id=named["member_id"])
    await members.complete_joins(task)


async def test_a_static_member_that_restarts_is_no_new_member(
    api: httpx.AsyncClient, runtime: Runtime, members: Members, topic: str
) -> None:
    await static(members, "i1")
    limit(runtime, members=0.001).charge(await principal(runtime, api), Budget.MEMBERS, 1)
    assert_throttled(
        await api.post("/v1/groups/g/join", json=join_body("", group_instance_id="i2")), Budget.MEMBERS, 0.001
    )
    again = await api.post("/v1/groups/g/join", json=join_body("", group_instance_id="i1"))
    assert again.status_code == 200, again.text


async def static(members: Members, instance_id: str) -> None:
    """A static member that has joined g."""
    import asyncio

    from tests.support.members import eventually

    body = join_body("", group_instance_id=instance_id)
    task = asyncio.create_task(members.api.post("/v1/groups/g/join", json=body))

    async def is_parked() -> bool:
        group = (await members.service.describe("g")).group
        return bool(group and group.members)

    await eventually(is_parked, "it waits")
    (joined,) = await members.complete_joins(task)
    sync = {name: joined[name] for name in ("member_id", "generation_id", "protocol_type", "protocol_name")}
    done = await members.api.post(
        "/v1/groups/g/sync", json={**sync, "assignments": [], "group_instance_id": instance_id}
    )
    assert done.status_code == 200, done.text


async def test_partitions_of_topics_are_limited(api: httpx.AsyncClient, runtime: Runtime) -> None:
    limit(runtime, partitions=10)
    made = await api.post("/v1/topics", json={"name": "a", "partitions": 8, "labels": {}})
    assert made.status_code == 201
    assert_throttled(await api.patch("/v1/topics/a", json={"partitions": 13}), Budget.PARTITIONS, 10)
    assert (await api.patch("/v1/topics/a", json={"partitions": 10})).status_code == 200
    assert_throttled(await api.delete("/v1/topics/a"), Budget.PARTITIONS, 10)


async def test_bytes_are_counted_after_the_answer_and_refuse_what_may_be_refused(
    api: httpx.AsyncClient, runtime: Runtime, members: Members, clock: VirtualClock, topic: str
) -> None:
    member = await members.stable()
    limit(runtime, bytes=100)
    body = {**commit_body(member), "topics": commit_body(member)["topics"]}
    body["topics"][0]["partitions"][0]["committed_metadata"] = "x" * 2_000
    assert (await api.post(COMMITS, json=body)).status_code == 200
    assert_throttled(await api.post(COMMITS, json=commit_body(member)), Budget.BYTES, 100)
    assert_throttled(await api.get("/v1/topics"), Budget.BYTES, 100)
    assert (await api.post(BEATS, json=identity(member))).status_code == 200
    clock.advance(30_000)
    assert (await api.get("/v1/topics")).status_code == 200


def big_assignment(members: int = 1) -> dict[str, Any]:
    subscription = {"topics": ["orders"]}
    return {
        "assignor": "range",
        "members": [{"member_id": f"m{number}", "subscription": subscription} for number in range(members)],
    }


async def test_cpu_time_of_assignments_is_charged_when_it_is_known(
    api: httpx.AsyncClient,
    runtime: Runtime,
    clock: VirtualClock,
    topic: str,
    client_with: ClientWith,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = await client_with("describe:topic:*")
    quotas = runtime.get(Quotas)
    charged: list[float] = []
    charge = quotas.charge

    def noted(who: Any, budget: Budget, cost: float) -> None:
        charged.append(cost)
        charge(who, budget, cost * 1_000_000)

    monkeypatch.setattr(quotas, "charge", noted)
    assert (await api.post("/v1/assign", json=big_assignment())).status_code == 200
    assert len(charged) == 1
    assert charged[0] > 0
    assert_throttled(await api.post("/v1/assign", json=big_assignment()), Budget.CPU, 500)
    assert (await other.post("/v1/assign", json=big_assignment())).status_code == 200
    assert (await api.get("/v1/topics")).status_code == 200


async def test_cpu_time_is_charged_even_if_nobody_waits_for_the_result() -> None:
    charged: list[float] = []

    def work() -> int:
        return sum(range(200_000))

    with off_loop.charging(charged.append):
        assert await off_loop.in_thread(work) == sum(range(200_000))
        with pytest.raises(ZeroDivisionError):
            await off_loop.in_thread(lambda: 1 // 0)
    await off_loop.in_thread(work)
    assert len(charged) == 2
    assert charged[0] > 0


async def principal(runtime: Runtime, api: httpx.AsyncClient) -> Any:
    """The holder of the token that `api` sends."""
    from kcoord.access.rights import Access

    return await runtime.get(Access).authenticate(api.headers["authorization"].removeprefix("Bearer "))
