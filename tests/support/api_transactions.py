"""Transactions over HTTP with sensible defaults: producer 7, epoch 0, of transactional id t."""

from __future__ import annotations

from typing import Any

import httpx


def txn_body(offsets: dict[int, int], topic: str = "orders", **changes: Any) -> dict[str, Any]:
    """The body of a transactional commit."""
    partitions = [{"partition": partition, "committed_offset": offset} for partition, offset in offsets.items()]
    body = {
        "transactional_id": "t",
        "producer_id": 7,
        "producer_epoch": 0,
        "topics": [{"name": topic, "partitions": partitions}],
    }
    return {**body, **changes}


async def txn_commit(
    api: httpx.AsyncClient, offsets: dict[int, int], group: str = "g", **changes: Any
) -> httpx.Response:
    """A transactional commit."""
    return await api.post(f"/v1/groups/{group}/offsets/txn-commit", json=txn_body(offsets, **changes))


async def pend(api: httpx.AsyncClient, offsets: dict[int, int], group: str = "g", **changes: Any) -> None:
    """A transactional commit that is accepted."""
    response = await txn_commit(api, offsets, group, **changes)
    assert response.status_code == 200, response.text
    errors = {entry["error"] for topic in response.json()["topics"] for entry in topic["partitions"]}
    assert errors == {"NONE"}, response.text


async def plain_commit(api: httpx.AsyncClient, offsets: dict[int, int], group: str = "g") -> None:
    """A commit without transaction and member."""
    body = {"topics": txn_body(offsets)["topics"]}
    assert (await api.post(f"/v1/groups/{group}/offsets/commit", json=body)).status_code == 200


async def end(
    api: httpx.AsyncClient, *, committed: bool = True, transactional_id: str = "t", **changes: Any
) -> httpx.Response:
    """The end of a transaction."""
    body = {"producer_id": 7, "producer_epoch": 0, "committed": committed, **changes}
    return await api.post(f"/v1/transactions/{transactional_id}/end", json=body)


async def ended(api: httpx.AsyncClient, **changes: Any) -> tuple[int, int]:
    """An end that is accepted: how many offsets were pending, and how many of them are committed now."""
    response = await end(api, **changes)
    assert response.status_code == 200, response.text
    body = response.json()
    assert body["error_code"] == 0
    return body["pending_offsets"], body["committed_offsets"]


async def fetched(api: httpx.AsyncClient, group: str = "g", *, stable: bool = False) -> dict[int, int | str]:
    """The committed offsets of partitions 0 to 2 of orders, without those that have none; errors by name."""
    topics = [{"name": "orders", "partitions": [0, 1, 2]}]
    response = await api.post(f"/v1/groups/{group}/offsets/fetch", json={"topics": topics, "require_stable": stable})
    (topic,) = response.json()["topics"]
    found = {p["partition"]: p["committed_offset"] if p["error_code"] == 0 else p["error"] for p in topic["partitions"]}
    return {partition: value for partition, value in found.items() if value != -1}
