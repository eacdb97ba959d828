"""Sessions that may have been extended without this being stored yet do not expire; every other timer fires."""

from __future__ import annotations

from groups.core.model.commands import Tick
from groups.core.model.types import GroupState
from tests.groups.core.consumer.world import World as ConsumerWorld
from tests.groups.core.world import GROUP, World


def test_classic_session_expires_when_it_is_known_to_have_ended() -> None:
    world = World()
    member_id = world.stable(1)[0]
    end = world.member(member_id).session_deadline
    assert end is not None
    world.jump(end - world.now + 5_000)
    world.sessions_known_until = end - 1
    world.send(Tick(GROUP))
    assert world.group is not None
    assert member_id in world.group.members
    world.sessions_known_until = end
    world.send(Tick(GROUP))
    assert not world.group.members


def test_barriers_of_a_classic_group_do_not_wait_for_sessions() -> None:
    world = World()
    call = world.enter(session_timeout_ms=60_000)
    world.sessions_known_until = world.now
    world.jump(3_000)
    world.send(Tick(GROUP))
    assert world.group is not None
    assert world.group.state is GroupState.COMPLETING_REBALANCE, "the join window"
    world.jump(world.group.rebalance_timeout_ms)
    world.send(Tick(GROUP))
    assert call.member_id not in world.group.members, "it did not sync"


def test_overdue_barrier_fires_before_an_earlier_session_that_is_unknown() -> None:
    world = World()
    world.enter(session_timeout_ms=6_000)
    pending = world.join(session_timeout_ms=6_500)
    world.sessions_known_until = world.now
    world.jump(7_000)
    world.send(Tick(GROUP))
    assert world.group is not None
    assert pending.member_id not in world.group.pending_join, "a pending id is no session"


def test_consumer_session_expires_when_it_is_known_to_have_ended() -> None:
    world = ConsumerWorld()
    world.set_topics(t=1)
    world.join("a", "t")
    end = world.now + world.config.consumer_session_timeout_ms
    world.jump(end - world.now + 5_000)
    world.sessions_known_until = end - 1
    world.send(Tick(GROUP))
    assert "a" in world.consumer.members
    world.sessions_known_until = end
    world.send(Tick(GROUP))
    assert "a" not in world.consumer.members


def test_rebalance_timer_of_a_consumer_group_does_not_wait_for_sessions() -> None:
    world = ConsumerWorld()
    world.set_topics(t=2)
    world.join("a", "t", rebalance_timeout_ms=50_000)
    world.join("b", "t")
    world.heartbeat("a", 1)
    world.sessions_known_until = world.now
    world.jump(50_000)
    world.send(Tick(GROUP))
    assert set(world.consumer.members) == {"b"}, "a did not give up its partition in time; both sessions are unknown"
