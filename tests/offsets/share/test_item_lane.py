"""Requests of many workers share a transaction; what is refused, or has to wait, leaves the others as they are.

Source: architecture.md 4, "Fast lanes"; share.md 7.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import psycopg
import pytest

from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from offsets.share.store import ItemRequest, ShareStore
from tests.support.items import GROUP, asked, held, joined, report, settle

WORKERS = [f"w{number}" for number in range(12)]


@pytest.fixture
async def epochs(api: httpx.AsyncClient, job: str, clock: VirtualClock) -> dict[str, int]:
    """Of workers, which all have the partition."""
    for worker in WORKERS:
        await joined(api, worker)
    clock.advance(1_000)
    found = {}
    for worker in WORKERS:
        beat = await asked(api, "share-heartbeat", member_id=worker, member_epoch=0, subscribed_topic_names=["job"])
        found[worker] = beat["member_epoch"]
    return found


class Batches:
    """How many requests each transaction carried."""

    def __init__(self, runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
        self.carried: list[int] = []
        store = runtime.get(ShareStore)
        meet = store.meet

        async def counted(connection: Any, requests: list[ItemRequest]) -> Any:
            self.carried.append(len(requests))
            return await meet(connection, requests)

        monkeypatch.setattr(store, "meet", counted)


@pytest.fixture
def batches(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> Batches:
    return Batches(runtime, monkeypatch)


async def together(api: httpx.AsyncClient, epochs: dict[str, int], **more: Any) -> list[dict[str, Any]]:
    """The answers to an acquire of each worker, sent at once. `more`: for a worker, what its request says instead."""

    async def one(worker: str) -> dict[str, Any]:
        body = {"member_id": worker, "member_epoch": epochs[worker], "max_records": 2, **more.get(worker, {})}
        answer: dict[str, Any] = (await api.post(f"{GROUP}/acquire", json=body)).json()
        return answer

    return await asyncio.gather(*map(one, WORKERS))


def offsets(answer: dict[str, Any]) -> list[int]:
    ranges = [found for lock in answer["locks"] for found in lock["offsets"]]
    return [offset for first, last in ranges for offset in range(first, last + 1)]


async def test_many_share_a_transaction_and_no_item(
    api: httpx.AsyncClient, epochs: dict[str, int], batches: Batches
) -> None:
    await report(api, 30)
    answers = await together(api, epochs)
    assert sorted(offset for answer in answers for offset in offsets(answer)) == list(range(24))
    assert {len(offsets(answer)) for answer in answers} == {2}
    assert max(batches.carried) > 1
    settling = {
        worker: {"settle": [{"lock": answer["locks"][0]["lock"], "accept": answer["locks"][0]["offsets"]}]}
        for worker, answer in zip(WORKERS, answers, strict=True)
    }
    answers = await together(api, epochs, **settling)
    assert {answer["settled"][0]["error_code"] for answer in answers} == {0}
    assert sorted(offset for answer in answers for offset in offsets(answer)) == list(range(24, 30))


async def test_each_has_its_own_refusal(api: httpx.AsyncClient, epochs: dict[str, int], batches: Batches) -> None:
    await report(api, 100)
    ((lock, _, _),) = await held(api, "w0", 1)
    await settle(api, "w0", {"lock": lock, "accept": [[0, 0]]})
    foreign = {"settle": [{"lock": lock, "release": [[0, 0]]}]}
    unknown, stale = {"member_id": "nobody"}, {"member_epoch": epochs["w2"] + 7}
    answers = await together(api, epochs, w1=foreign, w2=stale, w3=unknown)
    assert max(batches.carried) > 1
    assert (answers[1]["settled"][0]["why"], len(offsets(answers[1]))) == ("settled", 2)
    assert answers[2]["error_code"] == Error.FENCED_MEMBER_EPOCH.code
    assert answers[3]["error_code"] == Error.UNKNOWN_MEMBER_ID.code
    others = [answer for place, answer in enumerate(answers) if place not in (2, 3)]
    assert sorted(offset for answer in others for offset in offsets(answer)) == list(range(1, 21))


async def test_one_whose_lock_is_held_elsewhere_waits_alone(
    api: httpx.AsyncClient, epochs: dict[str, int], database: str
) -> None:
    await report(api, 100)
    ((lock, _, _),) = await held(api, "w0", 1)
    async with await psycopg.AsyncConnection.connect(database) as another:
        await another.execute("select from offsets_sharelock where id = %s for update", [lock])
        waits = asyncio.create_task(settle(api, "w0", {"lock": lock, "accept": [[0, 0]]}))
        answers = await together(api, epochs)
        assert {len(offsets(answer)) for answer in answers} == {2}, "the others have theirs meanwhile"
        assert not waits.done()
        await another.rollback()
    assert (await waits)[0]["error_code"] == 0


async def test_a_batch_that_fails_is_carried_one_by_one(
    api: httpx.AsyncClient,
    epochs: dict[str, int],
    batches: Batches,
    runtime: Runtime,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await report(api, 100)
    store = runtime.get(ShareStore)
    serve = store.serve

    async def fails(connection: Any, settling: Any, asking: dict[int, list[Any]], now: int) -> Any:
        if any(len(members) > 1 for members in asking.values()):
            await connection.execute("select 1 / 0")
        return await serve(connection, settling, asking, now)

    monkeypatch.setattr(store, "serve", fails)
    answers = await together(api, epochs)
    assert max(batches.carried) > 1
    assert sorted(offset for answer in answers for offset in offsets(answer)) == list(range(24))
