"""POST /v1/groups/{group_id}/acquire and /settle.

Source: http-api.md 2, "acquire, settle"; share.md 7.
"""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from kcoord.database.clock import VirtualClock
from kcoord.http.types import rfc3339
from kcoord.protocol.errors import Error
from tests.support.api import assert_problem
from tests.support.fixtures import ClientWith

GROUP = "/v1/groups/mailing"


@pytest.fixture
async def job(api: httpx.AsyncClient) -> str:
    """A topic `job` of one partition; its id."""
    response = await api.post("/v1/topics", json={"name": "job", "partitions": 1})
    assert response.status_code == 201, response.text
    topic_id: str = response.json()["topic_id"]
    return topic_id


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


async def acquire(api: httpx.AsyncClient, member_id: str, most: int = 10, end: int = 0, **more: Any) -> dict[str, Any]:
    """With the epoch that the member has."""
    epoch = (await asked(api, "share-heartbeat", member_id=member_id, member_epoch=more.pop("epoch", 1)))[
        "member_epoch"
    ]
    ends = [{"topic": "job", "partition": 0, "end_offset": end}] if end else []
    return await asked(api, "acquire", member_id=member_id, member_epoch=epoch, max_records=most, ends=ends, **more)


async def held(api: httpx.AsyncClient, member_id: str, most: int = 10, end: int = 0, **more: Any) -> Any:
    """Locks as (id, offsets, delivery count)."""
    answer = await acquire(api, member_id, most, end, **more)
    return [(lock["lock"], lock["offsets"], lock["delivery_count"]) for lock in answer["locks"]]


async def settle(api: httpx.AsyncClient, member_id: str, *items: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await asked(api, "settle", member_id=member_id, items=items))["items"]
    return found


async def test_what_is_acquired_is_settled_and_gone(api: httpx.AsyncClient, job: str, clock: VirtualClock) -> None:
    session = rfc3339(clock.now_ms() + 45_000)
    await joined(api, "w")
    answer = await acquire(api, "w", 3, end=5)
    lock = answer["locks"][0]["lock"]
    until = rfc3339(clock.now_ms() + 30_000)
    assert answer == {
        "error_code": 0,
        "session_expires_at": session,
        "settled": [],
        "locks": [
            {
                "lock": lock,
                "topic": "job",
                "topic_id": job,
                "partition": 0,
                "offsets": [[0, 2]],
                "delivery_count": 1,
                "locked_until": until,
                "last_error": None,
            }
        ],
    }
    part = {"lock": lock, "accept": [[0, 0]], "gap": [[2, 2]]}
    done = {"lock": lock, "error_code": 0, "error": "NONE", "why": None, "held_by": None}
    assert await settle(api, "w", part) == [{**done, "locked_until": until}]
    rest = {"lock": lock, "accept": [[1, 1]]}
    answer = await acquire(api, "w", settle=[rest])
    assert answer["settled"] == [{**done, "locked_until": None}]
    assert [found["offsets"] for found in answer["locks"]] == [[[3, 4]]]
    assert await held(api, "w") == []


async def test_released_items_come_again_with_their_count_and_error(
    api: httpx.AsyncClient, job: str, clock: VirtualClock
) -> None:
    await joined(api, "w")
    ((lock, _, _),) = await held(api, "w", 3, end=3)
    await settle(api, "w", {"lock": lock, "release": [[1, 1]], "error": "SMTP 451"})
    await settle(api, "w", {"lock": lock, "release": [[0, 0]], "delay_ms": 5_000})
    again = (await acquire(api, "w"))["locks"]
    assert [(found["offsets"], found["delivery_count"], found["last_error"]) for found in again] == [
        ([[1, 1]], 2, "SMTP 451")
    ]
    clock.advance(5_000)
    assert [offsets for _, offsets, _ in await held(api, "w")] == [[[0, 0]]]


async def test_backing_off_grows_with_each_delivery(api: httpx.AsyncClient, job: str, clock: VirtualClock) -> None:
    settings = {
        "share.release.backoff.ms": 1_000,
        "share.release.backoff.multiplier": 3,
        "share.release.backoff.max.ms": 5_000,
    }
    assert (await api.patch(f"{GROUP}/config", json=settings)).status_code == 200
    await joined(api, "w")
    ((lock, _, _),) = await held(api, "w", end=1)
    for delay in (1_000, 3_000, 5_000):
        await settle(api, "w", {"lock": lock, "release": [[0, 0]]})
        clock.advance(delay - 1)
        assert await held(api, "w") == []
        clock.advance(1)
        ((lock, _, _),) = await held(api, "w")


async def test_a_lock_that_is_over_is_refused_and_says_who_has_the_items(
    api: httpx.AsyncClient, job: str, clock: VirtualClock
) -> None:
    await joined(api, "w")
    await joined(api, "v")
    ((lock, _, _),) = await held(api, "w", 2, end=2)
    clock.advance(30_000)
    refused = {"lock": lock, "error_code": 121, "error": "INVALID_RECORD_STATE", "locked_until": None, "why": "expired"}
    late = {"lock": lock, "accept": [[0, 1]]}
    assert await settle(api, "w", late) == [{**refused, "held_by": None}]
    ((other, offsets, count),) = await held(api, "v")
    assert (offsets, count) == ([[0, 1]], 2)
    assert await settle(api, "w", late) == [{**refused, "held_by": "v"}]
    stolen = (await settle(api, "w", {"lock": other, "accept": [[0, 1]]}))[0]
    assert (stolen["why"], stolen["held_by"]) == ("other_member", "v")
    assert (await settle(api, "w", {"lock": 10**9, "accept": [[0, 1]]}))[0]["why"] == "unknown"


async def test_entries_are_settled_on_their_own(api: httpx.AsyncClient, job: str) -> None:
    await joined(api, "w")
    ((lock, _, _),) = await held(api, "w", 3, end=3)
    results = await settle(
        api,
        "w",
        {"lock": lock, "accept": [[0, 0]]},
        {"lock": lock, "accept": [[1, 7]]},
        {"lock": lock, "reject": [[2, 2]], "error": "no such address"},
    )
    assert [result["error_code"] for result in results] == [0, 121, 0]
    assert results[1]["why"] == "settled"  # some of it: the others were never held
    assert (await settle(api, "w", {"lock": lock, "renew": [[1, 1]]}))[0]["error_code"] == 0


async def test_settling_again_in_the_same_way_is_a_success(api: httpx.AsyncClient, job: str) -> None:
    """Differs from Kafka: there the same acknowledgement again is INVALID_RECORD_STATE, or ignored."""
    await joined(api, "w")
    ((lock, _, _),) = await held(api, "w", 4, end=4)
    entry = {"lock": lock, "accept": [[0, 0]], "gap": [[1, 1]], "release": [[2, 2]], "reject": [[3, 3]]}
    for _ in range(2):
        assert [result["error_code"] for result in await settle(api, "w", entry)] == [0]
    assert (await settle(api, "w", {"lock": lock, "reject": [[0, 0]]}))[0]["why"] == "settled"
    assert (await settle(api, "v", entry))[0]["why"] == "settled"


async def test_renewed_locks_last_as_long_again(api: httpx.AsyncClient, job: str, clock: VirtualClock) -> None:
    await joined(api, "w")
    ((lock, _, _),) = await held(api, "w", 2, end=2, lock_ms=20_000)
    clock.advance(15_000)
    ((result),) = await settle(api, "w", {"lock": lock, "renew": [[0, 1]]})
    assert result["locked_until"] == rfc3339(clock.now_ms() + 20_000)
    clock.advance(19_999)
    assert await held(api, "w") == []
    clock.advance(1)
    assert [count for _, _, count in await held(api, "w")] == [2]


async def test_an_item_is_delivered_so_often_and_no_more(api: httpx.AsyncClient, job: str, clock: VirtualClock) -> None:
    assert (await api.patch(f"{GROUP}/config", json={"share.delivery.count.limit": 2})).status_code == 200
    await joined(api, "w")
    await held(api, "w", 1, end=1)
    clock.advance(30_000)
    ((lock, _, count),) = await held(api, "w")
    assert count == 2
    await settle(api, "w", {"lock": lock, "release": [[0, 0]]})
    clock.advance(30_000)
    assert await held(api, "w") == []


async def test_the_limit_of_locks_counts_what_is_locked(api: httpx.AsyncClient, job: str) -> None:
    """Differs from Kafka: there it bounds the span from the first unfinished offset on, finished ones included."""
    assert (await api.patch(f"{GROUP}/config", json={"share.partition.max.record.locks": 100})).status_code == 200
    await joined(api, "w")
    ((lock, offsets, _),) = await held(api, "w", 500, end=500)
    assert offsets == [[0, 99]]
    assert await held(api, "w") == []
    await settle(api, "w", {"lock": lock, "accept": [[1, 99]]})
    assert [offsets for _, offsets, _ in await held(api, "w", 500)] == [[[100, 198]]]


async def test_a_reported_watermark_is_an_end(api: httpx.AsyncClient, job: str) -> None:
    await joined(api, "w")
    assert await held(api, "w") == []
    report = {"partitions": [{"partition": 0, "log_start_offset": 0, "log_end_offset": 2}]}
    assert (await api.post("/v1/topics/job/watermarks", json=report)).status_code == 200
    assert [offsets for _, offsets, _ in await held(api, "w")] == [[[0, 1]]]
    assert [offsets for _, offsets, _ in await held(api, "w", end=3)] == [[[2, 2]]]
    assert await held(api, "w", end=1) == []


async def test_who_may_acquire(api: httpx.AsyncClient, job: str, client_with: ClientWith) -> None:
    path = f"{GROUP}/acquire"
    body = {"member_id": "w", "member_epoch": 1}
    assert_problem(await api.post(path, json=body), Error.GROUP_ID_NOT_FOUND)
    settling = {"member_id": "w", "items": [{"lock": 1, "accept": [[0, 0]]}]}
    assert_problem(await api.post(f"{GROUP}/settle", json=settling), Error.GROUP_ID_NOT_FOUND)
    await joined(api, "w")
    assert_problem(await api.post(path, json={**body, "member_id": "v"}), Error.UNKNOWN_MEMBER_ID)
    assert_problem(await api.post(path, json={**body, "member_epoch": 0}), Error.UNKNOWN_MEMBER_ID)
    assert_problem(await api.post(path, json={**body, "member_epoch": 7}), Error.FENCED_MEMBER_EPOCH)
    assert_problem(await api.post(path, json={**body, "lock_ms": 10}), Error.INVALID_REQUEST, field="lock_ms")
    unknown = [{"topic": "nothing", "partition": 0, "end_offset": 1}]
    assert_problem(await api.post(path, json={**body, "ends": unknown}), Error.UNKNOWN_TOPIC_OR_PARTITION)
    stranger = await client_with("read:group:other")
    assert_problem(await stranger.post(path, json=body), Error.GROUP_AUTHORIZATION_FAILED)
    assert_problem(await stranger.post(f"{GROUP}/settle", json=settling), Error.GROUP_AUTHORIZATION_FAILED)
    reader = await client_with("read:group:mailing")
    assert_problem(await reader.post(path, json=body), Error.TOPIC_AUTHORIZATION_FAILED)


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        ({"lock": 1}, "items[0]"),
        ({"lock": 1, "accept": []}, "items[0]"),
        ({"lock": 1, "accept": [[0, 1]], "reject": [[1, 2]]}, "items[0]"),
        ({"lock": 1, "accept": [[0, 1], [1, 1]]}, "items[0]"),
        ({"lock": 1, "renew": [[2, 1]]}, "items[0].renew"),
    ],
)
async def test_entries_that_make_no_sense(api: httpx.AsyncClient, entry: dict[str, Any], field: str) -> None:
    response = await api.post(f"{GROUP}/settle", json={"member_id": "w", "items": [entry]})
    assert_problem(response, Error.INVALID_REQUEST, field=field)
