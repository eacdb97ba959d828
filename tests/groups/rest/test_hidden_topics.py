"""What a caller may not describe looks as if it did not exist: nothing that the control plane says differs.

Two groups of equal lives, but that one also has to do with the topic `secret`, are held against each other through a
token that may describe `orders` alone.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from typing import Any

import httpx
import pytest

from groups.core.model.types import ClassicMember, GroupState, Protocol
from groups.engine.service import GroupService
from groups.topics import TopicService, Watermark
from kcoord.access.rights import Principal, Rules
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from kcoord.protocol.consumer_protocol import Assignment, Subscription, encode_assignment, encode_subscription
from kcoord.protocol.errors import Error
from offsets.core.plan import totals
from offsets.lag.samples import SampleService
from offsets.plans.store import PlanStore
from offsets.plans.summary import PlanHeader, seen_plans
from tests.support.api import assert_problem
from tests.support.api_consumers import joining
from tests.support.fixtures import ClientWith
from tests.support.rest_groups import group, member

GROUPS = "/v1/groups"
RULES = ("admin:group:*", "describe:topic:orders")
NAMES = "with", "sans"
"""Of the same length and order in every list that is asked for one of them."""


@pytest.fixture
async def limited(client_with: ClientWith) -> httpx.AsyncClient:
    """A caller that may do everything to groups and describe one topic."""
    return await client_with(*RULES)


def owner(*topics: str) -> ClassicMember:
    """A member that subscribes to topics and owns the first partition of each."""
    return replace(
        member("m1"),
        protocols=(Protocol("range", encode_subscription(Subscription(topics))),),
        assignment=encode_assignment(Assignment(dict.fromkeys(topics, (0,)))),
    )


@pytest.fixture
async def twins(
    api: httpx.AsyncClient, topics: TopicService, service: GroupService, runtime: Runtime, clock: VirtualClock
) -> None:
    """`with` has to do with `secret`, `sans` has not."""
    for name in ("orders", "secret"):
        await topics.create(name, 2, labels={"of": name})
        await topics.set_watermarks(name, [Watermark(0, 0, 100)])
    for group_id in NAMES:
        named = ("orders", "secret") if group_id == "with" else ("orders",)
        for number, topic in enumerate(named):
            await ask(api, "post", f"{group_id}/offsets/commit", commit(topic, 10 + number))
            await ask(api, "post", f"{group_id}/pins", {"topic": topic})
        await ask(api, "post", f"{group_id}/offsets/delete", {"topics": [{"name": "orders", "partitions": [0]}]})
        if group_id == "with":
            await ask(api, "post", f"{group_id}/offsets/delete", {"topics": [{"name": "secret", "partitions": [0]}]})
            await ask(api, "post", f"{group_id}/offsets/commit", commit("secret", 5))
        await ask(api, "post", f"{group_id}/offsets/commit", commit("orders", 20))
        for strategy in ({"strategy": "to-latest"}, {"strategy": "shift-by", "by": 500}):
            clock.advance(1)  # the newest plan comes first
            await ask(api, "post", f"{group_id}/offsets/plan", strategy)
    clock.advance(1_000)
    await runtime.get(SampleService).sample()


@pytest.fixture
async def busy_twins(twins: None, service: GroupService) -> None:
    """The same with a member each."""
    for group_id in NAMES:
        named = ("orders", "secret") if group_id == "with" else ("orders",)
        await service.put(group(group_id, GroupState.STABLE, owner(*named)))


def commit(topic: str, offset: int) -> dict[str, Any]:
    return {"topics": [{"name": topic, "partitions": [{"partition": 0, "committed_offset": offset}]}]}


async def ask(api: httpx.AsyncClient, verb: str, path: str, body: Any = None) -> Any:
    response = await api.request(verb, f"{GROUPS}/{path}", json=body)
    assert response.status_code < 300, response.text
    return response.json() if response.content else None


def bare(answer: httpx.Response, group_id: str) -> str:
    """An answer without what any two groups differ in: ids, instants, and where they are coordinated."""
    text = re.sub(r'"next_cursor": ?"[^"]+"', '"next_cursor": "more"', answer.text).replace(group_id, "G")
    text = re.sub(r'"(id|plan_id)": ?("[^"]+"|\d+)', '"id": 0', text)
    text = re.sub(r'"(coordinator_partition|partition)": ?\d+, ?"(lag|node_id)"', r'"partition": 0, "\2"', text)
    return f"{answer.status_code} {re.sub(r'[0-9-]{10}T[0-9:.]+Z', 'T', text)}"


READS = (
    "?q={g}",
    "?q={g}&sort=lag",
    "?q={g}&sort=-lag",
    "?q={g}&min_lag=80",
    "?q={g}&min_lag=81",
    "?q={g}&topic=secret",
    "?q={g}&topic=orders",
    "?q={g}&label=of",
    "?q={g}&label=of%3Dsecret",
    "/{g}/offsets",
    "/{g}/offsets?topic=secret",
    "/{g}/offsets?limit=1",
    "/{g}/lag",
    "/{g}/lag?topic=secret",
    "/{g}/lag/history",
    "/{g}/commits",
    "/{g}/commits?topic=secret",
    "/{g}/commits?limit=1",
    "/{g}/pins",
    "/{g}/events?kind=offsets_deleted&kind=retention_pinned&kind=group_created",
    "/{g}/events?kind=offsets_deleted&limit=1",
    "/{g}/config",
    "/{g}/offsets/plans",
)
"""Whatever is asked about a group."""


async def test_a_hidden_topic_leaves_no_trace(twins: None, limited: httpx.AsyncClient) -> None:
    for path in READS:
        answers = [await limited.get(GROUPS + path.format(g=group_id)) for group_id in NAMES]
        shown = [bare(answer, group_id) for answer, group_id in zip(answers, NAMES, strict=True)]
        assert shown[0] == shown[1], path
        assert "secret" not in answers[0].text.replace(path, ""), path


@pytest.mark.parametrize("path", ["/{g}", "?q={g}", "?q={g}&topic=secret", "?q={g}&label=of%3Dsecret", "/{g}/lag"])
async def test_neither_does_one_that_members_own(busy_twins: None, limited: httpx.AsyncClient, path: str) -> None:
    answers = [await limited.get(GROUPS + path.format(g=group_id)) for group_id in NAMES]
    described = [
        json.loads(answer.text.replace(group_id, "G")) for answer, group_id in zip(answers, NAMES, strict=True)
    ]
    if path == "/{g}":
        for shown in described:
            shown["coordinator"] = None
            (shown["members"][0]["metadata"], shown["members"][0]["assignment"]) = "", ""
        assert described[0]["members"][0]["partitions"] == {"orders": [0]}
    for shown in described:
        for line in shown.get("groups", []):
            line["coordinator_partition"] = 0
    assert described[0] == described[1]
    assert "secret" not in answers[0].text


async def test_bytes_of_classic_members_are_shown_where_they_name_nothing_hidden(
    busy_twins: None, limited: httpx.AsyncClient, api: httpx.AsyncClient, service: GroupService
) -> None:
    async def of(caller: httpx.AsyncClient, group_id: str) -> tuple[bool, bool]:
        (shown,) = (await caller.get(f"{GROUPS}/{group_id}")).json()["members"]
        return bool(shown["metadata"]), bool(shown["assignment"])

    assert [await of(limited, name) for name in NAMES] == [(False, False), (True, True)]
    assert [await of(api, name) for name in NAMES] == [(True, True), (True, True)]
    metadata = encode_subscription(Subscription(("orders",), user_data=b"secret"))
    assignment = encode_assignment(Assignment({"orders": (0,)}, user_data=b"secret"))
    plain = owner("orders")
    for stranger in (
        replace(plain, protocols=(Protocol("range", metadata),), assignment=assignment),
        replace(plain, protocols=(Protocol("range", plain.protocols[0].metadata + b"secret"),), assignment=b"secret"),
        replace(plain, protocol_type="connect"),
    ):
        await service.put(group("u", GroupState.STABLE, stranger, protocol_type=stranger.protocol_type))
        assert await of(limited, "u") == (False, False)
        assert await of(api, "u") == (True, True)


class TestConsumerGroups:
    """Describing a consumer group with a hidden topic is refused, as Kafka does it."""

    @pytest.mark.parametrize("topic", ["secret", "missing"])
    async def test_a_subscription_by_name(
        self, twins: None, api: httpx.AsyncClient, limited: httpx.AsyncClient, topic: str
    ) -> None:
        body = joining(subscribed_topic_names=["orders", topic])
        assert (await api.post(f"{GROUPS}/c/consumer-heartbeat", json=body)).status_code == 200
        refused = await limited.get(f"{GROUPS}/c")
        assert_problem(refused, Error.TOPIC_AUTHORIZATION_FAILED)
        assert topic not in refused.text
        assert (await api.get(f"{GROUPS}/c")).status_code == 200

    async def test_an_assignment(
        self, twins: None, api: httpx.AsyncClient, limited: httpx.AsyncClient, service: GroupService
    ) -> None:
        joined = (
            await api.post(f"{GROUPS}/c/consumer-heartbeat", json=joining(subscribed_topic_names=["secret"]))
        ).json()
        changed = {"member_id": "m1", "member_epoch": joined["member_epoch"], "subscribed_topic_names": ["orders"]}
        assert (await api.post(f"{GROUPS}/c/consumer-heartbeat", json=changed)).status_code == 200
        described = (await api.get(f"{GROUPS}/c")).json()["members"][0]
        assert [entry["topic"] for entry in described["pending_revocation"]] == ["secret"]
        assert_problem(await limited.get(f"{GROUPS}/c"), Error.TOPIC_AUTHORIZATION_FAILED)

    async def test_what_may_be_described_is(
        self, twins: None, api: httpx.AsyncClient, limited: httpx.AsyncClient
    ) -> None:
        assert (await api.post(f"{GROUPS}/c/consumer-heartbeat", json=joining())).status_code == 200
        assert (await limited.get(f"{GROUPS}/c")).json()["members"] == (await api.get(f"{GROUPS}/c")).json()["members"]


class TestPins:
    """Whoever may not describe a topic cannot find out whether it is pinned, nor change that."""

    @pytest.mark.parametrize("group_id", NAMES)
    async def test_neither_made_nor_taken_back(
        self, twins: None, api: httpx.AsyncClient, limited: httpx.AsyncClient, group_id: str
    ) -> None:
        made = await limited.post(f"{GROUPS}/{group_id}/pins", json={"topic": "secret"})
        assert_problem(made, Error.TOPIC_AUTHORIZATION_FAILED)
        gone = await limited.delete(f"{GROUPS}/{group_id}/pins?topic=secret")
        assert_problem(gone, Error.TOPIC_AUTHORIZATION_FAILED)
        pinned = [pin["topic"] for pin in (await api.get(f"{GROUPS}/{group_id}/pins")).json()["pins"]]
        assert ("secret" in pinned) is (group_id == "with")
        assert (await limited.delete(f"{GROUPS}/{group_id}/pins?topic=orders")).status_code == 204
        assert (await limited.post(f"{GROUPS}/{group_id}/pins", json={"topic": None})).status_code == 200


async def test_totals_of_a_plan_are_those_of_its_lines(
    twins: None, api: httpx.AsyncClient, limited: httpx.AsyncClient, runtime: Runtime
) -> None:
    listed = (await api.get(f"{GROUPS}/with/offsets/plans")).json()["plans"]
    assert [plan["totals"]["partitions"] for plan in listed] == [2, 2]
    both = Principal(1, "both", Rules(("describe", "topic", "literal", name) for name in ("orders", "secret")))
    for plan in listed:
        lines = await runtime.get(PlanStore).lines(plan["id"])
        whole = await seen_plans(runtime, [await _plan(runtime, plan["id"])], both)
        assert whole[0].totals == asdict(totals(lines)) == plan["totals"]
        seen = (await limited.get(f"{GROUPS}/with/offsets/plans/{plan['id']}")).json()
        assert seen["totals"] == asdict(totals([line for line in lines if line.topic == "orders"]))


async def _plan(runtime: Runtime, plan_id: str) -> PlanHeader:
    found = await runtime.get(PlanStore).read("with", plan_id)
    assert found is not None
    return found
