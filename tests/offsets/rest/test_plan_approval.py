"""Plans that a second person has to approve: `plans.second.person`."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import psycopg
import pytest

from groups.topics import TopicService
from kcoord.access.rights import ALL_ALLOWED, Holder, Principal
from kcoord.config import Config
from kcoord.door.http.local_transport import local_operator
from kcoord.door.http.types import rfc3339
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from offsets.plans.approval import PlanApproval
from offsets.plans.refusals import PlanRefused
from offsets.plans.service import PlanService
from tests.conftest import START_MS
from tests.support.api import assert_problem
from tests.support.fixtures import ClientWith
from tests.support.rest_plans import GROUP, Plans, news, orders
from tests.support.token_ends import GIVE_OWNER

ALL = ("read:group:*", "alter-offsets:group:*", "read:topic:*")


@pytest.fixture
def config(config: Config) -> Config:
    """Plans take a second person."""
    return config.override({"plans.second.person": True})


@pytest.fixture
async def plans(api: httpx.AsyncClient, topics: TopicService) -> Plans:
    """Plans of the group g, with a topic of three partitions that have offsets 10 to 100."""
    await orders(topics)
    return Plans(api)


async def approve(client: httpx.AsyncClient, plan: dict[str, Any]) -> httpx.Response:
    """The answer to approving a plan of the group g."""
    return await client.post(f"{GROUP}/offsets/plans/{plan['id']}/approve")


def acts(database: str) -> list[tuple[str, str, str]]:
    """Who approved a plan of which group and why, as the audit says."""
    with psycopg.connect(database) as connection:
        statement = "select principal, name, reason from kcoord_auditrecord where act = 'offsets.approve' order by seq"
        return [(who, name, reason) for who, name, reason in connection.execute(statement)]


async def test_a_plan_is_applied_after_somebody_else_approved_it(
    plans: Plans, client_with: ClientWith, database: str
) -> None:
    second = await client_with(*ALL)
    plan = await plans.made("to-offset", offset=40, topics=[{"name": "orders"}], reason="bad batch")
    assert (plan["approved_at"], plan["approved_by"]) == (None, None)

    body = assert_problem(await plans.apply(plan), Error.INVALID_REQUEST, status=409)
    assert plan["id"] in body["detail"]
    assert "plans.second.person" in body["detail"]
    assert body["state"] == "planned"
    assert await plans.committed() == {}

    answer = await approve(second, plan)
    assert answer.status_code == 200, answer.text
    approved = answer.json()
    assert approved["state"] == "planned"
    assert approved["approved_at"] == rfc3339(START_MS)
    assert approved["approved_by"].startswith("limited-")
    assert acts(database) == [(approved["approved_by"], "g", "bad batch")]

    applied = (await plans.apply(plan)).json()
    assert (applied["state"], applied["approved_by"]) == ("applied", approved["approved_by"])
    assert await plans.committed() == {(topic, n): o for (topic, n), o in news(plan).items()}
    assert (await plans.undo(plan)).status_code == 200  # takes no approval: it brings back what was there


async def test_whoever_approves_may_apply_it(plans: Plans, client_with: ClientWith) -> None:
    second = await client_with(*ALL)
    plan = await plans.made("to-offset", offset=40, topics=[{"name": "orders"}])
    assert_problem(await Plans(second).apply(plan), Error.INVALID_REQUEST, status=409)
    await approve(second, plan)
    assert (await Plans(second).apply(plan)).json()["state"] == "applied"


async def test_nobody_approves_a_plan_of_their_own(plans: Plans, api: httpx.AsyncClient) -> None:
    plan = await plans.made("to-offset", offset=40, topics=[{"name": "orders"}])
    assert "made plan" in assert_problem(await approve(api, plan), Error.INVALID_REQUEST, status=409)["detail"]
    assert_problem(await plans.apply(plan), Error.INVALID_REQUEST, status=409)


async def test_tokens_of_one_account_are_one_person(
    plans: Plans, client_with: ClientWith, runtime: Runtime, database: str
) -> None:
    first, second = await client_with(*ALL), await client_with(*ALL)
    with psycopg.connect(database, autocommit=True) as connection:
        newest = connection.execute("select digest from kcoord_apitoken order by id desc limit 1").fetchone()
        (digest,) = newest or ("",)
        connection.execute(GIVE_OWNER.encode(), {"digest": digest})
        connection.execute(
            "update kcoord_apitoken set owner_id = (select owner_id from kcoord_apitoken where digest = %s)"
            " where name like 'limited-%%'",
            [digest],
        )
        (owner,) = connection.execute(
            "select owner_id from kcoord_apitoken where digest = %s", [digest]
        ).fetchone() or (0,)
    plan = await Plans(first).made("to-offset", offset=40, topics=[{"name": "orders"}])
    assert_problem(await approve(second, plan), Error.INVALID_REQUEST, status=409)
    page = Principal(0, "mara", ALL_ALLOWED, Holder.USER, owner)  # the account itself, on the dashboard
    with pytest.raises(PlanRefused, match="someone else has to approve it"):
        await runtime.get(PlanApproval).approve("g", plan["id"], page)
    colleague = Principal(0, "limited-colleague", ALL_ALLOWED, Holder.USER, owner + 1)
    assert (await runtime.get(PlanApproval).approve("g", plan["id"], colleague)).approved_by == "limited-colleague"


async def test_the_first_approval_counts(plans: Plans, client_with: ClientWith, database: str) -> None:
    clients = [await client_with(*ALL) for _ in range(2)]
    plan = await plans.made("to-offset", offset=40, topics=[{"name": "orders"}])
    answers = await asyncio.gather(*(approve(client, plan) for client in clients * 2))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["approved_by"] for answer in answers}) == 1
    assert len(acts(database)) == 1


async def test_a_plan_made_out_of_an_approved_one_takes_its_own(
    plans: Plans, client_with: ClientWith, runtime: Runtime
) -> None:
    plan = await plans.made("to-offset", offset=40, topics=[{"name": "orders"}])
    await approve(await client_with(*ALL), plan)
    maker = Principal(0, "maker", ALL_ALLOWED, Holder.USER, 7)
    revised = await runtime.get(PlanService).revise("g", plan["id"], maker, clamp=True)
    assert (revised.approved_by, revised.maker) == (None, "user:7")
    assert_problem(await plans.apply({"id": revised.id}), Error.INVALID_REQUEST, status=409)


async def test_approving_takes_what_applying_takes(plans: Plans, client_with: ClientWith) -> None:
    plan = await plans.made("to-offset", offset=40, topics=[{"name": "orders"}])
    reader = await client_with("read:group:*", "read:topic:*")
    assert_problem(await approve(reader, plan), Error.GROUP_AUTHORIZATION_FAILED)
    blind = await client_with("alter-offsets:group:*", "read:group:*", "read:topic:other")
    assert_problem(await approve(blind, plan), Error.TOPIC_AUTHORIZATION_FAILED)


@pytest.mark.parametrize("plan_id", ["0f0e0d0c-0b0a-0908-0706-050403020100", "none"])
async def test_there_has_to_be_a_plan(plans: Plans, api: httpx.AsyncClient, plan_id: str) -> None:
    assert_problem(await approve(api, {"id": plan_id}), Error.INVALID_REQUEST, status=404)


async def test_a_plan_that_was_applied_needs_no_approval(plans: Plans, client_with: ClientWith) -> None:
    first, second = await client_with(*ALL), await client_with(*ALL)
    plan = await plans.made("to-offset", offset=40, topics=[{"name": "orders"}])
    await approve(first, plan)
    await plans.apply(plan)
    body = assert_problem(await approve(second, plan), Error.INVALID_REQUEST, status=409)
    assert body["state"] == "applied"


async def test_a_command_on_the_server_needs_no_approval(plans: Plans, runtime: Runtime) -> None:
    plan = await plans.made("to-offset", offset=40, topics=[{"name": "orders"}])
    applied = await runtime.get(PlanService).apply("g", plan["id"], local_operator())
    assert applied.state.value == "applied"


class TestWithoutTheSetting:
    """Approvals are recorded, and nothing waits for them."""

    @pytest.fixture
    def config(self) -> Config:
        """The default."""
        return Config({"notifications.repair.interval.ms": 60_000})

    async def test_a_plan_is_applied_at_once(self, plans: Plans, client_with: ClientWith) -> None:
        plan = await plans.made("to-offset", offset=40, topics=[{"name": "orders"}])
        assert (await approve(await client_with(*ALL), plan)).json()["approved_by"]
        assert (await plans.apply(await plans.made("to-earliest", topics=[{"name": "orders"}]))).status_code == 200
