"""The lag of share groups: the same number in descriptions, lists, samples and metrics; what is not known is not 0."""

from __future__ import annotations

from typing import Any

import httpx
import psycopg
import pytest

from frontend.pages.group.look import ShareLook
from groups.topics import TopicService
from kcoord.access.rights import ALL_ALLOWED, Principal
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from offsets.lag.samples import SampleService
from offsets.metrics import GroupMetrics
from offsets.share.operators import ItemOperators
from tests.support.fixtures import ClientWith
from tests.support.items import GROUP, acquire, held, joined, report, settle
from tests.support.offsets import commit


@pytest.fixture
def config(config: Config) -> Config:
    return config.override({"metrics.cache.ms": 0})


@pytest.fixture
async def job(topics: TopicService) -> str:
    await topics.create("job", 2)
    return "job"


async def described(api: httpx.AsyncClient) -> Any:
    """Of the whole group, and of each partition."""
    found = (await api.get(f"{GROUP}/share-offsets")).json()
    return found["lag"], [one["lag"] for one in found["partitions"]]


async def everywhere(api: httpx.AsyncClient, runtime: Runtime, clock: VirtualClock) -> set[Any]:
    """What the group's list, descriptions of lag, and metrics say after a sample."""
    clock.advance(120_000)
    await runtime.get(SampleService).sample()
    (line,) = (await api.get("/v1/groups?type=share")).json()["groups"]
    lag = (await api.get(f"{GROUP}/lag")).json()
    series = (await runtime.get(GroupMetrics).text(Principal(1, "test", ALL_ALLOWED))).decode()
    metric = [line for line in series.splitlines() if line.startswith("kcoord_group_lag{")]
    value = int(float(metric[0].split()[-1])) if metric else None
    assert sum(topic["lag"] or 0 for topic in lag["topics"]) == (lag["lag"] or 0)
    return {line["lag"], lag["lag"], value}


async def test_it_is_the_same_everywhere(
    api: httpx.AsyncClient, job: str, runtime: Runtime, clock: VirtualClock
) -> None:
    await joined(api, "w")
    assert await described(api) == (None, [None, None])
    assert await everywhere(api, runtime, clock) == {None}, "nobody has said where anything ends"
    ((lock, _, _),) = await held(api, "w", 10, end=100)
    await settle(api, "w", {"lock": lock, "accept": [[0, 3]], "release": [[4, 5]], "reject": [[6, 6]]})
    assert await described(api) == (95, [95, None]), "accepted and given up are done, 3 are held, 2 wait"
    assert await everywhere(api, runtime, clock) == {95}
    await report(api, 120)
    await report(api, 7, partition=1)
    assert await described(api) == (122, [115, 7])
    assert await everywhere(api, runtime, clock) == {122}


async def test_lists_can_be_sorted_and_filtered_by_it(
    api: httpx.AsyncClient, client_with: ClientWith, job: str, runtime: Runtime, clock: VirtualClock
) -> None:
    await joined(api, "w")
    await acquire(api, "w", 1, end=100)
    await report(api, 5, partition=1)
    await commit(runtime, "other", "job", 0, offset=90)
    await everywhere(api, runtime, clock)

    async def ids(client: httpx.AsyncClient, query: str) -> Any:
        return [(one["group_id"], one["lag"]) for one in (await client.get(f"/v1/groups?{query}")).json()["groups"]]

    assert await ids(api, "min_lag=50") == [("mailing", 105)]
    assert (await ids(api, "sort=-lag"))[0] == ("mailing", 105)
    narrow = await client_with("describe:group:mailing", "describe:topic:job")
    assert await ids(narrow, "min_lag=50") == [("mailing", 105)], "added up for who may describe only some topics"
    assert await ids(await client_with("describe:group:mailing"), "") == [("mailing", None)]


async def test_pages_of_partitions(api: httpx.AsyncClient, job: str) -> None:
    await joined(api, "w")
    await acquire(api, "w", 1, end=100)
    first = (await api.get(f"{GROUP}/lag?limit=1")).json()
    second = (await api.get(f"{GROUP}/lag", params={"limit": 1, "cursor": first["next_cursor"]})).json()
    pages = [(p["partition"], p["lag"]) for page in (first, second) for t in page["topics"] for p in t["partitions"]]
    assert pages == [(0, 100), (1, None)]
    assert first["unknown_partitions"] == 1
    assert second["next_cursor"] is None


async def test_how_long_the_oldest_item_has_waited(
    api: httpx.AsyncClient, job: str, runtime: Runtime, clock: VirtualClock, sql: psycopg.Connection[Any]
) -> None:
    """By interpolation between the samples of the log's end, from the first item that is not finished."""
    await joined(api, "w")

    async def waits() -> tuple[Any, Any, Any]:
        """In `GET lag`: the group's and that of partition 0; as the page of the group has it."""
        found = (await api.get(f"{GROUP}/lag")).json()
        (partition,) = [one for one in found["topics"][0]["partitions"] if one["partition"] == 0]
        look = ShareLook(await runtime.get(ItemOperators).offsets("mailing"))
        return found["time_lag_ms"], partition["time_lag_ms"], look.figures["waits_ms"]

    assert await waits() == (None, None, None), "nobody has said where anything ends"
    await report(api, 0)
    await runtime.get(SampleService).sample()
    clock.advance(100_000)
    await report(api, 100)
    ((lock, _, _),) = await held(api, "w", 10, end=100)
    assert await waits() == (100_000, 100_000, 100_000), "what is held is not finished"
    clock.advance(20_000)
    await settle(api, "w", {"lock": lock, "accept": [[0, 9]]})
    assert await waits() == (110_000, 110_000, 110_000), "item 10 was there after a tenth of the time"
    clock.advance(100_000)
    await runtime.get(SampleService).sample()
    assert sql.execute("select time_lag_ms from offsets_grouplag").fetchall() == [(210_000,)]
    ((lock, _, _),) = await held(api, "w", 90, end=100)
    await settle(api, "w", {"lock": lock, "accept": [[10, 99]]})
    assert await waits() == (0, 0, 0)
    ((lock, _, _),) = await held(api, "w", 1, end=101)
    assert await waits() == (None, None, None), "a worker has seen more than the samples say"
