"""The lag of share groups: the same number in descriptions, lists, samples and metrics; what is not known is not 0."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from groups.catalogue.topics import TopicService
from kcoord.access.rights import ALL_ALLOWED, Principal
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from offsets.lag.samples import SampleService
from offsets.metrics.series import GroupMetrics
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
