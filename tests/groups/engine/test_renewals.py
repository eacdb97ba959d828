"""A heartbeat that only extends a session leaves every copy of the group current, and no copy expires anybody early."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import psycopg
import pytest

from groups.core.model.commands import ConsumerHeartbeat
from groups.engine.service import GroupService
from groups.store.classic import ClassicRows
from groups.store.consumer import ConsumerRows
from groups.topics import TopicService
from kcoord.database.clock import VirtualClock
from kcoord.process.off_loop import settled
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from tests.support.members import heartbeat, join, leave, parked_join, stable_member, sync

Beat = Callable[[GroupService], Awaitable[None]]
MEMBERS = {"classic": "groups_member", "consumer": "groups_consumermember"}
SESSION_MS = {"classic": 10_000, "consumer": 45_000}


@pytest.fixture(params=["classic", "consumer"])
def protocol(request: pytest.FixtureRequest) -> str:
    """Of the group g."""
    found: str = request.param
    return found


@pytest.fixture
async def beat(protocol: str, service: GroupService, clock: VirtualClock, runtime: Runtime) -> Beat:
    """A heartbeat of the only member of the group g."""
    if protocol == "classic":
        member = await stable_member(service, clock)

        async def classic(at: GroupService) -> None:
            assert (await settled(at.heartbeat(heartbeat(member)))).error is Error.NONE

        return classic
    epoch = await joined(service, runtime, "a")

    async def consumer(at: GroupService) -> None:
        assert (await settled(at.consumer_heartbeat(ConsumerHeartbeat("g", "a", epoch)))).error is Error.NONE

    return consumer


async def joined(service: GroupService, runtime: Runtime, member_id: str) -> int:
    """A member of the consumer group g; returns its epoch."""
    topics = runtime.get(TopicService)
    if "t" not in (await topics.view()).by_name:
        await topics.create("t", 4)
    command = ConsumerHeartbeat(
        "g",
        member_id,
        0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=frozenset({"t"}),
        topic_partitions={},
    )
    reply = await settled(service.consumer_heartbeat(command))
    assert reply.error is Error.NONE
    return reply.member_epoch


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of the groups that were loaded from their rows, in any process."""
    found: list[str] = []
    for kind in (ClassicRows, ConsumerRows):
        load = kind.load

        async def noted(self: object, connection: object, group_id: str, *args: object, load=load, **more: object):  # type: ignore[no-untyped-def]
            found.append(group_id)
            return await load(self, connection, group_id, *args, **more)

        monkeypatch.setattr(kind, "load", noted)
    return found


def row(database: str) -> tuple[object, ...]:
    """Version and tag of the group g."""
    with psycopg.connect(database) as connection:
        found = connection.execute("select version, version_tag from groups_group where group_id = 'g'").fetchone()
    assert found is not None
    return found


def deadline(database: str, protocol: str) -> int:
    """The stored session of the only member."""
    with psycopg.connect(database) as connection:
        found = connection.execute(f"select session_deadline from {MEMBERS[protocol]}").fetchone()
    assert found is not None
    return int(found[0])


async def members(service: GroupService) -> int:
    """How many the group has."""
    group = (await service.describe("g")).group
    return len(group.members) if group is not None else 0


async def test_copies_in_other_processes_stay_current(
    beat: Beat, service: GroupService, other: GroupService, clock: VirtualClock, database: str, loads: list[str]
) -> None:
    await beat(other)
    before = row(database)
    loads.clear()
    for _ in range(20):
        clock.advance(3_000)
        await beat(service)
        await beat(other)
    assert row(database) == before
    assert not loads


async def test_session_that_another_process_extended_does_not_expire(
    beat: Beat, service: GroupService, other: GroupService, clock: VirtualClock, protocol: str
) -> None:
    most = SESSION_MS[protocol]
    clock.advance(most - 1)
    await beat(other)
    clock.advance(most - 1)
    await service.tick("g")
    assert await members(service) == 1, "by the copy of this process it ended a session ago"
    clock.advance(1)
    await service.tick("g")
    assert await members(service) == 0


async def test_description_has_the_session_of_the_row(
    beat: Beat, service: GroupService, other: GroupService, clock: VirtualClock, protocol: str
) -> None:
    clock.advance(3_000)
    await beat(other)
    assert (await service.describe("g")).due == clock.now_ms() + SESSION_MS[protocol]


async def test_other_changes_of_a_member_keep_the_session_of_the_row(
    service: GroupService, other: GroupService, clock: VirtualClock, database: str
) -> None:
    """The leader's sync writes the assignment of a member whose session was extended elsewhere meanwhile."""
    leader = await stable_member(service, clock)
    arriving = await parked_join(service)
    again = asyncio.ensure_future(service.join(join(member_id=leader.member_id)))
    leader, follower = await asyncio.gather(again, arriving)
    clock.advance(2_000)
    assert (await settled(other.heartbeat(heartbeat(follower)))).error is Error.NONE
    assignments = {leader.member_id: b"a", follower.member_id: b"b"}
    assert (await service.sync(sync(leader, assignments))).error is Error.NONE
    with psycopg.connect(database) as connection:
        found = connection.execute(
            "select session_deadline, assignment from groups_member where member_id = %s", (follower.member_id,)
        ).fetchone()
    assert found == (clock.now_ms() + 10_000, b"b")


async def test_nobody_expires_whose_heartbeats_a_node_has_not_stored_yet(
    beat: Beat, service: GroupService, clock: VirtualClock, protocol: str, database: str
) -> None:
    end = deadline(database, protocol)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "insert into groups_coordinatornode (node_id, url, version, started_at, renewed_at, expires_at,"
            " flushed_until) values ('n', '', '', 0, 0, 0, %s)",
            (end - 1,),
        )
        clock.advance(end - clock.now_ms() + 60_000)
        await service.tick("g")
        assert await members(service) == 1, "the lease of the node has run out, but nobody has declared it dead"
        connection.execute("update groups_coordinatornode set flushed_until = %s", (end,))
        await service.tick("g")
        assert await members(service) == 0


async def test_late_heartbeat_is_compared_with_the_last_one_at_any_process(
    service: GroupService, other: GroupService, runtime: Runtime, clock: VirtualClock
) -> None:
    """The copy of this process does not know that the member was heard from elsewhere."""
    epoch = await joined(service, runtime, "a")
    clock.advance(10_000)
    assert (await settled(other.consumer_heartbeat(ConsumerHeartbeat("g", "a", epoch)))).error is Error.NONE
    old = ConsumerHeartbeat("g", "a", epoch, topic_partitions={}, age_ms=8_000)
    assert (await settled(service.consumer_heartbeat(old))).error is Error.COORDINATOR_NOT_AVAILABLE


async def test_member_that_leaves_is_a_change(
    beat: Beat, service: GroupService, other: GroupService, clock: VirtualClock, database: str, protocol: str
) -> None:
    await beat(other)
    before = row(database)
    group = (await service.describe("g")).group
    assert group is not None
    if protocol == "classic":
        await service.leave(leave(next(iter(group.members))))
    else:
        await settled(service.consumer_heartbeat(ConsumerHeartbeat("g", "a", -1)))
    assert row(database) != before
    with pytest.raises(AssertionError):
        await beat(other)
