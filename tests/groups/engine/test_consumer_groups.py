"""Consumer groups through the service: heartbeats that wait, topics that change, work off the loop, two processes."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest

from groups.core.assignors import BUILT_IN
from groups.core.model.commands import ConsumerHeartbeat, Parked, ParkKind
from groups.core.model.consumer_group import ConsumerGroup
from groups.core.model.replies import ConsumerHeartbeatReply
from groups.core.model.types import TopicRights
from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.database.clock import VirtualClock
from kcoord.process.off_loop import settled
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from kcoord.requests import current
from kcoord.requests.current import Receipt
from tests.support.members import eventually


def joining(member_id: str, **changes: Any) -> ConsumerHeartbeat:
    """The first heartbeat of a member."""
    values: dict[str, Any] = {
        "client_id": "client",
        "client_host": "127.0.0.1",
        "rebalance_timeout_ms": 30_000,
        "subscribed_topic_names": frozenset({"t"}),
        "topic_partitions": {},
        "server_assignor": "range",
    }
    return ConsumerHeartbeat("g", member_id, 0, **{**values, **changes})


def beat(reply: ConsumerHeartbeatReply, **changes: Any) -> ConsumerHeartbeat:
    """A later heartbeat, at the epoch of an earlier answer."""
    return ConsumerHeartbeat("g", reply.member_id, reply.member_epoch, **changes)


async def consumer_group(service: GroupService) -> ConsumerGroup:
    group = (await service.describe("g")).group
    assert isinstance(group, ConsumerGroup)
    return group


@pytest.fixture
async def topic_id(runtime: Runtime) -> str:
    """A topic `t` of four partitions."""
    return str((await runtime.get(TopicService).create("t", 4)).topic_id)


async def test_partition_changes_hands_only_after_it_was_given_up(
    service: GroupService, other: GroupService, topic_id: str
) -> None:
    first = await settled(service.consumer_heartbeat(joining("a")))
    assert first.assignment == {topic_id: frozenset({0, 1, 2, 3})}
    second = await settled(other.consumer_heartbeat(joining("b")))
    assert second.assignment == {}
    told = await settled(service.consumer_heartbeat(beat(first)))
    assert told.assignment == {topic_id: frozenset({0, 1})}
    assert (await settled(other.consumer_heartbeat(beat(second)))).assignment is None
    given_up = await settled(service.consumer_heartbeat(beat(told, topic_partitions=told.assignment)))
    assert given_up.member_epoch == second.member_epoch
    assert (await settled(other.consumer_heartbeat(beat(second)))).assignment == {topic_id: frozenset({2, 3})}


async def test_heartbeat_that_another_server_decides_late_gives_nothing_up(
    service: GroupService, other: GroupService, topic_id: str
) -> None:
    first = await settled(service.consumer_heartbeat(joining("a")))
    second = await settled(other.consumer_heartbeat(joining("b")))
    told = await settled(service.consumer_heartbeat(beat(first)))
    token = current.enter_receipt(Receipt(time.monotonic() - 3))
    late = asyncio.create_task(settled(other.consumer_heartbeat(joining("a"))))
    current.leave_receipt(token)
    assert (await late).error is Error.COORDINATOR_NOT_AVAILABLE
    assert (await settled(other.consumer_heartbeat(beat(second)))).assignment is None, "a still reads its partitions"
    await settled(service.consumer_heartbeat(beat(told, topic_partitions=told.assignment)))
    assert (await settled(other.consumer_heartbeat(beat(second)))).assignment == {topic_id: frozenset({2, 3})}


async def test_waiting_heartbeat_is_answered_when_its_partitions_become_free(
    service: GroupService, other: GroupService, topic_id: str
) -> None:
    first = await settled(service.consumer_heartbeat(joining("a")))
    second = await settled(other.consumer_heartbeat(joining("b")))
    waiting = asyncio.create_task(settled(other.consumer_heartbeat(beat(second, max_wait_ms=60_000))))
    told = await settled(service.consumer_heartbeat(beat(first)))
    assert not waiting.done()
    await settled(service.consumer_heartbeat(beat(told, topic_partitions=told.assignment)))
    assert (await asyncio.wait_for(waiting, 10)).assignment == {topic_id: frozenset({2, 3})}


async def test_waiting_heartbeat_is_told_at_once_what_to_give_up(service: GroupService, topic_id: str) -> None:
    first = await settled(service.consumer_heartbeat(joining("a")))
    waiting = asyncio.create_task(settled(service.consumer_heartbeat(beat(first, max_wait_ms=60_000))))
    await eventually(lambda: bool(service._parked._waiters), "the heartbeat waits")
    await settled(service.consumer_heartbeat(joining("b")))
    assert (await asyncio.wait_for(waiting, 10)).assignment == {topic_id: frozenset({0, 1})}


async def test_heartbeat_that_waited_in_vain_says_that_nothing_changed(service: GroupService, topic_id: str) -> None:
    first = await settled(service.consumer_heartbeat(joining("a")))
    reply = await settled(service.consumer_heartbeat(beat(first, max_wait_ms=50)))
    assert (reply.error, reply.assignment, reply.member_epoch) == (Error.NONE, None, first.member_epoch)
    assert not service._parked._waiters


async def test_grown_topic_reaches_a_waiting_member(
    runtime: Runtime, service: GroupService, other: GroupService, topic_id: str
) -> None:
    first = await settled(other.consumer_heartbeat(joining("a")))
    waiting = asyncio.create_task(settled(other.consumer_heartbeat(beat(first, max_wait_ms=60_000))))
    await eventually(lambda: bool(other._parked._waiters), "the heartbeat waits")
    await runtime.get(TopicService).update("t", partitions=6)
    reply = await asyncio.wait_for(waiting, 10)
    assert reply.assignment == {topic_id: frozenset(range(6))}
    assert reply.member_epoch == first.member_epoch + 1


async def test_silent_member_is_removed_by_the_tick(service: GroupService, clock: VirtualClock, topic_id: str) -> None:
    await settled(service.consumer_heartbeat(joining("a")))
    clock.advance(45_000)
    assert await service._store.due_groups(10) == ["g"]
    await service.tick("g")
    group = await consumer_group(service)
    assert (len(group.members), group.group_epoch) == (0, 2)


async def test_regular_expression_is_resolved_off_the_request(service: GroupService, topic_id: str) -> None:
    first = await settled(
        service.consumer_heartbeat(joining("a", subscribed_topic_names=None, subscribed_topic_regex="t|u.*"))
    )
    assert first.assignment == {}
    await eventually(lambda: not service.busy, "the expression is resolved")
    assert (await settled(service.consumer_heartbeat(beat(first)))).assignment == {topic_id: frozenset({0, 1, 2, 3})}


async def test_regular_expression_matches_only_what_its_member_may_describe(
    runtime: Runtime, service: GroupService, topic_id: str
) -> None:
    await runtime.get(TopicService).create("t2", 2)
    rights = TopicRights("t alone", lambda name: name == "t")
    command = joining("a", subscribed_topic_names=None, subscribed_topic_regex="t.*", rights=rights)
    first = await settled(service.consumer_heartbeat(command))
    await eventually(lambda: not service.busy, "the expression is resolved")
    reply = await settled(service.consumer_heartbeat(beat(first, rights=rights)))
    assert reply.assignment == {topic_id: frozenset({0, 1, 2, 3})}


async def test_expression_that_re2_refuses_changes_nothing(service: GroupService, topic_id: str) -> None:
    reply = await settled(
        service.consumer_heartbeat(joining("a", subscribed_topic_names=None, subscribed_topic_regex="("))
    )
    assert reply.error is Error.INVALID_REGULAR_EXPRESSION
    assert (await service.describe("g")).group is None


async def test_older_heartbeat_of_a_member_takes_nothing_from_the_newer(
    runtime: Runtime, service: GroupService, clock: VirtualClock, topic_id: str
) -> None:
    command = joining("a", subscribed_topic_names=None, subscribed_topic_regex="t|u.*")
    first = await settled(service.consumer_heartbeat(command))
    await eventually(lambda: not service.busy, "the expression is resolved")
    reply = await settled(service.consumer_heartbeat(beat(first)))
    older = asyncio.create_task(settled(service.consumer_heartbeat(beat(reply, max_wait_ms=60_000))))
    await eventually(lambda: bool(service._parked._waiters), "the older one waits")
    newer = asyncio.create_task(settled(service.consumer_heartbeat(beat(reply, max_wait_ms=60_001))))
    await asyncio.wait_for(older, 10)
    clock.advance(20_000)
    await runtime.get(TopicService).create("u1", 1)

    async def is_matched() -> bool:
        return "u1" in (await consumer_group(service)).matched_by(("t|u.*", ""))

    await eventually(is_matched, "the newer one, still held, has the expression resolved again")
    assert (await asyncio.wait_for(newer, 10)).member_epoch == reply.member_epoch + 1


@pytest.mark.parametrize("hint", ["before", "decided", "entered", "committed"])
async def test_hint_of_topics_reaches_a_heartbeat_whenever_it_comes(service: GroupService, hint: str) -> None:
    """Relative to a parking: `before` the topics were read, before it was `decided`, and so on."""
    parked_requests = service._parked
    parked = Parked(ParkKind.HEARTBEAT, "a", None, 1)

    def happens(moment: str) -> None:
        if hint == moment:
            parked_requests._on_topics(None)

    happens("before")
    since = parked_requests.moment()
    happens("decided")
    waiter = parked_requests.enter("g", parked, since)
    happens("entered")
    assert not waiter.answer.done(), "nobody could see the parking yet"
    parked_requests.committed(waiter)
    happens("committed")
    assert waiter.answer.done() is (hint != "before"), "what was read after the hint is newer than it"
    parked_requests.leave(waiter)


async def test_large_target_is_computed_off_the_loop(
    service: GroupService, topic_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await settled(service.consumer_heartbeat(joining("a")))
    small = replace(service._mailbox._contexts.server, consumer_assignment_inline_limit=0)
    monkeypatch.setattr(service._mailbox._contexts, "server", small)
    second = await settled(service.consumer_heartbeat(joining("b")))
    assert second.member_epoch == first.member_epoch, "it was answered before there was a target with it"
    await eventually(lambda: not service.busy, "the target is computed")
    group = await consumer_group(service)
    assert (group.assignment_epoch, group.target_job) == (2, None)
    assert (await settled(service.consumer_heartbeat(beat(first)))).assignment == {topic_id: frozenset({0, 1})}


async def test_assignor_that_throws_is_answered_and_changes_nothing(
    service: GroupService, topic_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        name = "range"

        def assign(self, spec: object, topics: object) -> Any:
            raise ZeroDivisionError

    first = await settled(service.consumer_heartbeat(joining("a")))
    monkeypatch.setattr(service._mailbox._contexts, "assignors", {**BUILT_IN, "range": Broken()})
    assert (await settled(service.consumer_heartbeat(joining("b")))).error is Error.UNKNOWN_SERVER_ERROR
    assert set((await consumer_group(service)).members) == {"a"}
    assert (await settled(service.consumer_heartbeat(beat(first)))).error is Error.NONE
