"""`/v1/acls`: rules over the REST API."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import Group
from django.db import connections

from kcoord.access.roles import OPERATOR
from kcoord.protocol.errors import Error
from tests.support.api import assert_problem
from tests.support.fixtures import ClientWith

ACLS = "/v1/acls"
KICK = {"operation": "kick", "resource": "group", "pattern": "prefix", "name": "billing-"}


def made(name: str) -> None:
    try:
        Group.objects.create(name=name)
    finally:
        connections.close_all()


def gone(name: str) -> None:
    try:
        Group.objects.filter(name=name).delete()
    finally:
        connections.close_all()


@pytest.fixture
async def team(api: httpx.AsyncClient) -> AsyncIterator[str]:
    """The principal of a group of people."""
    name = f"team-{secrets.token_hex(4)}"
    await asyncio.to_thread(made, name)
    yield f"Group:{name}"
    await asyncio.to_thread(gone, name)


async def added(api: httpx.AsyncClient, principal: str, *rules: dict[str, Any]) -> list[dict[str, Any]]:
    response = await api.post(ACLS, json={"principal": principal, "rules": list(rules)})
    assert response.status_code == 201, response.text
    found: list[dict[str, Any]] = response.json()["acls"]
    return found


async def listed(api: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    response = await api.get(ACLS, params=query)
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["acls"]
    return found


async def test_rules_are_added_listed_and_removed(api: httpx.AsyncClient, team: str) -> None:
    deny = {**KICK, "effect": "deny", "pattern": "literal", "name": "billing-1"}
    found = await added(api, team, KICK, deny)
    assert [{**one, "id": 0} for one in found] == [
        {"id": 0, "principal": team, "effect": "allow", **KICK},
        {"id": 0, "principal": team, **deny},
    ]
    assert await added(api, team, KICK) == []
    assert await listed(api, principal=team) == found
    assert await listed(api, principal=team, effect="deny") == found[1:]
    assert await listed(api, principal=team, name="billing-1", pattern="match") == found
    assert await listed(api, principal=team, name="billing-1") == found[1:]
    assert await listed(api, principal=team, name="other", pattern="match") == []
    removed = await api.delete(ACLS, params={"principal": team, "effect": "allow"})
    assert removed.json()["acls"] == found[:1]
    assert await listed(api, principal=team) == found[1:]


async def test_a_role_is_added_by_its_name(api: httpx.AsyncClient, team: str) -> None:
    response = await api.post(ACLS, json={"principal": team, "role": "operator", "prefix": "billing-"})
    assert [(one["operation"], one["resource"], one["name"]) for one in response.json()["acls"]] == [
        (rule.operation, rule.resource, rule.name) for rule in OPERATOR.rules("billing-")
    ]


async def test_a_list_is_read_in_pages(api: httpx.AsyncClient, team: str) -> None:
    found = await added(api, team, *({**KICK, "name": f"g{number}"} for number in range(5)))
    pages, cursor = [], None
    while True:
        query = {"principal": team, "limit": 2, **({} if cursor is None else {"cursor": cursor})}
        page = (await api.get(ACLS, params=query)).json()
        pages.append(page["acls"])
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert [len(page) for page in pages] == [2, 2, 1]
    assert [one for page in pages for one in page] == found


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"rules": [KICK]}, "principal"),
        ({"principal": "mara", "rules": [KICK]}, "principal"),
        ({"principal": "User:*", "rules": [KICK]}, "principal"),
        ({"principal": "User:x"}, "rules"),
        ({"principal": "User:x", "rules": [KICK], "role": "viewer"}, "rules"),
        ({"principal": "User:x", "rules": []}, "rules"),
        ({"principal": "User:x", "rules": [{**KICK, "effect": "maybe"}]}, "rules[0].effect"),
        ({"principal": "User:x", "rules": [{**KICK, "pattern": "literal", "name": ""}]}, "rules[0].name"),
        ({"principal": "User:x", "role": "owner"}, "role"),
        ({"principal": "User:x", "role": "administrator", "prefix": "a"}, "prefix"),
        ({"principal": "User:x", "rules": [KICK], "prefix": "a"}, "prefix"),
    ],
)
async def test_a_mistake_names_the_field(api: httpx.AsyncClient, body: dict[str, Any], field: str) -> None:
    problem = assert_problem(await api.post(ACLS, json=body), Error.INVALID_REQUEST)
    assert problem["field"] == field


async def test_who_does_not_exist_gets_no_rules(api: httpx.AsyncClient) -> None:
    response = await api.post(ACLS, json={"principal": "User:nobody", "rules": [KICK]})
    assert_problem(response, Error.INVALID_REQUEST, status=404)
    assert await listed(api, principal="User:nobody") == []


async def test_removing_takes_a_condition(api: httpx.AsyncClient, team: str) -> None:
    await added(api, team, KICK)
    assert_problem(await api.delete(ACLS), Error.INVALID_REQUEST)
    assert_problem(await api.delete(ACLS, params={"pattern": "match"}), Error.INVALID_REQUEST)
    assert len(await listed(api, principal=team)) == 1


@pytest.mark.parametrize(
    "rules",
    [
        ("admin:cluster:*",),
        ("admin:group:*", "admin:topic:*", "admin:transactional-id:*"),
        ("admin:group:a*", "admin:topic:*", "admin:transactional-id:*", "admin:cluster:*"),
        ("admin:group:*", "admin:topic:*", "admin:transactional-id:*", "admin:cluster:*", "deny:admin:group:secret"),
    ],
)
async def test_only_who_may_do_everything_manages_rules_and_tokens(
    client_with: ClientWith, team: str, rules: tuple[str, ...]
) -> None:
    """Differs from Kafka: there, Alter on the cluster is enough, and whoever has it can give itself any right."""
    client = await client_with(*rules)
    everything = [{"operation": "admin", "resource": "group", "pattern": "prefix", "name": ""}]
    for response in (
        await client.get(ACLS),
        await client.post(ACLS, json={"principal": team, "rules": everything}),
        await client.delete(ACLS, params={"principal": team}),
        await client.post("/v1/tokens", json={"name": "more", "rules": everything}),
        await client.post("/v1/tokens/1/rotate", json={}),
        await client.get("/v1/tokens"),
    ):
        assert_problem(response, Error.CLUSTER_AUTHORIZATION_FAILED)


async def test_an_administrator_manages_rules(client_with: ClientWith, team: str) -> None:
    rules = ("admin:group:*", "admin:topic:*", "admin:transactional-id:*", "admin:cluster:kafka-cluster")
    client = await client_with(*rules)
    assert len(await added(client, team, KICK)) == 1
