"""Managing tokens over the REST API."""

from __future__ import annotations

from typing import Any

import httpx
import psycopg
import pytest

from kcoord.database.clock import VirtualClock
from kcoord.database.paging import INT64_MAX
from kcoord.door.http.types import rfc3339
from kcoord.protocol.errors import Error
from tests.conftest import START_MS
from tests.support.api import assert_problem, client_of
from tests.support.fixtures import ClientWith

TOKENS = "/v1/tokens"
READ = {"operation": "read", "resource": "group", "pattern": "prefix", "name": "billing-"}


async def created(api: httpx.AsyncClient, name: str = "member", **fields: Any) -> dict[str, Any]:
    """A token that was just made."""
    response = await api.post(TOKENS, json={"name": name, "rules": [READ], **fields})
    assert response.status_code == 201, response.text
    body: dict[str, Any] = response.json()
    return body


async def test_a_secret_is_shown_once_and_works(api: httpx.AsyncClient) -> None:
    made = await created(api, expires_at="2099-01-01T01:00:00+01:00")
    assert made["secret"].startswith(made["prefix"])
    assert (made["name"], made["rules"], made["expires_at"]) == (
        "member",
        [{"effect": "allow", **READ}],
        "2099-01-01T00:00:00.000Z",
    )
    listed = (await api.get(TOKENS)).json()["tokens"]
    assert listed[-1] == {name: value for name, value in made.items() if name != "secret"}
    assert made["secret"] not in (await api.get(TOKENS)).text
    async with client_of(made["secret"]) as member:
        assert (await member.get("/v1/groups")).status_code == 200
        assert_problem(await member.get(TOKENS), Error.CLUSTER_AUTHORIZATION_FAILED)


async def test_a_deleted_token_is_refused_once_it_is_no_longer_believed(
    database: str, token: str, clock: VirtualClock
) -> None:
    from kcoord.config import Config
    from kcoord.process import runtime as runtimes

    running = runtimes.Runtime(Config({"token.cache.ms": 0}), database, clock)
    await running.start()
    runtimes.use(running)
    try:
        async with client_of(token) as api:
            made = await created(api)
            async with client_of(made["secret"]) as member:
                assert (await member.get("/v1/groups")).status_code == 200
                assert (await api.delete(f"{TOKENS}/{made['id']}")).status_code == 204
                assert_problem(await member.get("/v1/groups"), Error.SASL_AUTHENTICATION_FAILED)
            assert_problem(await api.delete(f"{TOKENS}/{made['id']}"), Error.INVALID_REQUEST, status=404)
            assert made["name"] not in [entry["name"] for entry in (await api.get(TOKENS)).json()["tokens"]]
    finally:
        runtimes.use(None)
        await running.stop()


@pytest.mark.parametrize(
    "token_id", ["0", "-1", "x", "1.5", "", "%00", "%FF", "1%2F2", "1/2", str(INT64_MAX + 1), "9" * 300]
)
async def test_ids_that_no_token_has(api: httpx.AsyncClient, token_id: str) -> None:
    assert_problem(await api.delete(f"{TOKENS}/{token_id}"), Error.INVALID_REQUEST, status=404)


async def test_pages_follow_each_other_by_age(api: httpx.AsyncClient) -> None:
    for number in range(3):
        await created(api, f"member-{number}")
    seen: list[str] = []
    cursor = ""
    while cursor is not None:
        page = (await api.get(f"{TOKENS}?limit=2{cursor}")).json()
        seen += [entry["name"] for entry in page["tokens"]]
        cursor = page["next_cursor"] and f"&cursor={page['next_cursor']}"
    assert seen[1:] == ["member-0", "member-1", "member-2"]


BAD_TOKENS: list[tuple[dict[str, Any], str]] = [
    ({"rules": [READ]}, "name"),
    ({"name": "", "rules": [READ]}, "name"),
    ({"name": " ", "rules": [READ]}, "name"),
    ({"name": "x" * 201, "rules": [READ]}, "name"),
    ({"name": 5, "rules": [READ]}, "name"),
    ({"name": "m", "rules": []}, "rules"),
    ({"name": "m", "rules": "all"}, "rules"),
    ({"name": "m", "rules": [READ, 1]}, "rules[1]"),
    ({"name": "m", "rules": [{**READ, "operation": "write"}]}, "rules[0].operation"),
    ({"name": "m", "rules": [{**READ, "operation": True}]}, "rules[0].operation"),
    ({"name": "m", "rules": [{**READ, "resource": "broker"}]}, "rules[0].resource"),
    ({"name": "m", "rules": [{**READ, "pattern": "regex"}]}, "rules[0].pattern"),
    ({"name": "m", "rules": [{**READ, "pattern": "literal", "name": ""}]}, "rules[0].name"),
    ({"name": "m", "rules": [{**READ, "name": "x" * 256}]}, "rules[0].name"),
    ({"name": "m", "rules": [{**READ, "name": "\0"}]}, "rules[0].name"),
    ({"name": "m", "rules": [{**READ, "host": "*"}]}, "rules[0].host"),
    ({"name": "m", "rules": [READ], "expires_at": 5}, "expires_at"),
    ({"name": "m", "rules": [READ], "expires_at": rfc3339(START_MS)}, "expires_at"),
    ({"name": "m", "rules": [READ], "owner": "root"}, "owner"),
]


async def test_bad_tokens(api: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    for body, field in BAD_TOKENS:
        with subtests.test(f"{body} {field}"):
            assert_problem(await api.post(TOKENS, json=body), Error.INVALID_REQUEST, field=field)
            assert len((await api.get(TOKENS)).json()["tokens"]) == 1


async def test_a_name_is_used_once(api: httpx.AsyncClient) -> None:
    await created(api)
    response = await api.post(TOKENS, json={"name": "member", "rules": [READ]})
    assert_problem(response, Error.INVALID_REQUEST, field="name")


async def test_the_same_rule_twice_is_one_rule(api: httpx.AsyncClient) -> None:
    assert (await created(api, rules=[READ, READ]))["rules"] == [{"effect": "allow", **READ}]


async def test_an_expiry_beyond_what_can_be_written_is_shown_as_the_last_instant(
    api: httpx.AsyncClient, database: str
) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("update kcoord_apitoken set expires_at = %s", (INT64_MAX,))
    assert (await api.get(TOKENS)).json()["tokens"][0]["expires_at"] == "9999-12-31T23:59:59.999Z"


@pytest.mark.parametrize(
    "rules",
    [
        ["admin:group:*"],
        ["admin:topic:*"],
        ["admin:group:*", "admin:topic:*", "admin:cluster:*"],
        ["admin:group:*", "admin:topic:*", "admin:transactional-id:*"],
        ["admin:group:team-*", "admin:topic:team-*"],
        ["admin:group:x", "admin:topic:x"],
        ["read:group:*", "describe:topic:*", "delete:group:*", "kick:group:*", "alter-offsets:group:*"],
    ],
)
async def test_only_admins_of_everything_manage_tokens(client_with: ClientWith, rules: list[str]) -> None:
    client = await client_with(*rules)
    for method, path in (("GET", TOKENS), ("POST", TOKENS), ("DELETE", f"{TOKENS}/1")):
        assert_problem(await client.request(method, path, json={}), Error.CLUSTER_AUTHORIZATION_FAILED)


async def test_an_admin_of_everything_does(client_with: ClientWith) -> None:
    client = await client_with("admin:group:*", "admin:topic:*", "admin:transactional-id:*", "admin:cluster:*")
    assert (await client.get(TOKENS)).status_code == 200


async def test_a_rotated_token_has_two_secrets_for_a_while(database: str, token: str, clock: VirtualClock) -> None:
    from kcoord.config import Config
    from kcoord.process import runtime as runtimes

    running = runtimes.Runtime(Config({"token.cache.ms": 0}), database, clock)
    await running.start()
    runtimes.use(running)
    try:
        async with client_of(token) as api:
            made = await created(api)
            answer = await api.post(f"{TOKENS}/{made['id']}/rotate", json={"overlap_ms": 60_000})
            assert answer.status_code == 200, answer.text
            rotated = answer.json()
            assert rotated["secret"] != made["secret"]
            assert (rotated["name"], rotated["rules"]) == (made["name"], made["rules"])
            assert rotated["previous_until"] is not None
            for secret in (made["secret"], rotated["secret"]):
                async with client_of(secret) as member:
                    assert (await member.get("/v1/groups")).status_code == 200
            with psycopg.connect(database, autocommit=True) as connection:
                connection.execute("update kcoord_apitoken set previous_until = 1")
            async with client_of(made["secret"]) as member:
                assert_problem(await member.get("/v1/groups"), Error.SASL_AUTHENTICATION_FAILED)
            async with client_of(rotated["secret"]) as member:
                assert (await member.get("/v1/groups")).status_code == 200
            again = (await api.post(f"{TOKENS}/{made['id']}/rotate", json={})).json()
            async with client_of(rotated["secret"]) as member:
                assert_problem(await member.get("/v1/groups"), Error.SASL_AUTHENTICATION_FAILED)
            async with client_of(again["secret"]) as member:
                assert (await member.get("/v1/groups")).status_code == 200
    finally:
        runtimes.use(None)
        await running.stop()


async def test_what_cannot_be_rotated(api: httpx.AsyncClient) -> None:
    assert_problem(await api.post(f"{TOKENS}/999/rotate", json={}), Error.INVALID_REQUEST, status=404)
    made = await created(api)
    for overlap in (-1, 31 * 86_400_000, "x"):
        refused = await api.post(f"{TOKENS}/{made['id']}/rotate", json={"overlap_ms": overlap})
        assert_problem(refused, Error.INVALID_REQUEST)


async def test_the_last_use_is_noted_once_in_a_while(api: httpx.AsyncClient, database: str) -> None:
    from kcoord.access.rights import NOTED_EVERY_MS, Access
    from kcoord.process import runtime as runtimes

    made = await created(api)
    assert made["last_used_at"] is None
    access = Access(runtimes.current())

    async def used() -> int | None:
        access._cache.clear()
        await access.authenticate(made["secret"])
        if access._noting is not None:
            await access._noting
        with psycopg.connect(database) as connection:
            row = connection.execute("select last_used_at from kcoord_apitoken where id = %s", [made["id"]]).fetchone()
        assert row is not None
        return None if row[0] is None else int(row[0])

    first = await used()
    assert first is not None
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("update kcoord_apitoken set last_used_at = last_used_at - 5000 where id = %s", [made["id"]])
    assert await used() == first - 5_000, "noted a moment ago"
    with psycopg.connect(database, autocommit=True) as connection:
        older = [NOTED_EVERY_MS, made["id"]]
        connection.execute("update kcoord_apitoken set last_used_at = last_used_at - %s where id = %s", older)
    again = await used()
    assert again is not None
    assert again >= first
