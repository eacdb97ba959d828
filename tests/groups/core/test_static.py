"""Static membership (classic.md 7)."""

from __future__ import annotations

import pytest

from groups.core.model.records import RebalanceStarted
from groups.core.model.types import Cause, GroupConfig, GroupState
from kcoord.protocol.errors import Error
from tests.groups.core.world import World, protocols


def static_group(**fields: object) -> tuple[World, str, str]:
    """A Stable group of a static leader "a" and a static follower "b"."""
    world = World()
    leader, follower = world.completed(world.join(instance_id="a", **fields), world.join(instance_id="b", **fields))
    world.synced(leader, follower)
    return world, leader, follower


def test_restart_without_a_change_of_protocol_needs_no_rebalance() -> None:
    world, leader, follower = static_group()
    reply = world.join(instance_id="b").reply
    assert world.group is not None
    assert (reply.error, reply.generation_id, reply.leader) == (Error.NONE, 1, leader)
    assert (reply.skip_assignment, reply.members) == (False, ())
    assert list(world.group.members) == [leader, reply.member_id]
    assert world.sync(reply.member_id).reply.assignment == follower.encode()


def test_restarted_leader_skips_the_assignment() -> None:
    world, _, follower = static_group()
    reply = world.join(instance_id="a").reply
    assert (reply.leader, reply.skip_assignment) == (reply.member_id, True)
    assert [(member.member_id, member.group_instance_id) for member in reply.members] == [
        (follower, "b"),
        (reply.member_id, "a"),
    ]
    assert world.group is not None
    assert world.group.leader_id == reply.member_id


def test_restarted_leader_leads_the_next_generation() -> None:
    """classic.md 2.11: it stays leader while it rejoins in time, although the others are members for longer."""
    world, _, follower = static_group()
    leader = world.join(instance_id="a").member_id
    assert world.group is not None
    assert list(world.group.members) == [follower, leader]
    world.join(follower, "b", names="range more")
    assert world.join(leader, "a", names="range more").reply.leader == leader


def test_restarted_leader_stays_leader_when_another_leaves() -> None:
    world, _, follower = static_group()
    third = world.enter()
    assert third.parked is not None
    leader = world.join(instance_id="a").parked
    assert leader is not None
    world.leave(third.parked.member_id)
    assert world.group is not None
    assert list(world.group.members) == [follower, leader.member_id]
    assert world.group.leader_id == leader.member_id


def test_first_session_after_a_restart_has_the_old_timeout_and_old_client() -> None:
    world, _, _ = static_group()
    reply = world.join(instance_id="b", session_timeout_ms=60_000, client_id="new", client_host="new").reply
    member = world.member(reply.member_id)
    assert reply.session_deadline == member.session_deadline == world.now + 10_000
    assert (member.session_timeout_ms, member.client_id, member.client_host) == (60_000, "client", "10.0.0.1")
    assert not member.is_new


def test_a_heartbeat_after_a_restart_begins_a_session_of_the_new_length() -> None:
    world, _, _ = static_group()
    member_id = world.join(instance_id="b", session_timeout_ms=6_000).member_id
    world.advance(1_000)
    assert world.heartbeat(member_id).reply.session_deadline == world.now + 6_000


def test_changed_metadata_of_the_same_protocol_does_not_rebalance() -> None:
    world, _, _ = static_group()
    assert world.join(instance_id="b", protocols=protocols("range", metadata=b"new")).error is Error.NONE
    assert world.state is GroupState.STABLE


def test_changed_protocol_rebalances() -> None:
    world, leader, follower = static_group(names="a b")
    call = world.join(instance_id="b", names="b")
    assert call.waits
    assert world.state is GroupState.PREPARING_REBALANCE
    assert world.join(leader, "a", names="a b").reply.protocol_name == "b"
    assert call.reply.protocol_name == "b"
    fenced = world.heartbeat(follower, "b").reply
    assert fenced.error is Error.FENCED_INSTANCE_ID
    assert fenced.detail.startswith("another member joined with group instance id 'b': stop this one")


@pytest.mark.parametrize("reason", [None, "deployed"])
def test_a_rebalance_tells_the_reason_of_the_restart(reason: str | None) -> None:
    world, _, _ = static_group(names="a b")
    call = world.join(instance_id="b", names="b", reason=reason)
    assert call.parked is not None
    assert world.last is not None
    (started,) = (record for record in world.last.records if isinstance(record, RebalanceStarted))
    assert (started.cause, started.member_id) == (Cause.STATIC_MEMBER_REPLACED, call.parked.member_id)
    assert started.detail == (reason or "")


def test_restart_while_completing_always_rebalances_and_fences_the_parked_sync() -> None:
    world = World()
    leader, follower = world.completed(world.join(instance_id="a"), world.join(instance_id="b"))
    waiting = world.sync(follower, None, "b")
    call = world.join(instance_id="b")
    assert call.parked is not None
    assert waiting.error is Error.FENCED_INSTANCE_ID
    assert world.member(call.parked.member_id).session_deadline == call.parked.parked_until + 10_000
    assert world.join(leader, "a").reply.generation_id == 2
    assert call.reply.generation_id == 2


def test_restart_while_the_first_join_is_parked_fences_it() -> None:
    world = World()
    first = world.join(instance_id="a")
    assert first.parked is not None
    second = world.join(instance_id="a")
    assert (first.error, first.member_id) == (Error.FENCED_INSTANCE_ID, first.parked.member_id)
    assert (first.reply.generation_id, first.reply.leader) == (-1, "")
    assert second.parked is not None
    assert not world.member(second.parked.member_id).is_new, "classic.md 7.2, step 2"
    world.advance(3_000)
    assert second.reply.leader == second.member_id


def test_restart_may_complete_a_prepared_rebalance() -> None:
    world, leader, _ = static_group()
    call = world.join(leader, "a", names="range more")
    restarted = world.join(instance_id="b")
    assert (call.error, restarted.error) == (Error.NONE, Error.NONE)


def test_owed_sync_goes_over_to_the_new_id() -> None:
    """Differs from Kafka (classic.md 13.1 item 6): there the old id's absence starts a needless rebalance."""
    world = World()
    leader, _ = world.completed(world.join(instance_id="a"), world.join(instance_id="b"))
    world.sync(leader, {}, "a")
    restarted = world.join(instance_id="b").member_id
    assert world.member(restarted).pending_sync
    world.sync(restarted, None, "b")
    assert world.group is not None
    assert world.group.sync_deadline is None
    for _ in range(7):
        world.advance(5_000)
        assert world.heartbeat(leader).error is Error.NONE
        assert world.heartbeat(restarted).error is Error.NONE


def test_full_group_refuses_the_restart() -> None:
    """Kafka's answer, kept (classic.md 13.1 item 3)."""
    world = World(config=GroupConfig(max_size=1))
    (member_id,) = world.completed(world.join(instance_id="a"))
    world.synced(member_id)
    assert world.join(instance_id="a").error is Error.GROUP_MAX_SIZE_REACHED
    assert world.heartbeat(member_id, "a").error is Error.NONE


def test_absent_static_member_stays_in_the_next_generation() -> None:
    world, leader, absent = static_group(rebalance_timeout_ms=8_000)
    call = world.join(leader, "a", names="range more", rebalance_timeout_ms=8_000)
    world.advance(8_000)
    assert [member.member_id for member in call.reply.members] == [leader, absent]
    assert world.member(absent).pending_sync
    assert world.member(absent).session_deadline == world.now + 10_000
    assert world.heartbeat(absent, "b", generation_id=1).error is Error.ILLEGAL_GENERATION
    world.sync(leader, {absent: b"kept"}, "a")
    world.advance(7_999)
    world.heartbeat(leader)
    assert world.state is GroupState.STABLE
    world.advance(1)
    assert world.group is not None
    assert (world.state, list(world.group.members)) == (GroupState.PREPARING_REBALANCE, [leader])


def test_absent_leader_stays_member_but_leads_no_more() -> None:
    world, leader, follower = static_group(rebalance_timeout_ms=8_000)
    call = world.join(follower, "b", names="range more", rebalance_timeout_ms=8_000)
    world.advance(8_000)
    assert call.reply.leader == follower
    assert leader in [member.member_id for member in call.reply.members]


def test_rebalance_of_absent_static_members_only_waits_for_one() -> None:
    world, leader, follower = static_group(rebalance_timeout_ms=4_000, session_timeout_ms=60_000)
    leaving = world.enter(rebalance_timeout_ms=4_000)
    assert leaving.parked is not None
    world.leave(leaving.parked.member_id)
    for _ in range(3):
        world.advance(4_000)
        assert world.group is not None
        assert world.group.join_timer is not None
        assert world.group.join_timer.deadline == world.now + 4_000
        assert (world.state, world.group.generation_id) == (GroupState.PREPARING_REBALANCE, 1)
    call = world.join(follower, "b")
    world.advance(4_000)
    assert call.reply.generation_id == 2
    assert [member.member_id for member in call.reply.members] == [leader, follower]


@pytest.mark.parametrize("last", ["session", "sync"])
def test_static_member_that_never_comes_back_is_removed(last: str) -> None:
    timeout = 60_000 if last == "session" else 4_000
    world, leader, absent = static_group(rebalance_timeout_ms=timeout)
    for _ in range(3):
        world.advance(4_000)
        world.heartbeat(leader)
    assert world.group is not None
    assert list(world.group.members) == [leader]
    assert absent not in world.group.members
