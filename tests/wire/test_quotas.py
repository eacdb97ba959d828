"""Quotas of Kafka clients: throttle times, connections that are not read from, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.access.quotas.budgets import Budget
from kcoord.database.clock import VirtualClock
from kcoord.door.kafka.connection import Connection
from kcoord.door.kafka.gateway import Gateway
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from tests.support.members import eventually
from tests.support.quotas import limit
from tests.wire.client import WireClient
from tests.wire.support import join_fields, joined

Connect = Callable[..., Awaitable[WireClient]]


def silent(gateway: Gateway) -> list[Connection]:
    return [connection for connection in gateway.peers.open if connection._silence is not None]


async def test_a_throttled_request_is_answered_and_then_nothing_is_read_for_the_throttle_time(
    wire: WireClient, gateway: Gateway, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    call_later = asyncio.get_running_loop().call_later

    def noted(seconds: float, callback: Any, *arguments: Any, **context: Any) -> asyncio.TimerHandle:
        if getattr(callback, "__func__", None) is Connection._speak:
            pauses.append(seconds)
            return call_later(3_600, callback)  # until the test ends it
        return call_later(seconds, callback, *arguments, **context)

    limit(runtime, reads=1)
    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", noted)
    throttle = [(await wire.ask("describe_cluster", 1)).throttle_time for _ in range(10)]
    while not throttle[-1] and len(throttle) < 13:  # one while the token is looked up again is not counted
        throttle.append((await wire.ask("describe_cluster", 1)).throttle_time)
    assert throttle == [0] * (len(throttle) - 1) + [1_000]
    assert len(throttle) > 10
    await eventually(lambda: bool(silent(gateway)), "the connection is silent")
    assert pauses == [1.0]
    wire.send("describe_cluster", 1)
    (muted,) = silent(gateway)
    answer = asyncio.create_task(wire.receive("describe_cluster", 1))
    await wire.writer.drain()
    for _ in range(20):
        await asyncio.sleep(0)
    assert not answer.done()
    assert muted.peer.tick(1_000.0, muted.unread(), our_turn=muted.is_our_turn()) is None, "it is not idle"
    muted._silence.cancel()  # type: ignore[union-attr]
    muted._speak()
    async with asyncio.timeout(30):
        assert (await answer).throttle_time == 1_000


async def test_heartbeats_over_the_limit_extend_their_session_and_owe_at_most_the_longest_wait(
    wire: WireClient, connect: Connect, runtime: Runtime, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connection, "_be_silent", lambda self: setattr(self.session, "throttle_ms", 0))
    service = runtime.get(GroupService)
    member = await joined(wire, service, clock)
    beat = {"group_id": "g", "generation_id": member.generation_id, "member_id": member.member_id}
    limit(runtime, heartbeats=0.1)
    told = []
    for _ in range(12):
        clock.advance(1_000)
        answers = [await wire.ask("heartbeat", 4, **beat) for _ in range(3)]
        assert {answer.error_code for answer in answers} <= {0, Error.REBALANCE_IN_PROGRESS.code}
        told += [answer.throttle_time for answer in answers]
        await service.tick("g")
    assert max(told) == 1_000
    assert told.count(0) <= 3
    group = (await service.describe("g")).group
    assert group is not None
    assert member.member_id in group.members


async def test_older_versions_are_silenced_without_a_throttle_time(
    wire: WireClient, gateway: Gateway, runtime: Runtime
) -> None:
    limit(runtime, heartbeats=0.001)
    for _ in range(2):
        answer = await wire.ask("heartbeat", 0, group_id="g", generation_id=1, member_id="m")
        assert answer.error_code == Error.UNKNOWN_MEMBER_ID.code
    await eventually(lambda: bool(silent(gateway)), "the connection is silent")


async def test_requests_that_want_no_answer_count(wire: WireClient, gateway: Gateway, runtime: Runtime) -> None:
    limit(runtime, writes=0.001)
    for _ in range(3):
        wire.send("produce", 9, acks=0, timeout=1, topic_data=())
    await eventually(lambda: bool(silent(gateway)), "the connection is silent")


@pytest.mark.parametrize(("version", "code"), [(7, Error.THROTTLING_QUOTA_EXCEEDED.code), (5, 0)])
async def test_too_many_new_partitions_are_refused_to_clients_that_know_the_error(
    wire: WireClient, runtime: Runtime, version: int, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connection, "_be_silent", lambda self: setattr(self.session, "throttle_ms", 0))
    limit(runtime, partitions=10)

    def topic(name: str, count: int) -> dict[str, Any]:
        return {"name": name, "num_partitions": count, "replication_factor": 1, "assignments": (), "configs": ()}

    answer = await wire.ask("create_topics", version, topics=[topic("a", 8), topic("b", 8)], timeout=1_000)
    assert [topic.error_code for topic in answer.topics] == [0, code]
    assert answer.throttle_time > 0
    if code:
        assert "partitions" in answer.topics[1].error_message
        grown = await wire.ask(
            "create_partitions", 3, topics=[{"name": "a", "count": 16, "assignments": None}], timeout=1_000
        )
        assert grown.results[0].error_code == code
        gone = await wire.ask("delete_topics", 5, topic_names=["a"], timeout=1_000)
        assert gone.responses[0].error_code == code
        assert "a" in (await runtime.get(TopicService).find(names=["a"])).by_name


async def test_new_members_over_the_limit_are_told_to_join_later(wire: WireClient, runtime: Runtime) -> None:
    """Differs from Kafka: it has no quota of members."""
    limit(runtime, members=1)
    assert (await wire.ask("join_group", 9, **join_fields())).error_code == Error.MEMBER_ID_REQUIRED.code
    refused = await wire.ask("join_group", 9, **join_fields())
    assert refused.error_code == Error.COORDINATOR_LOAD_IN_PROGRESS.code
    beat = {"group_id": "c", "member_id": "m", "member_epoch": 0, "rebalance_timeout": 30_000}
    refused = await wire.ask("consumer_group_heartbeat", 1, **beat, subscribed_topic_names=["t"], topic_partitions=[])
    assert refused.error_code == Error.COORDINATOR_LOAD_IN_PROGRESS.code


async def test_many_connections_together_may_commit_no_more_than_the_limit_and_one_silence_is_worth(
    connect: Connect, runtime: Runtime, clock: VirtualClock, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Differs from Kafka: each connection is silent for itself, so the excess grows with their number."""
    monkeypatch.setattr(Connection, "_be_silent", lambda self: setattr(self.session, "throttle_ms", 0))
    limit(runtime, commits=2)
    clients = [await connect() for _ in range(12)]
    fields = {"partition_index": 0, "committed_offset": 5, "committed_leader_epoch": -1, "committed_metadata": ""}

    async def commit(client: WireClient) -> tuple[int, int]:
        answer = await client.ask("offset_commit", 8, group_id="g", topics=[{"name": topic, "partitions": [fields]}])
        return answer.topics[0].partitions[0].error_code, answer.throttle_time

    found = [await commit(client) for _ in range(4) for client in clients]
    codes = [code for code, _ in found]
    assert codes == [0] * 22 + [Error.COORDINATOR_LOAD_IN_PROGRESS.code] * 26, "10 s of the limit, and 1 s of debt"
    assert [throttle for _, throttle in found[19:23]] == [0, 500, 1_000, 1_000]
    clock.advance(1_000)
    codes = [code for code, _ in await asyncio.gather(*map(commit, clients))]
    assert sorted(codes) == [0] * 2 + [Error.COORDINATOR_LOAD_IN_PROGRESS.code] * 10


async def test_a_token_has_so_many_connections_and_may_open_another_when_one_ends(
    connect: Connect, gateway: Gateway, runtime: Runtime
) -> None:
    limit(runtime, connections=2)
    first, second = await connect(), await connect()
    with pytest.raises(asyncio.IncompleteReadError):
        await connect()
    assert (await first.ask("describe_cluster", 1)).error_code == 0
    second.abort()
    await eventually(lambda: len(gateway.peers.open) == 1, "it is closed")
    assert (await (await connect()).ask("describe_cluster", 1)).error_code == 0


async def test_an_address_has_so_many_connections(connect: Connect, gateway: Gateway) -> None:
    gateway.peers._addresses._most = 1
    first = await connect()
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await connect()
    first.abort()
    await eventually(lambda: not gateway.peers.open, "it is closed")
    await connect()


def test_an_api_that_http_has_counts_as_it_does_there(gateway: Gateway) -> None:
    counted = {api.name: api.budget for api in gateway.apis.values()}
    beats = {"heartbeat", "consumer_group_heartbeat", "share_group_heartbeat"}
    assert {name for name, budget in counted.items() if budget is Budget.HEARTBEATS} == beats
    assert {counted[name] for name in ("join_group", "sync_group", "leave_group")} == {None}
    assert {counted[name] for name in ("offset_commit", "txn_offset_commit", "end_txn")} == {Budget.COMMITS}
