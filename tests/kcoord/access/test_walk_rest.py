"""Every endpoint x every kind of caller: what a caller may not see looks as if it did not exist.

The endpoints come from the OpenAPI document, so a new one is in the walk by itself.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Iterable
from dataclasses import astuple, dataclass, replace
from typing import Any

import httpx
import psycopg
import pytest

from groups.engine.service import GroupService
from kcoord.access.rights import CLUSTER_NAME, Resource, Rules
from kcoord.access.roles import ADMINISTRATOR, OPERATOR, VIEWER
from kcoord.access.tokens import Rule, create_token, parse_rule
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from tests.kcoord.access.requests import Asked, Names, all_requests
from tests.support.api import Members, client_of
from tests.support.offsets import make_topics
from tests.support.operations import operations
from tests.support.selection import sample
from tests.support.spark_runs import FINDING, put_run
from tests.support.told import told

PREFIX = "team-"
MISSING = Names(
    group="team-group-missing",
    topic="team-topic-missing",
    transactional_id="team-txn-missing",
    member="nobody-missing",
    plan=str(uuid.UUID(int=7)),
    run=str(uuid.UUID(int=8)),
    token="999999",
    principal="Token:team-token-missing",
)
NOT_COMPARED = ("date", "x-request-id", "content-length", "server-timing")
TABLES = (
    "groups_group", "groups_member", "groups_consumermember", "groups_assignment", "groups_event", "groups_topic",
    "groups_watermark", "groups_groupconfigoverride", "groups_grouplabels", "offsets_committedoffset",
    "offset_commit_log", "offsets_offsetplan", "offsets_retentionpin", "offsets_producer", "offsets_sparkrun",
    "kcoord_accessrule", "offsets_alertrule", "offsets_alert",
)  # fmt: skip
ALERT = """
with rule as (
    insert into offsets_alertrule (name, enabled, pattern, group_name, verdicts, for_ms, remind_ms, send_resolved,
                                   receivers, updated_at, updated_by)
    values ('team', true, 'literal', %s, '{stuck}', 0, 0, true, '{ops}', 1, 'ops')
    returning id)
insert into offsets_alert (rule_id, group_name, cause, since, opened_at) select id, %s, 'stuck', 1, 1 from rule
returning rule_id, id
"""
STATE = "select coalesce(md5(string_agg(t::text, chr(10) order by t::text)), '') from {} t"
TOKENS = "select name, digest, expires_at, previous_digest from kcoord_apitoken order by id"

DENIED = tuple(Rule("admin", kind, "prefix", "team-", "deny") for kind in ("group", "topic", "transactional-id"))
READING = {
    "POST /v1/assignments/simulate", "POST /v1/groups/{group_id}/offsets/fetch", "POST /v1/offsets/fetch",
    "POST /v1/groups/{group_id}/offsets/plan", "POST /v1/alerts/{alert_id}/mute",
}  # fmt: skip
"""Requests that read, whatever their method, or that are refused as what a viewer sees in a list."""

REFUSED_TO_OPERATORS = {
    "DELETE /v1/acls", "GET /v1/acls", "POST /v1/acls",
    "GET /v1/tokens", "POST /v1/tokens", "DELETE /v1/tokens/{id}", "POST /v1/tokens/{id}/rotate",
    "GET /v1/archive/runs", "POST /v1/archive/runs", "GET /v1/archive/runs/{run_id}",
    "POST /v1/archive/runs/{run_id}/cancel", "GET /v1/archive/runs/{run_id}/log",
    "GET /v1/alerts/rules", "POST /v1/alerts/rules", "GET /v1/alerts/rules/{rule_id}", "GET /v1/alerts/receivers",
    "PATCH /v1/alerts/rules/{rule_id}", "DELETE /v1/alerts/rules/{rule_id}", "GET /v1/alerts/messages",
    "POST /v1/alerts/receivers/{name}/test", "PUT /v1/alerts/receivers/{name}",
    "DELETE /v1/alerts/receivers/{name}", "GET /v1/nodes", "GET /v1/coordinator-partitions",
    "GET /v1/quotas", "POST /v1/quotas", "GET /v1/quotas/throttled",
    "POST /v1/groups",  # with settings, as the example
    "PATCH /v1/groups/{group_id}/config",
    "PATCH /v1/groups/{group_id}/labels",
    "POST /v1/topics", "PATCH /v1/topics/{name}", "DELETE /v1/topics/{name}", "POST /v1/topics/{name}/watermarks",
    "POST /v1/groups/{group_id}/join", "POST /v1/groups/{group_id}/sync", "POST /v1/groups/{group_id}/heartbeat",
    "POST /v1/groups/{group_id}/leave", "POST /v1/groups/{group_id}/consumer-heartbeat",
    "POST /v1/groups/{group_id}/offsets/commit", "POST /v1/groups/{group_id}/offsets/txn-commit",
    "POST /v1/transactions/{transactional_id}/end", "POST /v1/transactions/{transactional_id}/init",
}  # fmt: skip
"""What the operator of a prefix is answered 403: what is about everything, and being a member."""
OPERATORS_DO = {
    "GET /v1/groups", "GET /v1/groups/{group_id}", "DELETE /v1/groups/{group_id}", "DELETE /v1/groups",
    "POST /v1/groups/{group_id}/hold", "DELETE /v1/groups/{group_id}/hold",
    "POST /v1/groups/{group_id}/members/{member_id}/kick", "POST /v1/groups/{group_id}/offsets/plan",
    "POST /v1/groups/{group_id}/offsets/plans/{plan_id}/apply",
    "POST /v1/groups/{group_id}/offsets/plans/{plan_id}/approve",
    "POST /v1/groups/{group_id}/offsets/plans/{plan_id}/undo",
    "POST /v1/groups/{group_id}/offsets/delete", "POST /v1/groups/{group_id}/pins", "GET /v1/topics/{name}",
    "POST /v1/assignments/simulate",
}  # fmt: skip
NOT_AS_DECLARED = {
    "POST /v1/groups",  # the example has settings, which take more
    "POST /v1/heartbeats",  # each entry has an answer of its own
    "POST /v1/alerts/{alert_id}/mute",  # an alert that the caller may not see does not exist
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What can be told apart of an answer."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: str


def comparable(response: httpx.Response, names: Names) -> Answer:
    """The answer without what is different in every answer, and without the names that were asked for."""
    text = re.sub(r'"request_id": ?"[^"]*"', "", names.mask(response.text))
    headers = [(key, names.mask(value)) for key, value in response.headers.items() if key not in NOT_COMPARED]
    return Answer(response.status_code, tuple(sorted(headers)), text)


@dataclass
class World:
    """Things that exist, and what is stored of them."""

    names: Names
    conninfo: str
    runtime: Runtime

    def stored(self) -> list[Any]:
        with psycopg.connect(self.conninfo) as connection:
            found: list[Any] = [connection.execute(STATE.format(table).encode()).fetchone() for table in TABLES]
            return [*found, connection.execute(TOKENS).fetchall()]

    async def client(self, name: str, rules: Iterable[Rule]) -> httpx.AsyncClient:
        made = await asyncio.to_thread(create_token, f"{name}-{uuid.uuid4().hex[:6]}", rules)
        await told(self.runtime)
        return client_of(made.secret)


@pytest.fixture
async def world(
    api: httpx.AsyncClient, runtime: Runtime, service: GroupService, clock: VirtualClock, database: str
) -> World:
    group, topic, txn = "team-group-present", "team-topic-present", "team-txn-present"
    await make_topics(runtime, **{topic: 3})
    member = (await Members(api, service, clock).stable(group))["member_id"]
    ends = [{"partition": number, "log_start_offset": 0, "log_end_offset": 9} for number in range(3)]
    await done(api, f"/v1/topics/{topic}/watermarks", {"partitions": ends})
    plan = {"strategy": "to-offset", "topics": [{"name": topic, "partitions": [0]}], "offset": 5}
    planned = await done(api, f"/v1/groups/{group}/offsets/plan", plan)
    await done(api, f"/v1/groups/{group}/pins", {"topic": topic})
    await done(api, f"/v1/transactions/{txn}/init", None)
    token = await asyncio.to_thread(create_token, "team-token-present", [parse_rule("read:group:team-*")])
    listed = (await api.get("/v1/tokens")).json()["tokens"]
    number = next(str(one["id"]) for one in listed if one["name"] == token.name)
    with psycopg.connect(database, autocommit=True) as connection:
        run = put_run(connection, "reconcile")
        rule, alert = connection.execute(ALERT, [group, group]).fetchone() or (0, 0)
        connection.execute(FINDING, [run, 1, "lost", group, topic, 0, 1, 2, "{}"])
    names = Names(
        group, topic, txn, member, planned["id"], run, number, "Token:team-token-present", str(rule), str(alert)
    )
    return World(names, database, runtime)


async def done(api: httpx.AsyncClient, url: str, body: Any) -> dict[str, Any]:
    response = await (api.post(url) if body is None else api.post(url, json=body))
    assert response.is_success, response.text
    found: dict[str, Any] = response.json()
    return found


async def answer(client: httpx.AsyncClient, asked: Asked) -> httpx.Response:
    body = {} if asked.body is None else {"json": asked.body}
    return await client.request(asked.method, asked.url, **body)


def pairs(world: World, *, runs: bool = False) -> list[tuple[Asked, Asked]]:
    """The same request about what exists and about what does not.

    Runs are no secret: the list of findings names the last one to everybody. They differ with `runs` only.
    """
    missing = MISSING if runs else replace(MISSING, run=world.names.run)
    found = list(zip(all_requests(world.names), all_requests(missing), strict=True))
    assert all(str(one) == str(other) for one, other in found)
    assert len(found) > 60
    return found


async def refused_secret(world: World, kind: str) -> httpx.AsyncClient:
    """A client without a token, with one that does not exist, and with one that has expired."""
    if kind == "none":
        return client_of(None)
    if kind == "wrong":
        return client_of("kc_" + "x" * 43)
    made = await asyncio.to_thread(create_token, f"late-{uuid.uuid4().hex[:6]}", ADMINISTRATOR.rules())
    with psycopg.connect(world.conninfo, autocommit=True) as connection:
        connection.execute("update kcoord_apitoken set expires_at = 1 where name = %s", [made.name])
    await told(world.runtime)
    return client_of(made.secret)


def assert_alike(asked: Asked, one: httpx.Response, other: httpx.Response, world: World) -> None:
    """The caller cannot tell what exists from what does not."""
    if asked.path == "/metrics":  # counts requests, so that no two answers are equal; it is not about names
        assert world.names.group not in one.text
        assert world.names.topic not in one.text
        assert one.status_code == other.status_code
        return
    known = replace(MISSING, run=world.names.run)
    assert comparable(one, world.names) == comparable(other, known), str(asked)


@pytest.mark.parametrize("kind", sample(["wrong", "none", "expired"], "the walk again with another secret"))
async def test_without_a_valid_token_nothing_can_be_told(world: World, kind: str) -> None:
    client, before = await refused_secret(world, kind), world.stored()
    for present, missing in pairs(world):
        one, other = await answer(client, present), await answer(client, missing)
        if not present.is_open:
            assert one.status_code == 401, (str(present), one.text)
        assert_alike(present, one, other, world)
    assert world.stored()[:-1] == before[:-1]


AGAIN = pytest.mark.whole("the walk again with other rules")


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param((Rule("describe", "transactional-id", "literal", "nothing"),), id="no rules", marks=AGAIN),
        pytest.param(OPERATOR.rules("other-"), id="operator of another prefix", marks=AGAIN),
        pytest.param(VIEWER.rules("other-"), id="viewer of another prefix", marks=AGAIN),
        pytest.param((*OPERATOR.rules(), *DENIED), id="denied"),
    ],
)
async def test_what_is_hidden_looks_as_if_it_did_not_exist(world: World, rules: tuple[Rule, ...]) -> None:
    client = await world.client("stranger", rules)
    before = world.stored()
    for present, missing in pairs(world):
        one, other = await answer(client, present), await answer(client, missing)
        assert_alike(present, one, other, world)
    assert world.stored() == before


async def test_runs_are_refused_whether_they_exist_or_not(world: World) -> None:
    client = await world.client("stranger", OPERATOR.rules("other-"))
    asked = [pair for pair in pairs(world, runs=True) if "{run_id}" in pair[0].path]
    assert len(asked) == 3
    for present, missing in asked:
        one, other = await answer(client, present), await answer(client, missing)
        assert one.status_code == 403
        assert comparable(one, world.names) == comparable(other, MISSING), str(present)


async def test_a_viewer_changes_nothing(world: World) -> None:
    client = await world.client("viewer", VIEWER.rules(PREFIX))
    before = world.stored()
    seen = set()
    for present, missing in pairs(world):
        one, other = await answer(client, present), await answer(client, missing)
        if comparable(one, world.names) != comparable(other, MISSING):
            seen.add(str(present))
    assert world.stored() == before
    assert {path for path in seen if path.startswith(("POST", "PUT", "PATCH", "DELETE"))} <= READING
    assert {
        "GET /v1/groups", "GET /v1/groups/{group_id}", "GET /v1/groups/{group_id}/lag", "GET /v1/topics",
        "GET /v1/topics/{name}", "GET /v1/groups/{group_id}/offsets/plans/{plan_id}", "GET /v1/reconcile/findings",
    } <= seen  # fmt: skip


def lacked(rules: Rules) -> set[str]:
    """The operations that declare a permission which these rules do not give."""
    name = {Resource.GROUP: MISSING.group, Resource.TOPIC: MISSING.topic, Resource.CLUSTER: CLUSTER_NAME}
    name[Resource.TRANSACTIONAL_ID] = MISSING.transactional_id
    found, declared = set(), operations()
    for asked in all_requests(MISSING):
        if asked.operation_id in declared:
            takes = declared[asked.operation_id].takes
            resource, operation = takes.resource, takes.operation
            if operation and not (resource and rules.allows(operation, resource, name[resource])):
                found.add(str(asked))
    return found


async def test_an_operator_is_refused_what_is_not_its_own(world: World) -> None:
    client = await world.client("operator", OPERATOR.rules(PREFIX))
    statuses: dict[str, set[int]] = {}
    for asked in all_requests(MISSING):
        statuses.setdefault(str(asked), set()).add((await answer(client, asked)).status_code)
    refused = {path for path, found in statuses.items() if 403 in found}
    assert refused >= REFUSED_TO_OPERATORS
    rules = Rules(astuple(rule) for rule in OPERATOR.rules(PREFIX))
    assert refused ^ lacked(rules) == NOT_AS_DECLARED
    assert statuses.keys() - refused >= OPERATORS_DO
    assert not {path for path, found in statuses.items() if found & {401, 500}}


async def test_an_administrator_is_refused_nothing(world: World) -> None:
    client = await world.client("administrator", ADMINISTRATOR.rules())
    statuses: dict[str, set[int]] = {}
    for asked in all_requests(MISSING):
        statuses.setdefault(str(asked), set()).add((await answer(client, asked)).status_code)
    assert not {path for path, found in statuses.items() if found & {401, 403, 500}}


async def test_the_walk_reaches_what_exists(world: World) -> None:
    """Otherwise answers about what is hidden and what is missing would be equal for want of a request that works."""
    client = await world.client("administrator", ADMINISTRATOR.rules())
    differing = set()
    for present, missing in pairs(world, runs=True):
        if present.method == "get":
            one, other = await answer(client, present), await answer(client, missing)
            if comparable(one, world.names) != comparable(other, MISSING):
                differing.add(present.path)
    named = {present.path for present, _ in pairs(world) if present.method == "get" and "{" in present.path}
    before_the_group = {"/v1/groups/{group_id}/config", "/v1/groups/{group_id}/labels"}
    assert named - before_the_group <= differing
