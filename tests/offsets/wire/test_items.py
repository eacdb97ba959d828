"""ShareFetch and ShareAcknowledge: nothing is given out, and nothing is settled that was not."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from groups.topics import TopicService
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from tests.support.wire import Wire, WireWith

ASKED = {"group_id": "mailing", "member_id": "worker-1", "min_bytes": 1, "max_bytes": 1_000, "max_records": 500}
ACCEPT = [{"first_offset": 0, "last_offset": 3, "acknowledge_types": [1]}]


async def partitions(runtime: Runtime, acknowledged: Any = (), number: int = 0) -> list[dict[str, Any]]:
    """One partition of `orders`, with what it acknowledges."""
    view = await runtime.get(TopicService).find(names=["orders"])
    found = [{"partition_index": number, "acknowledgement_batches": acknowledged}]
    return [{"topic_id": UUID(view.by_name["orders"].topic_id), "partitions": found}]


async def fetched(wire: Wire, topics: Any, version: int = 2, epoch: int = 0, **more: Any) -> Any:
    fields = {**ASKED, "batch_size": 500, "share_session_epoch": epoch, "topics": topics, "max_wait": 0, **more}
    return await wire.ask("share_fetch", version, **fields)


async def acknowledged(wire: Wire, topics: Any, version: int = 2, epoch: int = -1, **more: Any) -> Any:
    mine = {name: ASKED[name] for name in ("group_id", "member_id")} | {"share_session_epoch": epoch}
    return await wire.ask(
        "share_acknowledge", version, **{**mine, "share_session_epoch": epoch, "topics": topics, **more}
    )


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("epoch", [0, 7, -1])
async def test_there_is_nothing(wire: Wire, runtime: Runtime, topic: str, version: int, epoch: int) -> None:
    """Differs from Kafka: no share session is kept, so that every epoch is taken."""
    answer = await fetched(wire, await partitions(runtime), version, epoch)
    assert (answer.error_code, answer.responses) == (0, ())
    assert answer.acquisition_lock_timeout.total_seconds() == 30
    closed = await acknowledged(wire, [], version, epoch)
    assert (closed.error_code, closed.responses) == (0, ())


async def test_it_is_held_and_ends_when_the_server_stops(wire: Wire, runtime: Runtime, topic: str) -> None:
    asked = await partitions(runtime)
    held = asyncio.create_task(fetched(wire, asked, max_wait=600_000))
    at_once = [{"epoch": -1}, {"max_records": 0}, {"max_bytes": 0}, {"topics": await partitions(runtime, ACCEPT)}]
    for more in at_once:
        await asyncio.wait_for(fetched(wire, **{"topics": asked, "max_wait": 600_000, **more}), 10)
    assert not held.done()
    await runtime.drain()
    assert (await asyncio.wait_for(held, 10)).error_code == 0


async def test_none_is_held_that_comes_when_the_server_stops(wire: Wire, runtime: Runtime, topic: str) -> None:
    asked = await partitions(runtime)
    await runtime.drain()
    assert (await asyncio.wait_for(fetched(wire, asked, max_wait=600_000), 10)).error_code == 0


async def test_what_nobody_acquired_is_not_settled(wire: Wire, runtime: Runtime, topic: str) -> None:
    topics = await partitions(runtime, ACCEPT)
    (found,) = (await fetched(wire, topics, epoch=3)).responses[0].partitions
    assert (found.error_code, found.acknowledge_error_code) == (0, Error.INVALID_RECORD_STATE.code)
    assert "over HTTP" in found.acknowledge_error_message
    (found,) = (await acknowledged(wire, topics)).responses[0].partitions
    assert found.error_code == Error.INVALID_RECORD_STATE.code


async def test_partitions_that_are_not_there(wire: Wire, runtime: Runtime, topic: str) -> None:
    missing = [{"topic_id": UUID(int=9), "partitions": [{"partition_index": 0, "acknowledgement_batches": []}]}]
    for topics, error in (
        (missing, Error.UNKNOWN_TOPIC_ID),
        (await partitions(runtime, (), 99), Error.UNKNOWN_TOPIC_OR_PARTITION),
    ):
        for ask in (fetched, acknowledged):
            (found,) = (await ask(wire, topics)).responses[0].partitions
            assert found.error_code == error.code


async def test_rights_and_member_ids(wire: Wire, wire_with: WireWith, runtime: Runtime, topic: str) -> None:
    topics = await partitions(runtime, ACCEPT)
    for ask in (fetched, acknowledged):
        for member_id in ("", "m" * 37, None):
            assert (await ask(wire, topics, member_id=member_id)).error_code == Error.INVALID_REQUEST.code
        assert (await ask(wire_with("read:topic:orders"), topics)).error_code == Error.GROUP_AUTHORIZATION_FAILED.code
        (found,) = (await ask(wire_with("read:group:mailing"), topics)).responses[0].partitions
        assert found.error_code == Error.TOPIC_AUTHORIZATION_FAILED.code
