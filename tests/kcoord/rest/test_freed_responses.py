"""What a list held is freed with its response, without a search for cyclic garbage."""

from __future__ import annotations

import gc

import httpx

from groups.topics import TopicService

TOPICS = 200


async def garbage_of(api: httpx.AsyncClient, path: str) -> int:
    """Objects of a request that only a search for cyclic garbage frees."""
    await api.get(path)
    gc.collect()
    gc.disable()
    try:
        assert (await api.get(path)).status_code == 200
        return gc.collect()
    finally:
        gc.enable()


async def test_lists_leave_no_garbage_that_grows_with_them(api: httpx.AsyncClient, topics: TopicService) -> None:
    for number in range(TOPICS):
        await topics.create(f"t{number:03}", 1)
    few = await garbage_of(api, "/v1/topics?limit=1")
    many = await garbage_of(api, f"/v1/topics?limit={TOPICS}")
    assert many - few < TOPICS, (few, many)
