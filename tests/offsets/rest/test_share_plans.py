"""Resets of share groups as plans: applied only while nothing happens, and undone with every item."""

from __future__ import annotations

import json
from typing import Any

import httpx
import psycopg
import pytest

from groups.topics import TopicService, Watermark
from kcoord.database.clock import VirtualClock
from kcoord.door.http.types import rfc3339
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from offsets.lag.samples import SampleService
from tests.support.api import assert_problem
from tests.support.items import GROUP, asked, held, joined, report, settle
from tests.support.offsets import commit
from tests.support.placed import misplaced

WHOLE = {"topics": [{"name": "job"}]}
ROWS = {
    "retries": "select share_partition_id, held, delivery_count, not_before, last_error, last_member"
    " from offsets_shareretry order by share_partition_id, held",
    "dead": 'select share_partition_id, "offset", delivery_count, cause, error, member_id, at'
    ' from offsets_sharedead order by share_partition_id, "offset"',
    "locks": "select count(*) from offsets_sharelock",
    "partitions": "select partition, next_offset from offsets_sharepartition order by partition",
}


@pytest.fixture
async def job(topics: TopicService) -> str:
    await topics.create("job", 1)
    return "job"


def rows(database: str) -> dict[str, list[Any]]:
    """All items that are kept; each is in one place."""
    with psycopg.connect(database) as connection:
        assert misplaced(connection) == {}
        return {name: connection.execute(query.encode()).fetchall() for name, query in ROWS.items()}


def journal(database: str, kind: str) -> list[Any]:
    """What the lines of a kind say, in their order."""
    query = "select metadata from offset_commit_log where kind = %s order by id"
    with psycopg.connect(database) as connection:
        return [json.loads(said) for (said,) in connection.execute(query, [kind]).fetchall()]


async def worked(api: httpx.AsyncClient) -> None:
    """Of 100 items, 20 were given out: accepted, released, delayed, rejected, and abandoned by a member that left."""
    await joined(api, "w")
    await report(api, 100)
    ((lock, _, _),) = await held(api, "w", 20)
    await settle(
        api,
        "w",
        {"lock": lock, "accept": [[0, 3], [12, 14]], "reject": [[4, 5]], "error": "no such address"},
        {"lock": lock, "release": [[6, 8]], "delay_ms": 600_000, "error": "SMTP 451"},
    )


async def leave(api: httpx.AsyncClient) -> None:
    await asked(api, "share-heartbeat", member_id="w", member_epoch=-1)


async def made(api: httpx.AsyncClient, strategy: str, **body: Any) -> dict[str, Any]:
    response = await api.post(f"{GROUP}/offsets/plan", json={"strategy": strategy, **body})
    assert response.status_code == 201, response.text
    plan: dict[str, Any] = response.json()
    return plan


async def act(api: httpx.AsyncClient, plan: dict[str, Any], verb: str) -> httpx.Response:
    return await api.post(f"{GROUP}/offsets/plans/{plan['id']}/{verb}")


async def test_undoing_restores_every_item(
    api: httpx.AsyncClient, job: str, database: str, clock: VirtualClock
) -> None:
    await worked(api)
    await leave(api)
    before = rows(database)
    plan = await made(api, "to-offset", offset=2, **WHOLE)
    (line,) = plan["partitions"]
    assert (line["old_offset"], line["new_offset"]) == (6, 2), "from the first one that is not finished"
    assert rows(database) == before, "a plan moves nothing"
    assert (await act(api, plan, "apply")).status_code == 200
    assert rows(database) == {"retries": [], "dead": [], "locks": [(0,)], "partitions": [(0, 2)]}
    assert (await act(api, plan, "undo")).status_code == 200
    assert rows(database) == before
    assert journal(database, "items_begin")[-1] == {"begin": 6}
    assert journal(database, "items_done")[-1] == {"accept": [[12, 14]]}, "what is finished from there on"
    await joined(api, "v")
    clock.advance(2_000)  # the interval of assignments
    assert [(offsets, count) for _, offsets, count in await held(api, "v", 100)] == [
        ([[9, 11], [15, 19]], 2),
        ([[20, 99]], 1),
    ]


@pytest.mark.parametrize(
    ("strategy", "body", "expected"),
    [
        ("to-earliest", {}, 0),
        ("to-latest", {}, 100),
        ("to-offset", {"offset": 50}, 50),
        ("to-offset", {"offset": 500}, 100),
        ("shift-by", {"by": 4}, 10),
        ("to-current", {}, 6),
    ],
)
async def test_strategies(
    api: httpx.AsyncClient, job: str, database: str, strategy: str, body: dict[str, Any], expected: int
) -> None:
    await worked(api)
    await leave(api)
    plan = await made(api, strategy, **body)
    assert (await act(api, plan, "apply")).status_code == 200
    assert rows(database)["partitions"] == [(0, expected)]


async def test_a_time_is_where_samples_show_it(
    api: httpx.AsyncClient, job: str, runtime: Runtime, clock: VirtualClock, database: str
) -> None:
    await joined(api, "w")
    await report(api, 0)
    await runtime.get(SampleService).sample()
    clock.advance(30_000)
    await report(api, 100)
    await leave(api)
    plan = await made(api, "to-datetime", at=rfc3339(clock.now_ms() - 15_000), **WHOLE)
    assert (await act(api, plan, "apply")).status_code == 200
    assert rows(database)["partitions"] == [(0, 50)]


async def test_it_is_refused_while_members_work_and_when_items_moved(
    api: httpx.AsyncClient, job: str, clock: VirtualClock
) -> None:
    await worked(api)
    early = await made(api, "to-earliest", **WHOLE)
    assert_problem(await act(api, early, "apply"), Error.NON_EMPTY_GROUP)
    await leave(api)
    moved = await act(api, early, "apply")
    assert (moved.status_code, moved.json()["title"]) == (409, "INVALID_REQUEST"), "its items were released meanwhile"
    plan = await made(api, "to-earliest", **WHOLE)
    assert (await act(api, plan, "apply")).status_code == 200
    await joined(api, "w")
    clock.advance(2_000)  # the interval of assignments
    assert await held(api, "w", 1)
    await leave(api)
    undone = await act(api, plan, "undo")
    assert (undone.status_code, undone.json()["title"]) == (409, "INVALID_REQUEST"), "an item was given out meanwhile"


async def test_a_partition_that_the_plan_began_has_not_begun_after_undoing(
    api: httpx.AsyncClient, job: str, topics: TopicService, database: str
) -> None:
    await joined(api, "w")
    await leave(api)
    await topics.create("other", 1)
    await topics.set_watermarks("other", [Watermark(0, 0, 10)])
    plan = await made(api, "to-offset", offset=3, topics=[{"name": "other"}])
    assert (await act(api, plan, "apply")).status_code == 200
    assert rows(database)["partitions"] == [(0, 0), (0, 3)]
    assert (await act(api, plan, "undo")).status_code == 200
    assert rows(database)["partitions"] == [(0, 0)]


async def test_what_share_groups_have_not(
    api: httpx.AsyncClient, job: str, runtime: Runtime, clock: VirtualClock
) -> None:
    await worked(api)
    await commit(runtime, "other", "job", 0, offset=9)
    now = rfc3339(clock.now_ms())
    for strategy, body in (("copy-from-group", {"from_group": "other"}), ("to-committed-at", {"at": now})):
        response = await api.post(f"{GROUP}/offsets/plan", json={"strategy": strategy, **body, **WHOLE})
        assert_problem(response, Error.INVALID_REQUEST, field="strategy")
