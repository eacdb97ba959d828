"""Refusals in the audit: the first at once, repeated ones counted, and no more than a bounded number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx
import psycopg
import pytest
from psycopg.rows import namedtuple_row

from kcoord.access.audit import refusals as module
from kcoord.access.audit.recording import Act
from kcoord.access.audit.refusals import Refusals
from kcoord.process.runtime import Runtime
from kcoord.requests.current import Caller, Door, Kind
from tests.support.api import client_of, join_body
from tests.support.fixtures import ClientWith
from tests.support.members import eventually

HOLD = Act("group.hold", "group", "g", error="GROUP_AUTHORIZATION_FAILED")


def token(name: str = "deploy") -> Caller:
    return Caller(Door.HTTP, Kind.TOKEN, name, "3", "192.0.2.1", "r")


def refused(database: str) -> list[Any]:
    with psycopg.connect(database, row_factory=namedtuple_row) as connection:
        return connection.execute(
            "select principal, address, act, name, error, count from kcoord_auditrecord"
            " where result = 'refused' order by seq"
        ).fetchall()


async def test_the_first_is_recorded_at_once_and_those_that_follow_together(runtime: Runtime, database: str) -> None:
    refusals = Refusals(runtime, window_seconds=1_000_000)
    for _ in range(500):
        await refusals.note([HOLD], token())
    assert [(row.principal, row.count) for row in refused(database)] == [("deploy", 1)]
    await refusals.note([HOLD], token("other"))
    await refusals.close()
    assert [(row.principal, row.count) for row in refused(database)] == [("deploy", 1), ("other", 1), ("deploy", 499)]


async def test_a_window_ends_by_itself(runtime: Runtime, database: str) -> None:
    refusals = Refusals(runtime, window_seconds=0.01)
    await refusals.note([HOLD], token())
    await eventually(lambda: not refusals._seen, "the window ends")
    await refusals.note([HOLD], token())
    await refusals.close()
    assert [row.count for row in refused(database)] == [1, 1]


async def test_nobody_can_fill_the_table(runtime: Runtime, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_UNKNOWN", 5)
    refusals = Refusals(runtime, window_seconds=1_000_000)
    for number in range(200):
        await refusals.note([HOLD], Caller(Door.HTTP, address=f"198.51.100.{number}"))
    assert len(refused(database)) == 6
    await refusals.note([HOLD], token())
    await refusals.close()
    found = refused(database)
    assert len(found) == 8
    assert found[-2].principal == "deploy", "who is known is not crowded out"
    assert (found[-1].error, found[-1].count, found[-1].address) == ("TOO MANY KINDS", 194, "")


async def test_each_thing_of_a_request_is_recorded(
    runtime: Runtime, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_NAMES", 3)
    refusals = Refusals(runtime, window_seconds=1_000_000)
    acts = [replace(HOLD, name=name) for name in "abcde"]
    await refusals.note(acts, token())
    assert [(row.name, row.count) for row in refused(database)] == [("a", 1), ("b", 1), ("c", 1)]
    await refusals.note(acts, token())
    await refusals.note(acts, Caller(Door.HTTP, address="198.51.100.7"))
    await refusals.close()
    assert [(row.principal, row.name, row.count) for row in refused(database)[3:]] == [
        ("", "a", 1), ("deploy", "a", 2 + 5), ("", "a", 4)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("address", "kind"),
    [("2001:db8::1:2:3", "2001:db8::/64"), ("::ffff:192.0.2.1", "192.0.2.1"), ("192.0.2.1", "192.0.2.1"), ("", "")],
)
def test_addresses_of_one_subscriber_are_one_kind(address: str, kind: str) -> None:
    assert module.network(address) == kind


async def test_what_cannot_be_written_is_written_later(runtime: Runtime, database: str) -> None:
    refusals = Refusals(runtime, window_seconds=1_000_000)
    with psycopg.connect(database) as connection:
        connection.execute("lock table kcoord_auditpending")
        await refusals.note([HOLD], token())
        assert refused(database) == []
    await refusals.close()
    assert [row.count for row in refused(database)] == [1]


async def test_members_that_may_not_are_recorded(runtime: Runtime, client_with: ClientWith, database: str) -> None:
    limited = await client_with("read:group:other")
    for _ in range(3):
        assert (await limited.post("/v1/groups/g/join", json=join_body())).status_code == 403
    await runtime.get(Refusals).close()
    first, rest = refused(database)
    assert first.principal.startswith("limited-")
    assert (first.act, first.name, first.count) == ("request", "joinGroup", 1)
    assert first.error == "GROUP_AUTHORIZATION_FAILED"
    assert rest.count == 2


async def sent(client: httpx.AsyncClient, path: str) -> httpx.Response:
    return await (client.get(path) if path == "/metrics" else client.post(path, json=join_body()))


@pytest.mark.parametrize("path", ["/v1/groups/g/join", "/v1/topics", "/metrics"])
async def test_wrong_tokens_are_recorded(runtime: Runtime, database: str, path: str) -> None:
    for secret in ("kc_one", "kc_two", "kc_three" if path == "/metrics" else None):
        async with client_of(secret) as client:
            assert (await sent(client, path)).status_code == 401
    await runtime.get(Refusals).close()
    first, rest = refused(database)
    assert (first.principal, first.address, first.error) == ("", "127.0.0.1", "SASL_AUTHENTICATION_FAILED")
    assert (first.count, rest.count) == (1, 2)
    assert "kc_one" not in str(first)


async def test_what_was_read_is_not_recorded(api: httpx.AsyncClient, runtime: Runtime, database: str) -> None:
    assert (await api.get("/v1/groups")).status_code == 200
    assert (await api.get("/v1/groups/missing")).status_code == 404
    await runtime.get(Refusals).close()
    assert refused(database) == []
