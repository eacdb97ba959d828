"""Tokens and their rules: http-api.md 7."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

from kcoord.access.rights import Access, Operation, Resource, Rules, bearer
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from tests.support.api import assert_problem, client_of, join_body
from tests.support.fixtures import ClientWith

HEARTBEAT = {"member_id": "m", "generation_id": 1}
SYNC = {**HEARTBEAT, "protocol_type": "consumer", "protocol_name": "range"}

MEMBER_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("join", join_body()),
    ("sync", SYNC),
    ("heartbeat", HEARTBEAT),
    ("leave", {"members": []}),
    ("offsets/commit", {"topics": []}),
]


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer ", "Basic kc_x", "kc_x", "Bearer kc_unknown", "Bearer \u00e9".encode("latin-1")],
)
async def test_without_a_valid_token_nothing_is_served(runtime: Runtime, authorization: Any) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    async with client_of(None) as client:
        response = await client.post("/v1/groups/g/heartbeat", json=HEARTBEAT, headers=headers)
    assert_problem(response, Error.SASL_AUTHENTICATION_FAILED)
    assert response.headers["www-authenticate"].startswith("Bearer")


async def test_the_token_is_asked_for_before_anything_is_told(runtime: Runtime) -> None:
    async with client_of(None) as client:
        response = await client.post("/v1/groups/a%2Fb/join", content=b"{", headers={"content-type": "text/plain"})
    assert_problem(response, Error.SASL_AUTHENTICATION_FAILED)


async def test_the_scheme_is_read_in_any_case(runtime: Runtime, token: str) -> None:
    async with client_of(None) as client:
        response = await client.get("/v1/coordinator?group_id=g", headers={"Authorization": f"bEARER {token}"})
    assert response.status_code == 200


class TestExpiry:
    @pytest.fixture
    def config(self) -> Config:
        return Config({"token.cache.ms": 0})

    async def test_an_expired_token_is_refused(self, client_with: ClientWith, clock: VirtualClock) -> None:
        client = await client_with("describe:group:*", expires_at_ms=clock.now_ms() + 1_000)
        assert (await client.get("/v1/coordinator?group_id=g")).status_code == 200
        clock.advance(1_000)
        response = await client.get("/v1/coordinator?group_id=g")
        assert "expired" in assert_problem(response, Error.SASL_AUTHENTICATION_FAILED)["detail"]

    async def test_a_deleted_token_is_refused(self, client_with: ClientWith, database: str) -> None:
        client = await client_with("describe:group:*")
        assert (await client.get("/v1/coordinator?group_id=g")).status_code == 200
        _execute(database, "delete from kcoord_accessrule; delete from kcoord_apitoken")
        assert_problem(await client.get("/v1/coordinator?group_id=g"), Error.SASL_AUTHENTICATION_FAILED)

    async def test_the_token_of_a_person_who_left_is_refused(self, client_with: ClientWith, database: str) -> None:
        client = await client_with("describe:group:*")
        _execute(
            database,
            "with u as (insert into auth_user (password, is_superuser, username, first_name, last_name, email,"
            " is_staff, is_active, date_joined)"
            " values ('', false, 'left', '', '', '', false, false, now()) returning id)"
            " update kcoord_apitoken set owner_id = u.id from u",
        )
        try:
            assert_problem(await client.get("/v1/coordinator?group_id=g"), Error.SASL_AUTHENTICATION_FAILED)
        finally:
            _execute(database, "update kcoord_apitoken set owner_id = null; delete from auth_user")


def _execute(database: str, statements: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(statements.encode())


async def test_a_token_is_believed_for_a_while_if_nobody_says_otherwise(
    client_with: ClientWith, runtime: Runtime, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await client_with("describe:group:*")
    monkeypatch.setattr(runtime.get(Access), "forget", lambda: None)
    assert (await client.get("/v1/coordinator?group_id=g")).status_code == 200
    _execute(database, "delete from kcoord_accessrule; delete from kcoord_apitoken")
    assert (await client.get("/v1/coordinator?group_id=g")).status_code == 200


async def test_a_token_is_never_believed_beyond_its_expiry(client_with: ClientWith, runtime: Runtime) -> None:
    """The cache is told the time left, so no look at the database is needed to end it."""
    clock = runtime.db.clock
    assert isinstance(clock, VirtualClock)
    client = await client_with("describe:group:*", expires_at_ms=clock.now_ms() + 1)
    await client.get("/v1/coordinator?group_id=g")
    (found,) = runtime.get(Access)._cache.values()
    assert found[1] <= asyncio.get_running_loop().time() + 0.001


async def test_callers_who_come_at_once_share_one_look(
    runtime: Runtime, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    row = runtime.db.row

    async def counted(*args: Any) -> Any:
        nonlocal looks
        looks += 1
        return await row(*args)

    monkeypatch.setattr(runtime.db, "row", counted)
    access = runtime.get(Access)
    found = await asyncio.gather(*(access.authenticate(token) for _ in range(50)))
    assert looks == 1
    assert len({principal.token_id for principal in found}) == 1


async def test_a_caller_who_goes_away_does_not_take_the_look_from_others(runtime: Runtime, token: str) -> None:
    access = runtime.get(Access)
    first = asyncio.create_task(access.authenticate(token))
    second = asyncio.create_task(access.authenticate(token))
    await asyncio.sleep(0)
    first.cancel()
    assert (await asyncio.wait_for(second, 10)).name.startswith("test-")
    assert first.cancelled()


@pytest.mark.parametrize(("call", "body"), MEMBER_CALLS)
async def test_member_calls_need_read_on_the_group(client_with: ClientWith, call: str, body: dict[str, Any]) -> None:
    for rules in (("describe:group:g",), ("read:group:other", "read:topic:g"), ("read:group:gg*", "delete:group:*")):
        client = await client_with(*rules)
        assert_problem(await client.post(f"/v1/groups/g/{call}", json=body), Error.GROUP_AUTHORIZATION_FAILED)
    for rule in ("read:group:g", "read:group:g*", "read:group:*", "admin:group:*"):
        client = await client_with(rule)
        assert (await client.post(f"/v1/groups/g/{call}", json=body)).status_code != 403, rule


async def test_a_fetch_needs_describe_on_the_group(client_with: ClientWith) -> None:
    client = await client_with("describe:group:other")
    assert_problem(await client.post("/v1/groups/g/offsets/fetch", json={}), Error.GROUP_AUTHORIZATION_FAILED)
    client = await client_with("describe:group:g")
    assert (await client.post("/v1/groups/g/offsets/fetch", json={})).status_code == 200


@pytest.mark.parametrize("operation", ["read", "alter-offsets", "delete", "kick", "admin", "describe"])
def test_every_operation_implies_describe(operation: str) -> None:
    rules = Rules([(operation, "group", "literal", "g")])
    assert rules.allows(Operation.DESCRIBE, Resource.GROUP, "g")
    assert not rules.allows(Operation.DESCRIBE, Resource.GROUP, "gg")
    assert not rules.allows(Operation.DESCRIBE, Resource.TOPIC, "g")


def test_admin_implies_every_operation_and_nothing_else_does() -> None:
    admin, read = Rules([("admin", "topic", "prefix", "a")]), Rules([("read", "topic", "prefix", "a")])
    for operation in Operation:
        assert admin.allows(operation, Resource.TOPIC, "abc")
        assert not admin.allows(operation, Resource.TOPIC, "b")
        expected = operation in (Operation.READ, Operation.DESCRIBE)
        assert read.allows(operation, Resource.TOPIC, "abc") is expected


def test_no_rules_allow_nothing() -> None:
    rules = Rules([])
    assert not any(rules.allows(operation, resource, "") for operation in Operation for resource in Resource)


def test_only_one_authorization_header_form_is_read() -> None:
    assert bearer([(b"host", b"x"), (b"authorization", b"Bearer  kc_x ")]) == "kc_x"
    with pytest.raises(ProtocolError):
        bearer([(b"authorization", b"Digest kc_x")])


async def test_while_the_database_is_away_nobody_is_refused(runtime: Runtime, token: str) -> None:
    await runtime.db.close()
    async with client_of(token) as client:
        assert_problem(await client.get("/v1/coordinator?group_id=g"), Error.COORDINATOR_NOT_AVAILABLE)
