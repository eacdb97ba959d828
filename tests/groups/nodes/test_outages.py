"""What an outage does to members: nobody is removed who could not send heartbeats. Real services, virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from groups.core.model.commands import ConsumerHeartbeat, Tick
from groups.core.model.consumer_group import ConsumerGroup
from groups.core.model.events import EventKind
from groups.core.model.replies import ConsumerHeartbeatReply, JoinReply
from groups.core.model.types import ClassicGroup, GroupState
from groups.engine.agent import NodeAgent
from groups.engine.service import GroupService
from groups.engine.timers import TimerService
from groups.nodes.hosting import Hosting
from groups.readmodel import GroupReads
from groups.store.rows import Stored
from groups.store.store import GroupStore
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.off_loop import settled
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from tests.groups.nodes.support import LEASE_MS, Cluster, beat
from tests.support.members import eventually, heartbeat, parked_join, pending_id, sync

SESSION_MS = 10_000
CONSUMER_SESSION_MS = 45_000
MARGIN_MS = Config({}).int("database.transaction.timeout.ms")


@pytest.fixture
async def node(cluster: Cluster) -> NodeAgent:
    """A node that owns everything; `service` is that of another process, which is not a node."""
    [agent] = await cluster.running("a")
    return agent


async def members_of(service: GroupService, group_id: str = "g") -> int:
    group = (await service.describe(group_id)).group
    assert group is not None
    return len(group.members)


def consumer(group_id: str = "k", epoch: int = 0, member_id: str = "m") -> ConsumerHeartbeat:
    """A heartbeat of a member of the consumer protocol."""
    whole = epoch == 0
    return ConsumerHeartbeat(
        group_id,
        member_id,
        epoch,
        client_id="client",
        client_host="127.0.0.1",
        rebalance_timeout_ms=60_000 if whole else -1,
        subscribed_topic_names=("orders",) if whole else None,
        topic_partitions={} if whole else None,
    )


async def live_on(clock: VirtualClock, ms: int, *nodes: NodeAgent) -> None:
    """Let time pass while the nodes renew their leases."""
    while ms > 0:
        step = min(ms, 1_000)
        clock.advance(step)
        await beat(*nodes)
        ms -= step


async def stable_member_of(service: GroupService, clock: VirtualClock, *nodes: NodeAgent) -> JoinReply:
    """A member of group g whose whole session lies ahead, and nodes that have just renewed their leases."""
    task = await parked_join(service)
    await live_on(clock, 3_000, *nodes)
    await service.tick("g")
    reply = await task
    synced = await service.sync(sync(reply, {reply.member_id: b"a"}))
    assert synced.error is Error.NONE
    return reply


async def test_while_somebody_counts_sessions_expire(
    service: GroupService, runtime: Runtime, clock: VirtualClock, node: NodeAgent
) -> None:
    await stable_member_of(service, clock, node)
    await live_on(clock, SESSION_MS - 1, node)
    assert await runtime.get(TimerService).tick_due_groups() == 0
    await live_on(clock, 1, node)
    assert await runtime.get(TimerService).tick_due_groups() == 1
    assert await members_of(service) == 0


@pytest.mark.parametrize("outage_ms", [2 * SESSION_MS, 3_600_000])
async def test_nobody_is_removed_by_an_outage_of_all_nodes(
    service: GroupService, runtime: Runtime, clock: VirtualClock, node: NodeAgent, outage_ms: int
) -> None:
    await stable_member_of(service, clock, node)
    clock.advance(outage_ms)
    assert await runtime.get(TimerService).tick_due_groups() == 0, "Celery alone expires nobody"
    await service.tick("g")
    assert await members_of(service) == 1
    await beat(node)
    assert await runtime.get(TimerService).tick_due_groups() == 1
    assert await members_of(service) == 1
    await live_on(clock, SESSION_MS - 1, node)
    await service.tick("g")
    assert await members_of(service) == 1, "the full session counts from when somebody looked at the group"
    await live_on(clock, 1, node)
    await service.tick("g")
    assert await members_of(service) == 0, "a member that does not come back is detected after all"


async def test_a_member_one_millisecond_from_its_end_gets_a_full_session(
    service: GroupService, clock: VirtualClock, node: NodeAgent
) -> None:
    member = await consumer_member(service)
    await live_on(clock, CONSUMER_SESSION_MS - 1, node)
    clock.advance(LEASE_MS)  # nobody counts the last millisecond
    await beat(node)
    await service.tick("k")
    await live_on(clock, CONSUMER_SESSION_MS - 1, node)
    await service.tick("k")
    assert await members_of(service, "k") == 1
    await live_on(clock, 1, node)
    await service.tick("k")
    assert await members_of(service, "k") == 0
    assert member.error is Error.NONE


async def consumer_member(service: GroupService, group_id: str = "k") -> ConsumerHeartbeatReply:
    return await settled(service.consumer_heartbeat(consumer(group_id)))


async def test_a_request_expires_nobody_either_while_nobody_counts(
    service: GroupService, clock: VirtualClock, node: NodeAgent
) -> None:
    first = await stable_member_of(service, clock, node)
    clock.advance(2 * SESSION_MS)
    assert (await settled(service.heartbeat(heartbeat(first)))).error is Error.NONE, "an overdue member is still one"
    assert node.incarnation is not None


@pytest.mark.parametrize(("left_ms", "expires"), [(MARGIN_MS, False), (MARGIN_MS + 1, True)])
async def test_enough_must_be_left_of_the_lease_for_the_transaction(
    service: GroupService, clock: VirtualClock, node: NodeAgent, left_ms: int, expires: bool
) -> None:
    await stable_member_of(service, clock, node)
    await live_on(clock, SESSION_MS, node)
    clock.advance(LEASE_MS - left_ms)
    await service.tick("g")
    assert await members_of(service) == (0 if expires else 1)


async def test_only_what_is_active_expires(
    service: GroupService, clock: VirtualClock, node: NodeAgent, database: str
) -> None:
    await stable_member_of(service, clock, node)
    await live_on(clock, SESSION_MS, node)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("update groups_coordinatorpartition set state = 'LOADING'")
    await service.tick("g")
    assert await members_of(service) == 1
    assert node.holds_lease


async def test_a_hand_over_rearms_nothing_and_loses_no_parked_request(
    cluster: Cluster, service: GroupService, clock: VirtualClock
) -> None:
    a, b = await cluster.running("a", "b")
    task = await parked_join(service)
    before = (await service.describe("g")).group
    a.start()
    await a.leave()
    await beat(b)
    await service.tick("g")
    after = (await service.describe("g")).group
    assert after == before, "no deadline starts over"
    clock.advance(2_000)
    await beat(b)
    clock.advance(1_000)
    await b.beat()
    await service.tick("g")
    assert (await task).error is Error.NONE


async def test_a_rebalance_goes_on_with_the_full_time(
    service: GroupService, clock: VirtualClock, node: NodeAgent
) -> None:
    await stable_member_of(service, clock, node)
    joining = await parked_join(service)
    group = (await service.describe("g")).group
    assert isinstance(group, ClassicGroup)
    assert group.state is GroupState.PREPARING_REBALANCE
    clock.advance(3_600_000)
    await beat(node)
    await service.tick("g")
    assert await members_of(service) == 2, "the member that has not joined again is not removed"
    await live_on(clock, 29_999, node)
    # Its own session of 10 s counts from the end of the outage, so it has run out meanwhile; the join has not.
    await service.tick("g")
    assert (await joining).error is Error.NONE


async def test_a_member_id_that_was_handed_out_can_still_be_used(
    service: GroupService, clock: VirtualClock, node: NodeAgent
) -> None:
    member_id = await pending_id(service)
    clock.advance(3_600_000)
    await beat(node)
    await service.tick("g")
    task = await parked_join(service, member_id=member_id)
    await live_on(clock, 3_000, node)
    await service.tick("g")
    reply = await task
    assert (reply.error, reply.member_id) == (Error.NONE, member_id)


async def test_the_timeline_says_that_sessions_started_over(
    service: GroupService, runtime: Runtime, clock: VirtualClock, node: NodeAgent
) -> None:
    await stable_member_of(service, clock, node)
    clock.advance(LEASE_MS)
    await beat(node)
    await service.tick("g")
    await service.tick("g")
    page = await runtime.get(GroupReads).events("g", kinds=[EventKind.DEADLINES_REARMED.value])
    assert [event.detail for event in page.items] == [{"members": 1}], "once"


async def test_a_node_that_was_frozen_beyond_its_lease_expires_nobody(
    cluster: Cluster, service: GroupService, clock: VirtualClock
) -> None:
    a, b = await cluster.running("a", "b")
    await stable_member_of(service, clock, a, b)
    clock.advance(SESSION_MS)
    # Neither has renewed. The one thaws and runs its timers before it learns anything.
    await a.run_timers()
    assert await members_of(service) == 1
    await beat(b)
    await a.run_timers()
    assert await members_of(service) == 1, "under its old epoch it is nobody"
    former = a.incarnation
    await beat(a)
    assert a.incarnation != former, "it takes part again as another one"


async def test_the_owner_runs_the_timers_of_its_own_partitions(
    cluster: Cluster, service: GroupService, clock: VirtualClock
) -> None:
    a, b = await cluster.running("a", "b")
    await stable_member_of(service, clock, a, b)
    for _ in range(SESSION_MS // 1_000):
        clock.advance(1_000)
        await beat(a, b)
    owner, other = (a, b) if 3 in a._hosting.shards else (b, a)
    await other.run_timers()
    assert await members_of(service) == 1
    await owner.run_timers()
    assert await members_of(service) == 0


async def test_groups_of_an_older_release_are_looked_at_too(
    service: GroupService, runtime: Runtime, clock: VirtualClock, node: NodeAgent, database: str
) -> None:
    await stable_member_of(service, clock, node)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("update groups_group set partition = null")
    await live_on(clock, SESSION_MS, node)
    assert await runtime.get(TimerService).tick_due_groups() == 1
    assert await members_of(service) == 0
    with psycopg.connect(database, autocommit=True) as connection:
        assert connection.execute("select partition from groups_group").fetchone() == (3,)


async def test_what_expires_waits_for_a_change_of_owners_and_follows_it(
    service: GroupService, clock: VirtualClock, node: NodeAgent, database: str
) -> None:
    await stable_member_of(service, clock, node)
    await live_on(clock, SESSION_MS, node)
    with psycopg.connect(database) as changing:
        changing.execute("update groups_coordinatorpartition set gap = gap + 1 where partition = 3")
        ticking = asyncio.create_task(service.tick("g"))
        await eventually(lambda: waits_for_a_lock(database), "the tick waits")
        changing.commit()
    await ticking
    assert await members_of(service) == 1, "its session could not be counted after all, and starts over"


def waits_for_a_lock(database: str) -> bool:
    with psycopg.connect(database, autocommit=True) as connection:
        found = connection.execute(
            "select 1 from pg_stat_activity where query like '%groups.hold_partition%' and wait_event_type = 'Lock'"
        ).fetchone()
    return found is not None


async def test_a_long_transaction_looks_again_before_it_commits(
    service: GroupService, clock: VirtualClock, node: NodeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stable_member_of(service, clock, node)
    await live_on(clock, SESSION_MS, node)
    persist = GroupStore.persist

    async def slow(*arguments: Any) -> Stored:
        stored = await persist(*arguments)
        clock.advance(LEASE_MS)
        return stored

    monkeypatch.setattr(GroupStore, "persist", slow)
    await service.execute(Tick("g"), long=True)
    assert await members_of(service) == 1, "nobody owned its partition any longer"


async def test_a_heartbeat_while_loading_is_stored(
    cluster: Cluster, clock: VirtualClock, node: NodeAgent, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    b = await cluster.start("b", coordinator_routing="owner")
    service, hosting = b._groups, b._hosting
    reply = await stable_member_of(service, clock, node)
    clock.advance(5_000)
    hosting.is_node = True
    hosting.shards.elect(3, 9)
    monkeypatch.setattr(Hosting, "_is_routed", lambda _: True)
    assert (await settled(service.heartbeat(heartbeat(reply)))).error is Error.NONE
    with psycopg.connect(database, autocommit=True) as connection:
        row = connection.execute("select session_deadline from groups_member").fetchone()
    assert row == (clock.now_ms() + SESSION_MS,)
    assert (await settled(service.heartbeat(replace(heartbeat(reply), generation_id=7)))).error is Error.NONE, (
        "whatever it says"
    )


@pytest.mark.usefixtures("node")
async def test_a_new_group_is_not_rearmed(service: GroupService) -> None:
    await consumer_member(service)
    group = (await service.describe("k")).group
    assert isinstance(group, ConsumerGroup)
    assert group.armed_gap == 1
