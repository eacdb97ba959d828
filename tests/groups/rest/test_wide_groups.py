"""Groups of very many partitions are described without keeping the event loop from other requests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from groups.api.rest import group_views
from groups.topics import TopicService
from kcoord.process import off_loop
from offsets.core import lag as lag_rules
from offsets.lag.service import LagReads
from tests.support.api import Members
from tests.support.api_consumers import joining

PARTITIONS = 10


def noting(threads: list[int], work: Callable[..., Any]) -> Callable[..., Any]:
    """`work`, which also notes the thread that it runs in."""

    def noted(*args: Any, **kwargs: Any) -> Any:
        threads.append(threading.get_ident())
        return work(*args, **kwargs)

    return noted


@pytest.fixture
async def wide(api: httpx.AsyncClient, topics: TopicService, monkeypatch: pytest.MonkeyPatch) -> None:
    """A consumer group whose topics are more than a small group has."""
    monkeypatch.setattr(off_loop, "ABOVE", PARTITIONS - 1)
    names = [f"t{number}" for number in range(PARTITIONS)]
    for name in names:
        await topics.create(name, 1)
    joined = await api.post("/v1/groups/c/consumer-heartbeat", json=joining(subscribed_topic_names=names))
    assert joined.status_code == 200, joined.text


async def test_a_description_is_put_together_off_the_event_loop(
    wide: None, api: httpx.AsyncClient, members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    await members.stable("g")
    for name in ("describe_group", "describe_consumer_group", "seen_classic_group", "seen_consumer_group"):
        monkeypatch.setattr(group_views, name, noting(threads, getattr(group_views, name)))
    described = (await api.get("/v1/groups/c")).json()
    assert len(described["members"][0]["assignment"]) == PARTITIONS
    assert (await api.get("/v1/groups/g")).json()["state"] == "Stable"
    assert len(threads) == 4
    assert threading.get_ident() not in threads


@pytest.mark.parametrize("partitions", ["true", "false"])
async def test_lag_of_many_topics_is_added_up_off_the_event_loop(
    wide: None, api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, partitions: str
) -> None:
    threads: list[int] = []
    monkeypatch.setattr(LagReads, "_topic", noting(threads, LagReads._topic))
    monkeypatch.setattr(lag_rules, "total", noting(threads, lag_rules.total))
    found = (await api.get("/v1/groups/c/lag", params={"partitions": partitions, "limit": 3})).json()
    assert [topic["topic"] for topic in found["topics"]] == ["t0", "t1", "t2"]
    assert found["unknown_partitions"] == PARTITIONS
    assert len(threads) == PARTITIONS + 1
    assert threading.get_ident() not in threads
