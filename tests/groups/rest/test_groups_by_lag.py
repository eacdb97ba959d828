"""The list of groups by how far they are behind, as of the last sample."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from groups.core.model.types import GroupState
from groups.engine.service import GroupService
from groups.topics import TopicService, Watermark
from kcoord.database.clock import VirtualClock
from kcoord.door.http.types import rfc3339
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from offsets.lag.samples import SampleService
from tests.support.api import assert_problem
from tests.support.rest_groups import group

GROUPS = "/v1/groups"
LAGS = {"behind": 90, "far": 180, "level": 0, "also": 90}


@pytest.fixture(autouse=True)
async def sampled(
    api: httpx.AsyncClient, topics: TopicService, service: GroupService, runtime: Runtime, clock: VirtualClock
) -> None:
    """Four groups whose lag is known and two whose is not; sampled a second ago, with news since."""
    await topics.create("orders", 2)
    await topics.create("silent", 1)
    await topics.set_watermarks("orders", [Watermark(0, 0, 100), Watermark(1, 0, 100)])
    await commit(api, "behind", (0, 10))
    await commit(api, "also", (1, 10))
    await commit(api, "far", (0, 10), (1, 10))
    await commit(api, "level", (0, 100))
    await commit(api, "unknown", (0, 10), topic="silent")
    await service.put(group("nothing", GroupState.EMPTY))
    clock.advance(1_000)
    await runtime.get(SampleService).sample()
    clock.advance(1_000)
    await commit(api, "behind", (0, 100))


async def commit(api: httpx.AsyncClient, group_id: str, *offsets: tuple[int, int], topic: str = "orders") -> None:
    """Commit (partition, offset)s, with no member."""
    partitions = [{"partition": p, "committed_offset": o} for p, o in offsets]
    body = {"topics": [{"name": topic, "partitions": partitions}]}
    assert (await api.post(f"{GROUPS}/{group_id}/offsets/commit", json=body)).status_code == 200


async def listed(api: httpx.AsyncClient, query: str = "") -> list[tuple[str, int | None]]:
    """Group id and lag of a list that is read in pages of two."""
    seen: list[tuple[str, int | None]] = []
    cursor: str | None = ""
    while cursor is not None:
        page: dict[str, Any] = (await api.get(f"{GROUPS}?limit=2&{query}{cursor}")).json()
        seen += [(line["group_id"], line["lag"]) for line in page["groups"]]
        cursor = page["next_cursor"] and f"&cursor={page['next_cursor']}"
    return seen


async def test_lag_is_as_of_the_last_sample(api: httpx.AsyncClient, clock: VirtualClock) -> None:
    assert dict(await listed(api)) == {**LAGS, "unknown": None, "nothing": None}
    (line,) = (await api.get(f"{GROUPS}?q=behind")).json()["groups"]
    assert line["lag_sampled_at"] == rfc3339(clock.now_ms() - 1_000)
    assert (await api.get(f"{GROUPS}/behind/lag")).json()["lag"] == 0, "as of now"
    await commit(api, "new", (0, 1))
    (line,) = (await api.get(f"{GROUPS}?q=new")).json()["groups"]
    assert (line["lag"], line["lag_sampled_at"]) == (None, None)


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("lag", ["nothing", "unknown", "level", "also", "behind", "far"]),
        ("-lag", ["far", "also", "behind", "level", "nothing", "unknown"]),
        ("time_lag_ms", ["nothing", "unknown", "level", "also", "behind", "far"]),
        ("-time_lag_ms", ["also", "behind", "far", "level", "nothing", "unknown"]),
    ],
)
async def test_orders_and_their_pages(api: httpx.AsyncClient, sort: str, expected: list[str]) -> None:
    assert [group_id for group_id, _ in await listed(api, f"sort={sort}")] == expected


async def test_time_lag_that_is_older_than_the_samples_is_at_least_that(api: httpx.AsyncClient) -> None:
    lines = {line["group_id"]: line for line in (await api.get(f"{GROUPS}?min_time_lag_ms=1")).json()["groups"]}
    assert set(lines) == {"also", "behind", "far"}
    assert [lines["far"]["time_lag_ms"], lines["far"]["time_lag_at_least_ms"]] == [None, 1_000]


@pytest.mark.parametrize(
    ("min_lag", "expected"),
    [
        (0, {"behind", "far", "level", "also"}),
        (1, {"behind", "far", "also"}),
        (90, {"behind", "far", "also"}),
        (91, {"far"}),
        (2**63 - 1, set()),
    ],
)
async def test_groups_that_are_so_far_behind_in_any_order(
    api: httpx.AsyncClient, min_lag: int, expected: set[str]
) -> None:
    for sort in ("group_id", "-updated_at", "state", "members", "-members", "lag", "-lag"):
        assert {group_id for group_id, _ in await listed(api, f"min_lag={min_lag}&sort={sort}")} == expected, sort


async def test_other_conditions_hold_too(api: httpx.AsyncClient) -> None:
    assert await listed(api, "min_lag=1&q=a&sort=-lag") == [("far", 180), ("also", 90)]
    assert await listed(api, "min_lag=1&state=Stable") == []


@pytest.mark.parametrize("value", ["-1", "9223372036854775808", "1.5", "many", "", "1e3", "0x10"])
async def test_a_bad_number_is_named(api: httpx.AsyncClient, value: str) -> None:
    assert_problem(await api.get(f"{GROUPS}?min_lag={value}"), Error.INVALID_REQUEST, field="min_lag")


async def test_a_cursor_of_another_order_is_refused(api: httpx.AsyncClient) -> None:
    cursor = (await api.get(f"{GROUPS}?limit=1&sort=lag")).json()["next_cursor"]
    for sort in ("-lag", "members", "group_id"):
        assert_problem(await api.get(f"{GROUPS}?sort={sort}&cursor={cursor}"), Error.INVALID_REQUEST, field="cursor")
