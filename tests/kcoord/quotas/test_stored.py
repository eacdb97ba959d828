"""Quotas in Postgres: changed over REST, by the command and in the admin, and followed by every process."""

from __future__ import annotations

import asyncio
import io
import secrets
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from django.core.management import CommandError, call_command
from structlog.testing import capture_logs

from kcoord.access.quotas.budgets import Budget
from kcoord.access.quotas.quotas import Kind, Limit, Quotas
from kcoord.access.quotas.stored import StoredQuotas, change, checked_limit
from kcoord.access.quotas.throttled import Throttled
from kcoord.access.rights import Access, Principal
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from tests.support.api import assert_problem
from tests.support.fixtures import ClientWith
from tests.support.members import eventually
from tests.support.quotas import limit


@pytest.fixture
async def other(database: str, clock: VirtualClock, config: Config) -> AsyncIterator[Runtime]:
    """Another process, which follows the quotas."""
    running = Runtime(config, database, clock)
    await running.start()
    await running.notifications.wait_listening()
    running.get(StoredQuotas).start()
    yield running
    await running.stop()


async def on_thread(work: Callable[[], Any]) -> Any:
    """The result of work with Django's connection, in a thread."""

    def run() -> Any:
        from django.db import connections

        try:
            return work()
        finally:
            connections.close_all()

    return await asyncio.to_thread(run)


async def holder(runtime: Runtime, api: httpx.AsyncClient) -> Principal:
    """The holder of the token that `api` sends."""
    return await runtime.get(Access).authenticate(api.headers["authorization"].removeprefix("Bearer "))


def limit_of(runtime: Runtime, principal: Principal, budget: Budget) -> Limit:
    return runtime.get(Quotas).limit(principal, budget)


async def test_a_change_over_rest_reaches_every_process_and_comes_back_in_the_list(
    api: httpx.AsyncClient, runtime: Runtime, other: Runtime
) -> None:
    principal = await holder(runtime, api)
    body = {"kind": "token", "name": principal.name, "set": {"heartbeats": 0.5, "cpu": None}}
    changed = await api.post("/v1/quotas", json=body)
    assert changed.status_code == 200, changed.text
    assert {(q["budget"], q["limit"]) for q in changed.json()["quotas"]} == {("heartbeats", 0.5), ("cpu", None)}
    quotas = other.get(Quotas)
    await eventually(lambda: quotas.is_hot, "the other process is told")
    assert limit_of(other, principal, Budget.HEARTBEATS).value == 0.5
    assert limit_of(other, principal, Budget.CPU).value is None
    listed = (await api.get("/v1/quotas")).json()
    assert [q["name"] for q in listed["quotas"]] == [principal.name] * 2
    assert {b["budget"]: b["limit"] for b in listed["budgets"]} == {
        budget.key: 500 if budget is Budget.CPU else None for budget in Budget
    }
    removed = await api.post("/v1/quotas", json={**body, "set": {}, "remove": ["heartbeats", "cpu"]})
    assert removed.json()["quotas"] == []
    await eventually(lambda: not quotas.is_hot, "the other process is told")


async def test_pages_of_quotas(api: httpx.AsyncClient) -> None:
    await api.post("/v1/quotas", json={"kind": "default", "set": {budget.key: 7 for budget in Budget}})
    seen, cursor = [], None
    while True:
        query = {"limit": 4} if cursor is None else {"limit": 4, "cursor": cursor}
        page = (await api.get("/v1/quotas", params=query)).json()
        seen += [quota["budget"] for quota in page["quotas"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert sorted(seen) == sorted(budget.key for budget in Budget)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kind": "token", "name": "nobody", "set": {"cpu": 1}}, "name"),
        ({"kind": "user", "name": "nobody", "set": {"cpu": 1}}, "name"),
        ({"kind": "group", "name": "nobody", "set": {"cpu": 1}}, "name"),
        ({"kind": "token", "set": {"cpu": 1}}, "name"),
        ({"kind": "default", "name": "x", "set": {"cpu": 1}}, "name"),
        ({"kind": "default", "set": {"cpu": 0}}, "set.cpu"),
        ({"kind": "default", "set": {"cpu": "1"}}, "set.cpu"),
        ({"kind": "default", "set": {"speed": 1}}, "set.speed"),
        ({"kind": "default", "set": {"cpu": 1}, "remove": ["cpu"]}, "remove"),
        ({"kind": "default", "remove": ["speed"]}, "remove[0]"),
        ({"kind": "person", "set": {"cpu": 1}}, "kind"),
    ],
)
async def test_what_is_wrong_is_named(api: httpx.AsyncClient, body: dict[str, Any], field: str) -> None:
    assert_problem(await api.post("/v1/quotas", json=body), Error.INVALID_REQUEST, field=field)


async def test_quotas_take_rights_on_the_cluster(client_with: ClientWith) -> None:
    nobody, reader = await client_with("admin:group:*"), await client_with("describe:cluster:*")
    for path in ("/v1/quotas", "/v1/quotas/throttled"):
        assert_problem(await nobody.get(path), Error.CLUSTER_AUTHORIZATION_FAILED)
        assert (await reader.get(path)).status_code == 200
    change = {"kind": "default", "set": {"cpu": 1}}
    assert_problem(await reader.post("/v1/quotas", json=change), Error.CLUSTER_AUTHORIZATION_FAILED)


async def test_tokens_of_a_user_share_the_quota_of_the_user_and_have_those_of_groups_each(
    api: httpx.AsyncClient, runtime: Runtime, other: Runtime, client_with: ClientWith
) -> None:
    second = await client_with("describe:cluster:*")
    one, two = await holder(runtime, api), await holder(runtime, second)
    user, group = f"ada-{secrets.token_hex(4)}", f"ops-{secrets.token_hex(4)}"

    def own() -> None:
        from django.contrib.auth.models import Group, User

        from kcoord.models import ApiToken

        ada = User.objects.create_user(user)
        ada.groups.add(Group.objects.create(name=group))
        ApiToken.objects.filter(pk__in=(one.token_id, two.token_id)).update(owner=ada)
        change(Kind.USER, user, {Budget.READS: 0.1}, frozenset())
        change(Kind.GROUP, group, {Budget.WRITES: 0.1}, frozenset())

    await on_thread(own)
    quotas = other.get(Quotas)
    await eventually(lambda: limit_of(other, one, Budget.READS).value == 0.1, "it is told")
    await eventually(lambda: limit_of(other, two, Budget.WRITES).value == 0.1, "it is told")
    quotas.admit(one, {Budget.READS: 1})
    with pytest.raises(ProtocolError, match=f"user '{user}' has used up its budget 'reads'"):
        quotas.admit(two, {Budget.READS: 1})
    quotas.admit(one, {Budget.WRITES: 1})
    quotas.admit(two, {Budget.WRITES: 1})
    with pytest.raises(ProtocolError, match=f"token '{two.name}'"):
        quotas.admit(two, {Budget.WRITES: 1})

    def leave() -> None:
        from django.contrib.auth.models import User

        User.objects.get(username=user).groups.clear()

    await on_thread(leave)
    await eventually(lambda: limit_of(other, two, Budget.WRITES).value is None, "it is told")


async def test_who_was_throttled_is_counted_logged_once_and_listed(api: httpx.AsyncClient, runtime: Runtime) -> None:
    name = (await holder(runtime, api)).name
    limit(runtime, reads=0.1)
    with capture_logs() as lines:
        for _ in range(20):
            await api.get("/v1/topics")
    said = [line for line in lines if line["event"] == "throttled"]
    assert len(said) == 1
    assert (said[0]["name"], said[0]["budget"], said[0]["limit"]) == (name, "reads", 0.1)
    throttled = runtime.get(Throttled)
    assert throttled.now_throttled()[Budget.READS] == 1
    await eventually(lambda: throttled._storing is None, "it is stored")
    limit(runtime)
    (row,) = (await api.get("/v1/quotas/throttled")).json()["throttled"]
    assert (row["kind"], row["name"], row["budget"], row["limit"]) == ("token", name, "reads", 0.1)
    assert row["used"] > 0
    scrape = (await api.get("/metrics")).text
    assert 'kcoord_quota_throttled_principals{budget="reads"} 1.0' in scrape
    assert name not in "".join(line for line in scrape.splitlines() if "quota" in line)


def run(*arguments: str) -> str:
    """What the command prints."""
    out = io.StringIO()
    call_command("quotas", *arguments, stdout=out, stderr=out)
    return out.getvalue()


def test_the_command_sets_shows_and_removes(database: str) -> None:
    from kcoord.access.tokens import ALL_RULES, create_token

    create_token("billing", ALL_RULES)
    assert "no quota; " in run("--describe")
    billing = ("--entity-type", "tokens", "--entity-name", "billing")
    assert run("--alter", *billing, "--add-config", "heartbeats=100,cpu=unlimited,groups=0.5") == (
        "token billing: cpu=unlimited, groups=0.5, heartbeats=100\n"
    )
    run("--alter", "--entity-default", "--add-config", "bytes=1e6")
    assert run("--describe") == "default: bytes=1000000\ntoken billing: cpu=unlimited, groups=0.5, heartbeats=100\n"
    assert run("--alter", *billing, "--delete-config", "cpu,groups") == "token billing: heartbeats=100\n"
    assert run("--describe", "--entity-type", "users").startswith("no quota; ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--alter", "--add-config", "cpu=1"), "--entity-type and --entity-name"),
        (("--alter", "--entity-default"), "nothing to change"),
        (("--alter", "--entity-default", "--add-config", "cpu=0"), "above 0"),
        (("--alter", "--entity-default", "--add-config", "cpu=fast"), "expected a number"),
        (("--alter", "--entity-default", "--add-config", "speed=1"), "there are heartbeats"),
        (("--alter", "--entity-default", "--add-config", "cpu"), "BUDGET=LIMIT"),
        (("--alter", "--entity-default", "--entity-name", "x", "--add-config", "cpu=1"), "leave out"),
        (("--alter", "--entity-type", "users", "--entity-name", "x", "--add-config", "cpu=1"), "no user 'x'"),
    ],
)
def test_the_command_says_what_is_wrong(database: str, arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(CommandError) as refused:
        run(*arguments)
    assert said in str(refused.value)


@pytest.mark.parametrize("text", ["", "-1", "nan", "inf", "1e13", "x"])
def test_limits_are_numbers_above_0(text: str) -> None:
    with pytest.raises(ValueError, match="cpu"):
        checked_limit(text, Budget.CPU)
