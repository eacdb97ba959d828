"""POST /v1/groups/{group_id}/acquire and /settle.

Source: http-api.md 2, "acquire, settle"; share.md 7.
"""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from prometheus_client import REGISTRY

from groups.engine.service import GroupService
from kcoord.database.clock import VirtualClock
from kcoord.door.http.types import rfc3339
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from offsets.share.timers import LockTimers
from tests.support.api import assert_problem
from tests.support.fixtures import ClientWith
from tests.support.items import GROUP, acquire, asked, held, joined, report, settle


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
        "lock_ms": 30_000,
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
    await report(api, 2)
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


async def test_members_that_are_gone_hand_back_what_they_hold(
    api: httpx.AsyncClient, job: str, clock: VirtualClock, service: GroupService
) -> None:
    """Differs from Kafka: there it stays locked until the lock is over."""
    await joined(api, "w")
    ((lock, _, _),) = await held(api, "w", 2, end=2)
    await joined(api, "v")
    clock.advance(1_000)  # one target a second
    assert await held(api, "v") == []
    await asked(api, "share-heartbeat", member_id="w", member_epoch=-1)
    ((other, offsets, count),) = await held(api, "v")
    assert (offsets, count) == ([[0, 1]], 2)
    (result,) = await settle(api, "w", {"lock": lock, "accept": [[0, 1]]})
    assert (result["why"], result["held_by"]) == ("released", "v")
    await joined(api, "u")
    clock.advance(1_000)
    assert (await api.post(f"{GROUP}/members/v/kick", json={})).status_code == 204
    ((_, _, count),) = await held(api, "u", lock_ms=60_000)
    assert count == 3
    clock.advance(45_000)
    await service.tick("mailing")  # the session of u is over, its lock is not
    await joined(api, "t")
    clock.advance(1_000)
    ((_, _, count),) = await held(api, "t")
    assert count == 4
    assert (await settle(api, "v", {"lock": other, "accept": [[0, 1]]}))[0]["why"] == "released"


async def test_where_partitions_begin_is_decided_when_their_topic_is_named(api: httpx.AsyncClient, job: str) -> None:
    """Differs from Kafka: there the first fetch decides, and what was written since joining is skipped."""
    assert (await api.patch(f"{GROUP}/config", json={"share.auto.offset.reset": "latest"})).status_code == 200
    await report(api, 5)
    await joined(api, "w")
    await report(api, 7)
    assert [offsets for _, offsets, _ in await held(api, "w")] == [[[5, 6]]]


@pytest.mark.parametrize("first", [0, 5])
async def test_without_an_end_the_first_one_decides_where_latest_begins(
    api: httpx.AsyncClient, job: str, first: int
) -> None:
    assert (await api.patch(f"{GROUP}/config", json={"share.auto.offset.reset": "latest"})).status_code == 200
    await joined(api, "w")
    assert await held(api, "w", end=first) == []
    assert [offsets for _, offsets, _ in await held(api, "w", end=7)] == [[[first, 6]]]


@pytest.mark.parametrize("first", [0, 5])
async def test_so_does_the_first_watermark_though_nobody_looks_before_the_next(
    api: httpx.AsyncClient, job: str, first: int
) -> None:
    assert (await api.patch(f"{GROUP}/config", json={"share.auto.offset.reset": "latest"})).status_code == 200
    await joined(api, "w")
    for end in (first, 7):
        await report(api, end)
    assert [offsets for _, offsets, _ in await held(api, "w")] == [[[first, 6]]]


async def test_nothing_of_a_new_partition_is_missed(api: httpx.AsyncClient, job: str, clock: VirtualClock) -> None:
    assert (await api.patch(f"{GROUP}/config", json={"share.auto.offset.reset": "latest"})).status_code == 200
    await report(api, 5)
    await joined(api, "w")
    assert (await api.patch("/v1/topics/job", json={"partitions": 2})).status_code == 200
    await report(api, 4, partition=1)
    clock.advance(1_000)
    locks = (await acquire(api, "w"))["locks"]
    assert [(lock["partition"], lock["offsets"]) for lock in locks] == [(1, [[0, 3]])]


async def test_items_go_with_their_group_and_with_their_topic(
    api: httpx.AsyncClient, job: str, clock: VirtualClock, runtime: Runtime
) -> None:
    async def rows() -> list[int]:
        tables = ("sharepartition", "sharelock", "shareretry", "sharedead", "shareended")
        async with runtime.db.connection() as connection:
            return [await runtime.db.value(connection, f"select count(*) from offsets_{t}", {}) for t in tables]

    for gone in ("/v1/topics/job", GROUP):
        if gone == GROUP:
            assert (await api.post("/v1/topics", json={"name": "job", "partitions": 1})).status_code == 201
        await joined(api, "w")
        clock.advance(1_000)
        ((lock, _, _),) = await held(api, "w", 4, end=4)
        await settle(api, "w", {"lock": lock, "accept": [[0, 0]], "release": [[1, 1]], "reject": [[2, 2]]})
        assert await rows() == [1, 1, 1, 1, 1]
        if gone == GROUP:
            await asked(api, "share-heartbeat", member_id="w", member_epoch=-1)
        assert (await api.delete(gone)).status_code == 204
        assert await rows() == [0, 0, 0, 0, 0]


async def test_timers_end_locks_and_forget_what_became_of_them(
    api: httpx.AsyncClient, job: str, clock: VirtualClock, runtime: Runtime
) -> None:
    assert (await api.patch(f"{GROUP}/config", json={"share.delivery.count.limit": 2})).status_code == 200
    timers = runtime.get(LockTimers)
    await joined(api, "w")
    ((lock, _, _),) = await held(api, "w", 2, end=2)
    clock.advance(29_999)
    assert await timers.end_overdue() == 0
    clock.advance(1)
    assert await timers.end_overdue() == 1
    assert await timers.end_overdue() == 0
    assert (await settle(api, "w", {"lock": lock, "accept": [[0, 1]]}))[0]["why"] == "expired"
    clock.advance(600_001)
    await timers.end_overdue()
    assert (await settle(api, "w", {"lock": lock, "accept": [[0, 1]]}))[0]["why"] == "unknown"


async def test_items_are_counted(api: httpx.AsyncClient, job: str) -> None:
    def counted(name: str, **labels: str) -> float:
        return REGISTRY.get_sample_value(name, labels) or 0

    acquired, rejected = counted("kcoord_share_items_acquired_total"), "kcoord_share_acknowledgements_total"
    before = counted(rejected, type="reject")
    await joined(api, "w")
    ((lock, _, _),) = await held(api, "w", 3, end=3)
    await settle(api, "w", {"lock": lock, "reject": [[0, 1]]}, {"lock": lock, "reject": [[0, 7]]})
    assert counted("kcoord_share_items_acquired_total") == acquired + 3
    assert counted(rejected, type="reject") == before + 2
