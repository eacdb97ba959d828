"""Deadlines that could not be counted start over when somebody looks at the group (`groups.core.machine`)."""

from __future__ import annotations

from groups.core.model.consumer_group import TimerKind
from groups.core.model.records import RebalanceStarted
from groups.core.model.types import Cause, GroupConfig, GroupState
from kcoord.protocol.errors import Error
from tests.groups.core.consumer.world import World as ConsumerWorld
from tests.groups.core.world import World

SESSION = 10_000
REBALANCE = 30_000
CONSUMER_SESSION = 45_000
CONSUMER_REBALANCE = 5_000


def outage(world: World | ConsumerWorld, ms: int) -> None:
    """Nobody owns the partition for `ms`. Then it has an owner again, and somebody looks at the group."""
    world.may_expire = False
    world.jump(ms)
    if isinstance(world, World):
        world.tick()
    else:
        world.heartbeat("nobody", 1)
    world.may_expire, world.gap = True, world.gap + 1


def test_nobody_expires_while_nobody_counts_and_everybody_gets_a_whole_session_after_that() -> None:
    world = World()
    leader, follower = world.stable(2)
    world.advance(9_000)
    outage(world, 60_000)
    world.tick()
    assert {world.member(member_id).session_deadline for member_id in (leader, follower)} == {world.now + SESSION}
    world.advance(SESSION - 1)
    assert world.heartbeat(leader).error is Error.NONE
    world.advance(1)
    assert world.heartbeat(follower).error is Error.UNKNOWN_MEMBER_ID


def test_a_longer_session_stays_and_the_same_gap_counts_once() -> None:
    world = World()
    leader, _ = world.stable(2, session_timeout_ms=20_000)
    outage(world, 0)
    world.jump(5_000)
    world.heartbeat(leader)
    assert world.member(leader).session_deadline == world.now + 20_000
    world.jump(5_000)
    world.tick()
    assert world.member(leader).session_deadline == world.now + 15_000
    world.gap += 1
    world.now -= 20_000  # as far as the deadline is concerned, it lies further ahead than a whole session
    world.tick()
    assert world.member(leader).session_deadline == world.now + 35_000


def test_who_looks_while_nobody_owns_the_partition_starts_nothing_over() -> None:
    world = World()
    (member_id,) = world.stable(1)
    deadline = world.member(member_id).session_deadline
    world.jump(1_000)
    world.may_expire, world.gap = False, 1
    world.tick()
    assert world.member(member_id).session_deadline == deadline
    assert world.group is not None
    assert world.group.armed_gap == 0


def test_a_member_id_that_was_handed_out_can_still_be_used() -> None:
    """Differs from Kafka: pending members are in no log there, and forgotten."""
    world = World()
    early, late = world.join(), world.join(session_timeout_ms=120_000)
    outage(world, 9_500)
    world.tick()
    assert world.group is not None
    assert world.group.pending_join == {
        early.member_id: world.now + world.config.min_session_timeout_ms,
        late.member_id: world.now - 9_500 + 120_000,
    }


def test_an_initial_rebalance_starts_its_delay_over() -> None:
    world = World()
    call = world.enter()
    assert world.group is not None
    assert world.group.join_timer is not None
    initial = world.group.join_timer.initial
    outage(world, 60_000)
    world.tick()
    assert world.group.join_timer is not None
    assert world.group.join_timer.deadline == world.now + 3_000
    assert world.group.join_timer.initial == initial
    world.advance(3_000 + 30_000)
    assert call.ran_out or call.error is Error.NONE


def test_a_rebalance_that_was_in_progress_goes_on_with_the_full_time() -> None:
    """Differs from Kafka: it returns to the previous generation, which is what its log has."""
    world = World()
    leader, follower = world.stable(2)
    world.join(leader)
    assert world.group is not None
    assert world.state is GroupState.PREPARING_REBALANCE
    outage(world, 60_000)
    world.tick()
    assert world.state is GroupState.PREPARING_REBALANCE
    assert world.group.join_timer is not None
    assert world.group.join_timer.deadline == world.now + REBALANCE
    assert follower in world.group.members


def test_members_that_have_not_synced_have_the_full_time_for_it() -> None:
    world = World()
    world.completed(world.enter(), world.enter())
    assert world.state is GroupState.COMPLETING_REBALANCE
    outage(world, 60_000)
    world.tick()
    assert world.group is not None
    assert world.group.sync_deadline == world.now + REBALANCE
    world.gap += 1
    world.now -= 5_000
    world.tick()
    assert world.group.sync_deadline == world.now + 5_000 + REBALANCE, "a later deadline stays"


def test_a_group_that_is_larger_than_allowed_rebalances() -> None:
    world = World()
    world.stable(3)
    world.config = GroupConfig(max_size=3)
    outage(world, 1_000)
    world.tick()
    assert world.state is GroupState.STABLE
    world.config = GroupConfig(max_size=2)
    outage(world, 1_000)
    world.tick()
    assert world.state is GroupState.PREPARING_REBALANCE
    assert world.last is not None
    (started,) = [record for record in world.last.records if isinstance(record, RebalanceStarted)]
    assert (started.cause, started.member_id) == (Cause.GROUP_FULL, "")


def test_a_large_group_that_rebalances_goes_on() -> None:
    world = World()
    leader, *_ = world.stable(3)
    world.join(leader)
    world.config = GroupConfig(max_size=2)
    outage(world, 1_000)
    world.tick()
    assert world.state is GroupState.PREPARING_REBALANCE
    assert world.last is not None
    assert not any(isinstance(record, RebalanceStarted) for record in world.last.records)


def test_timers_of_a_consumer_group_start_over() -> None:
    world = ConsumerWorld()
    world.set_topics(foo=6)
    world.stable("m1")
    world.join("m2", "foo")
    world.heartbeat("m1", 1)  # told to give up half of them
    heard = {name: world.consumer.timers.session[name].armed_at for name in ("m1", "m2")}
    outage(world, 60_000)
    world.heartbeat("nobody", 1)
    sessions = world.consumer.timers.session
    assert {name: sessions[name].deadline for name in heard} == dict.fromkeys(heard, world.now + CONSUMER_SESSION)
    assert {name: sessions[name].armed_at for name in heard} == heard
    rebalance = world.consumer.timers.of(TimerKind.REBALANCE)
    assert rebalance["m1"].deadline == world.now + CONSUMER_REBALANCE
    world.gap += 1
    world.now -= 2_000
    world.heartbeat("nobody", 1)
    assert world.consumer.timers.session["m1"].deadline == world.now + 2_000 + CONSUMER_SESSION, "a later one stays"
    assert world.consumer.timers.of(TimerKind.REBALANCE)["m1"].deadline == world.now + 2_000 + CONSUMER_REBALANCE
