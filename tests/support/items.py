"""Workers of the share group `mailing`, over HTTP, and a topic `job` of one partition."""

from __future__ import annotations

from typing import Any

import httpx

GROUP = "/v1/groups/mailing"


async def asked(api: httpx.AsyncClient, path: str, **body: Any) -> dict[str, Any]:
    response = await api.post(f"{GROUP}/{path}", json=body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def joined(api: httpx.AsyncClient, member_id: str, *topics: str) -> int:
    """The epoch of a new member."""
    names = list(topics or ("job",))
    answer = await asked(api, "share-heartbeat", member_id=member_id, member_epoch=0, subscribed_topic_names=names)
    return int(answer["member_epoch"])


async def acquire(
    api: httpx.AsyncClient, member_id: str, most: int = 10, end: int | None = None, **more: Any
) -> dict[str, Any]:
    """With the epoch that the member has."""
    beat = await asked(api, "share-heartbeat", member_id=member_id, member_epoch=0, subscribed_topic_names=["job"])
    ends = [] if end is None else [{"topic": "job", "partition": 0, "end_offset": end}]
    epoch = beat["member_epoch"]
    return await asked(api, "acquire", member_id=member_id, member_epoch=epoch, max_records=most, ends=ends, **more)


async def held(api: httpx.AsyncClient, member_id: str, most: int = 10, end: int | None = None, **more: Any) -> Any:
    """Locks as (id, offsets, delivery count)."""
    answer = await acquire(api, member_id, most, end, **more)
    return [(lock["lock"], lock["offsets"], lock["delivery_count"]) for lock in answer["locks"]]


async def settle(api: httpx.AsyncClient, member_id: str, *items: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await asked(api, "settle", member_id=member_id, items=items))["items"]
    return found


async def report(api: httpx.AsyncClient, end: int, partition: int = 0) -> None:
    known = {"partition": partition, "log_start_offset": 0, "log_end_offset": end}
    assert (await api.post("/v1/topics/job/watermarks", json={"partitions": [known]})).status_code == 200
