"""What reconcile found, over the REST API."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import httpx
import psycopg
import pytest

from kcoord.protocol.errors import Error
from tests.support.api import assert_problem
from tests.support.fixtures import ClientWith
from tests.support.spark_runs import put_finding, put_run

FINDINGS = "/v1/reconcile/findings"


@pytest.fixture
def tables(database: str) -> Iterator[psycopg.Connection]:
    """A connection to write rows with."""
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


@pytest.fixture
def run_id(tables: psycopg.Connection) -> str:
    """The newest run of reconcile, with four findings."""
    older = put_run(tables, "reconcile", ago_ms=100_000)
    put_finding(tables, older, 1, group="gone")
    run_id = put_run(tables, "reconcile", findings=4)
    put_finding(tables, run_id, 1, "other_offset", "billing", "orders")
    put_finding(tables, run_id, 2, "rewind", "billing", "payments", expected=9, found=3)
    put_finding(tables, run_id, 3, "missing_in_view", "billing", "payments", found=None)
    put_finding(tables, run_id, 4, "rewind", "search", "orders")
    put_run(tables, "reconcile", "failed", ago_ms=0)
    return run_id


async def numbers(api: httpx.AsyncClient, query: str = "") -> list[int]:
    """Numbers of the findings of a page."""
    answer = await api.get(f"{FINDINGS}?{query}")
    assert answer.status_code == 200, answer.text
    return [finding["number"] for finding in answer.json()["findings"]]


async def test_before_the_first_run_there_is_nothing(runtime: object, api: httpx.AsyncClient) -> None:
    nothing = {"run": None, "ended_at": None, "findings": [], "next_cursor": None}
    assert (await api.get(FINDINGS)).json() == nothing


async def test_findings_of_the_newest_run_that_succeeded(api: httpx.AsyncClient, run_id: str) -> None:
    found = (await api.get(FINDINGS)).json()
    assert found["run"] == run_id
    assert found["findings"][0] == {
        "number": 1,
        "kind": "other_offset",
        "group_id": "billing",
        "topic": "orders",
        "partition": 0,
        "expected": 10,
        "found": 7,
        "evidence": {"journal_ids": [1]},
    }
    assert await numbers(api) == [1, 2, 3, 4]
    assert await numbers(api, "kind=rewind") == [2, 4]
    assert await numbers(api, "kind=rewind&kind=missing_in_view&group=billing") == [2, 3]
    assert await numbers(api, "group=nobody") == []


async def test_pages_stay_with_their_run_when_another_ends(
    api: httpx.AsyncClient, tables: psycopg.Connection, run_id: str
) -> None:
    page = (await api.get(f"{FINDINGS}?limit=3")).json()
    newer = put_run(tables, "reconcile", ago_ms=0)
    cursor = page["next_cursor"]
    rest = (await api.get(f"{FINDINGS}?limit=3&cursor={cursor}")).json()
    assert (rest["run"], [one["number"] for one in rest["findings"]], rest["next_cursor"]) == (run_id, [4], None)
    assert_problem(await api.get(f"{FINDINGS}?cursor={cursor}&run={newer}"), Error.INVALID_REQUEST, field="cursor")
    assert await numbers(api, f"run={run_id}") == [1, 2, 3, 4]


async def test_only_what_the_caller_may_describe(api: httpx.AsyncClient, client_with: ClientWith, run_id: str) -> None:
    assert await numbers(await client_with("describe:group:billing", "describe:topic:payments")) == [2, 3]
    assert await numbers(await client_with("read:group:s*", "describe:topic:*")) == [4]
    assert await numbers(await client_with("describe:group:*")) == []


async def test_bad_queries(api: httpx.AsyncClient, tables: psycopg.Connection, run_id: str) -> None:
    assert_problem(await api.get(f"{FINDINGS}?run={uuid.uuid4()}"), Error.INVALID_REQUEST, status=404)
    assert_problem(await api.get(f"{FINDINGS}?run={put_run(tables)}"), Error.INVALID_REQUEST, status=404)
    assert_problem(await api.get(f"{FINDINGS}?kind=x"), Error.INVALID_REQUEST, field="kind")
    assert_problem(await api.get(f"{FINDINGS}?cursor=WzEsMl0"), Error.INVALID_REQUEST, field="cursor")
