"""Too many joins, or big requests, at once are refused; what members call all the time does not wait for them."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from groups.engine.service import GroupService
from groups.store.store import GroupStore
from kcoord.door.http.door import BIG_BYTES
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.requests.turnstile import Kind, Places, Turnstile, places_of
from tests.support.api import Members, identity, join_body
from tests.support.members import eventually


async def test_joins_that_find_the_queue_full_are_told_to_come_back(
    api: httpx.AsyncClient, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = runtime.get(Turnstile)
    monkeypatch.setattr(gate, "_most", 0)
    monkeypatch.setattr(gate, "is_free", lambda kind: kind is not Kind.REQUEST)
    refused = await api.post("/v1/groups/g/join", json=join_body(""))
    assert (refused.status_code, refused.json()["error"]) == (503, "COORDINATOR_NOT_AVAILABLE")
    assert refused.headers["retry-after"] == "1"
    body = {"member_id": "nobody", "generation_id": 1}
    answered = await api.post("/v1/groups/g/heartbeat", json=body)
    assert answered.json()["error"] == "UNKNOWN_MEMBER_ID"


async def test_only_who_joins_a_group_that_is_not_in_memory_is_refused_for_want_of_connections(
    members: Members, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that lost a connection has no group in memory: its steady members are served all the same."""

    def refuse() -> None:
        raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "the queue is long", retry_after_ms=700)

    api, leader = members.api, await members.stable("served")
    monkeypatch.setattr(runtime.db, "check_queue", refuse)
    joins = {"member_id": "m", "member_epoch": 0, "subscribed_topic_names": ["t"], "rebalance_timeout_ms": 60_000}
    for call, body in (("join", join_body("")), ("consumer-heartbeat", {**joins, "topic_partitions": []})):
        refused = await api.post(f"/v1/groups/new/{call}", json=body)
        assert (refused.status_code, refused.headers.get("retry-after")) == (503, "1"), refused.text
    runtime.get(GroupStore).forget_all()
    beat = await api.post("/v1/groups/served/heartbeat", json=identity(leader))
    assert beat.status_code == 200, beat.text


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/assign", {"assignor": "range", "members": []}),
        ("/v1/groups/g/offsets/commit", {"member_id": "", "padding": "x" * BIG_BYTES}),
        ("/v1/groups/g/sync", {"member_id": "", "padding": "x" * BIG_BYTES}),
    ],
)
async def test_big_requests_that_find_the_queue_full_are_told_to_come_back(
    api: httpx.AsyncClient, runtime: Runtime, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, object]
) -> None:
    gate = runtime.get(Turnstile)
    monkeypatch.setattr(gate, "_most_big", 0)
    monkeypatch.setattr(gate, "big", Places(0))
    refused = await api.post(path, json=body)
    assert (refused.status_code, refused.json()["error"]) == (503, "COORDINATOR_NOT_AVAILABLE")
    assert refused.headers["retry-after"] == "1"
    small = await api.post("/v1/groups/g/offsets/commit", json={"member_id": "", "padding": ""})
    assert small.json()["error"] == "INVALID_REQUEST"


async def test_a_big_request_that_parks_keeps_no_place(
    api: httpx.AsyncClient, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kcoord.door.http.door.BIG_BYTES", 0)
    named = (await api.post("/v1/groups/g/join", json=join_body(""))).json()["member_id"]
    parked = asyncio.create_task(api.post("/v1/groups/g/join", json=join_body(named)))
    service = runtime.get(GroupService)
    await eventually(lambda: service._parked.has_waiters("g"), "the join is parked")
    gate = runtime.get(Turnstile)
    try:
        assert not gate.big.locked()
        assert gate.big._free == places_of(0)
    finally:
        parked.cancel()
        await asyncio.gather(parked, return_exceptions=True)
