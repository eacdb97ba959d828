"""Items, dead letters and offsets of share groups, as operators see and change them.

Source: share.md 7.8; http-api.md 4.
"""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from kcoord.database.clock import VirtualClock
from kcoord.door.http.types import rfc3339
from kcoord.protocol.errors import Error
from tests.support.api import assert_problem
from tests.support.fixtures import ClientWith
from tests.support.items import GROUP, asked, held, joined, report, settle


async def get(api: httpx.AsyncClient, path: str) -> dict[str, Any]:
    response = await api.get(f"{GROUP}/{path}")
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def alive(api: httpx.AsyncClient, *, end: int) -> int:
    """A lock of all items of `job`, by a member `w`."""
    await joined(api, "w")
    ((lock, _, _),) = await held(api, "w", end, end=end)
    return int(lock)


def chosen(*offsets: list[int]) -> dict[str, Any]:
    return {"items": [{"topic": "job", "partition": 0, "offsets": list(offsets)}]}


async def test_who_has_what_and_why(api: httpx.AsyncClient, job: str, clock: VirtualClock) -> None:
    lock = await alive(api, end=4)
    at = clock.now_ms()
    await settle(api, "w", {"lock": lock, "release": [[1, 1]], "delay_ms": 5_000, "error": "SMTP 451"})
    await settle(api, "w", {"lock": lock, "release": [[3, 3]]})
    common = {"topic": "job", "partition": 0, "delivery_count": 1, "member_id": "w"}
    free = {**common, "lock": None, "acquired_at": None}
    acquired = {
        **common,
        "state": "acquired",
        "offsets": [[0, 0], [2, 2]],
        "lock": lock,
        "acquired_at": rfc3339(at),
        "until": rfc3339(at + 30_000),
        "last_error": None,
    }
    delayed = {**free, "state": "delayed", "offsets": [[1, 1]], "until": rfc3339(at + 5_000), "last_error": "SMTP 451"}
    retry = {**free, "state": "retry", "offsets": [[3, 3]], "until": rfc3339(at), "last_error": None}
    assert (await get(api, "items"))["items"] == [acquired, retry, delayed]
    for query, expected in {
        "state=acquired": [acquired],
        "state=delayed": [delayed],
        "state=retry": [retry],
        "member=w": [acquired, retry, delayed],
        "member=v": [],
        "topic=job&state=retry": [retry],
        "topic=other": [],
    }.items():
        assert (await get(api, f"items?{query}"))["items"] == expected, query
    found, cursor = [], ""
    while cursor is not None:
        page = await get(api, f"items?limit=1{cursor and f'&cursor={cursor}'}")
        found += page["items"]
        cursor = page["next_cursor"]
    assert found == [acquired, retry, delayed]
    clock.advance(30_000)
    assert [item["state"] for item in (await get(api, "items"))["items"]] == ["retry"] * 3


async def test_operators_release_and_reject_what_hangs(api: httpx.AsyncClient, job: str) -> None:
    lock = await alive(api, end=6)
    await settle(api, "w", {"lock": lock, "release": [[5, 5]], "delay_ms": 60_000})
    response = await api.post(f"{GROUP}/items/release", json={**chosen([0, 1], [5, 9]), "error": "worker hung"})
    assert response.json() == {"released": 3}
    response = await api.post(f"{GROUP}/items/reject", json=chosen([2, 2], [5, 5]))
    assert response.json() == {"rejected": 2}
    response = await api.post(f"{GROUP}/items/release", json=chosen([3, 4]))
    assert response.json() == {"released": 2}
    assert (await settle(api, "w", {"lock": lock, "accept": [[3, 4]]}))[0]["why"] == "released"
    other, letter = (await get(api, "dead-letters"))["dead_letters"]
    assert (letter["offset"], letter["cause"], letter["member_id"]) == (2, "rejected", "w")
    assert (other["offset"], other["error"]) == (5, "worker hung")
    again = await held(api, "w")
    assert [(offsets, count) for _, offsets, count in again] == [([[0, 1]], 2), ([[3, 4]], 2)]


async def test_dead_letters_are_replayed_and_discarded(api: httpx.AsyncClient, job: str, clock: VirtualClock) -> None:
    lock = await alive(api, end=3)
    await settle(api, "w", {"lock": lock, "reject": [[0, 2]], "error": "no such address"})
    letters = (await get(api, "dead-letters"))["dead_letters"]
    assert letters[0] == {
        "id": letters[0]["id"],
        "topic": "job",
        "partition": 0,
        "offset": 0,
        "delivery_count": 1,
        "cause": "rejected",
        "error": "no such address",
        "member_id": "w",
        "at": rfc3339(clock.now_ms()),
    }
    for query, number in {
        "cause=rejected": 3,
        "cause=limit": 0,
        "topic=other": 0,
        f"from={rfc3339(clock.now_ms())}": 3,
        f"to={rfc3339(clock.now_ms())}": 0,
        "limit=2": 2,
    }.items():
        assert len((await get(api, f"dead-letters?{query}"))["dead_letters"]) == number, query
    first, second, third = (letter["id"] for letter in letters)
    replay, discard = f"{GROUP}/dead-letters/replay", f"{GROUP}/dead-letters/discard"
    assert (await api.post(replay, json={"ids": [first]})).json() == {"replayed": 1}
    assert (await api.post(replay, json={"ids": [first]})).json() == {"replayed": 0}
    assert (await api.post(replay, json={"ids": [second], "reset_count": False})).json() == {"replayed": 1}
    assert (await api.post(discard, json={"ids": [third, 10**9]})).json() == {"discarded": 1}
    assert (await get(api, "dead-letters"))["dead_letters"] == []
    again = await held(api, "w")
    assert [(offsets, count) for _, offsets, count in again] == [([[0, 0]], 1), ([[1, 1]], 2)]


async def test_how_far_a_group_is(api: httpx.AsyncClient, job: str) -> None:
    """Lag as KIP-1226 counts it: what is neither accepted nor given up."""
    lock = await alive(api, end=5)
    parts = {"accept": [[0, 0]], "release": [[1, 1]], "reject": [[2, 2]]}
    await settle(api, "w", {"lock": lock, **parts}, {"lock": lock, "release": [[3, 3]], "delay_ms": 9_000})
    await report(api, 8)
    assert await get(api, "share-offsets") == {
        "group_id": "mailing",
        "lag": 6,
        "partitions": [
            {
                "topic": "job",
                "topic_id": job,
                "partition": 0,
                "start_offset": 1,
                "next_offset": 5,
                "end_offset": 8,
                "lag": 6,
                "acquired": 1,
                "retry": 1,
                "delayed": 1,
                "dead": 1,
            }
        ],
    }


async def test_a_group_without_members_begins_where_it_is_told(api: httpx.AsyncClient, job: str) -> None:
    path = f"{GROUP}/share-offsets"
    lock = await alive(api, end=5)
    body = {"partitions": [{"topic": "job", "partition": 0, "start_offset": 2}]}
    assert_problem(await api.post(path, json=body), Error.NON_EMPTY_GROUP)
    assert_problem(await api.delete(path, params={"topic": "job"}), Error.NON_EMPTY_GROUP)
    await settle(api, "w", {"lock": lock, "reject": [[1, 3]], "release": [[4, 4]]})
    await asked(api, "share-heartbeat", member_id="w", member_epoch=-1)
    body["partitions"] += [{**body["partitions"][0], "topic": "nothing"}, {**body["partitions"][0], "partition": 7}]
    found = (await api.post(path, json=body)).json()["partitions"]
    assert {(entry["topic"], entry["partition"]): entry["error_code"] for entry in found} == {
        ("job", 0): 0,
        ("job", 7): 3,
        ("nothing", 0): 3,
    }
    (partition,) = (await get(api, "share-offsets"))["partitions"]
    assert {key: partition[key] for key in ("start_offset", "lag", "acquired", "retry", "dead")} == {
        "start_offset": 2,
        "lag": 3,
        "acquired": 0,
        "retry": 0,
        "dead": 1,
    }
    found = (await api.delete(path, params={"topic": ["job", "nothing"]})).json()["topics"]
    assert [(entry["topic"], entry["error_code"]) for entry in found] == [("job", 0), ("nothing", 3)]
    assert (await get(api, "share-offsets"))["partitions"] == []
    assert (await api.delete(path, params={"topic": "job"})).json()["topics"][0]["error_code"] == 3


async def test_altering_makes_the_group(api: httpx.AsyncClient, job: str) -> None:
    body = {"partitions": [{"topic": "job", "partition": 0, "start_offset": 3}]}
    assert_problem(await api.delete(f"{GROUP}/share-offsets?topic=job"), Error.GROUP_ID_NOT_FOUND)
    assert (await api.post(f"{GROUP}/share-offsets", json=body)).status_code == 200
    described = (await api.get(GROUP)).json()
    assert (described["type"], described["state"]) == ("share", "Empty")
    await joined(api, "w")
    assert [offsets for _, offsets, _ in await held(api, "w", end=5)] == [[[3, 4]]]


async def test_what_is_not_named_begins_as_the_group_says(api: httpx.AsyncClient, job: str) -> None:
    assert (await api.patch(f"{GROUP}/config", json={"share.auto.offset.reset": "latest"})).status_code == 200
    assert (await api.patch("/v1/topics/job", json={"partitions": 2})).status_code == 200
    await report(api, 7, partition=1)
    body = {"partitions": [{"topic": "job", "partition": 0, "start_offset": 3}]}
    assert (await api.post(f"{GROUP}/share-offsets", json=body)).status_code == 200
    partitions = (await get(api, "share-offsets"))["partitions"]
    assert [partition["start_offset"] for partition in partitions] == [3, 7]


READS = ("items", "dead-letters", "share-offsets")
WRITES = {
    "items/release": chosen([0, 0]),
    "items/reject": chosen([0, 0]),
    "dead-letters/replay": {"ids": [1]},
    "dead-letters/discard": {"ids": [1]},
    "share-offsets": {"partitions": [{"topic": "job", "partition": 0, "start_offset": 0}]},
}


async def test_only_share_groups_have_items(api: httpx.AsyncClient, job: str) -> None:
    for kind in ("missing", "classic"):
        if kind == "classic":
            assert (await api.post("/v1/groups", json={"group_id": "mailing"})).status_code == 201
        for path in READS:
            assert_problem(await api.get(f"{GROUP}/{path}"), Error.GROUP_ID_NOT_FOUND)
        for path, body in WRITES.items():
            if kind == "classic" or path != "share-offsets":
                assert_problem(await api.post(f"{GROUP}/{path}", json=body), Error.GROUP_ID_NOT_FOUND)


async def test_rights(api: httpx.AsyncClient, job: str, client_with: ClientWith) -> None:
    lock = await alive(api, end=2)
    await settle(api, "w", {"lock": lock, "reject": [[0, 0]]})
    seer = await client_with("describe:group:mailing")
    for path in READS:
        assert [value for value in (await get(seer, path)).values() if isinstance(value, list)] == [[]]
    for path, body in WRITES.items():
        assert_problem(await seer.post(f"{GROUP}/{path}", json=body), Error.GROUP_AUTHORIZATION_FAILED)
    assert_problem(await seer.delete(f"{GROUP}/share-offsets?topic=job"), Error.GROUP_AUTHORIZATION_FAILED)
    blind = await client_with("describe:group:mailing", "alter-offsets:group:mailing")
    (letter,) = (await get(api, "dead-letters"))["dead_letters"]
    for path in ("items/release", "items/reject"):
        assert_problem(await blind.post(f"{GROUP}/{path}", json=WRITES[path]), Error.TOPIC_AUTHORIZATION_FAILED)
    for path in ("dead-letters/replay", "dead-letters/discard"):
        response = await blind.post(f"{GROUP}/{path}", json={"ids": [letter["id"]]})
        assert_problem(response, Error.TOPIC_AUTHORIZATION_FAILED)
    await asked(api, "share-heartbeat", member_id="w", member_epoch=-1)
    (entry,) = (await blind.post(f"{GROUP}/share-offsets", json=WRITES["share-offsets"])).json()["partitions"]
    assert entry["error"] == "TOPIC_AUTHORIZATION_FAILED"


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("items/release", {"items": []}, "items"),
        ("items/release", chosen([2, 1]), "items[0].offsets[0]"),
        ("items/reject", chosen([1]), "items[0].offsets[0]"),
        ("dead-letters/replay", {"ids": []}, "ids"),
        ("dead-letters/discard", {"ids": [1], "reset_count": True}, "reset_count"),
        ("share-offsets", {"partitions": [{"topic": "job", "partition": 0, "start_offset": -1}]}, None),
    ],
)
async def test_bad_input(api: httpx.AsyncClient, job: str, path: str, body: Any, field: str | None) -> None:
    problem = assert_problem(await api.post(f"{GROUP}/{path}", json=body), Error.INVALID_REQUEST)
    assert field is None or problem["field"] == field


async def test_a_partition_that_the_group_does_not_work_on(api: httpx.AsyncClient, job: str) -> None:
    await alive(api, end=1)
    for wrong in ({"topic": "nothing"}, {"partition": 9}):
        body = {"items": [{**chosen([0, 0])["items"][0], **wrong}]}
        assert_problem(await api.post(f"{GROUP}/items/release", json=body), Error.UNKNOWN_TOPIC_OR_PARTITION)
