"""What any process tells a waiting request from the group alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groups.core.machine import answer_for
from groups.core.model.commands import ForceState, ParkKind
from groups.core.model.consumer_group import ConsumerGroup
from groups.core.model.replies import JoinReply, Parked, SyncReply
from groups.core.model.types import GroupState
from kcoord.protocol.errors import Error
from tests.groups.core.world import GROUP, World


def join(member_id: str, instance_id: str | None = None, generation_id: int = 0) -> Parked:
    return Parked(ParkKind.JOIN, member_id, instance_id, generation_id)


def sync(member_id: str, instance_id: str | None = None, generation_id: int = 1) -> Parked:
    return Parked(ParkKind.SYNC, member_id, instance_id, generation_id)


def test_join_waits_then_succeeds_with_the_generation_as_it_is() -> None:
    world = World()
    call = world.enter()
    assert call.parked is not None
    assert answer_for(world.group, call.parked) is None
    world.completed(call)
    assert answer_for(world.group, call.parked) == call.reply
    world.synced(call.member_id)
    late = answer_for(world.group, call.parked)
    assert isinstance(late, JoinReply)
    assert (late.error, late.generation_id, len(late.members)) == (Error.NONE, 1, 1)


def test_join_that_looks_when_the_group_prepares_again_is_sent_to_join_again() -> None:
    world = World()
    first, second = world.stable(2)
    world.join(second, names="range more")
    reply = answer_for(world.group, join(first))
    assert isinstance(reply, JoinReply)
    assert (reply.error, reply.member_id) == (Error.REBALANCE_IN_PROGRESS, first)
    assert answer_for(world.group, join(second)) is None, "its newer join waits, and will be answered for both"


def test_join_of_a_member_that_is_gone() -> None:
    world = World()
    static, dynamic = world.completed(world.join(instance_id="i"), world.enter())
    world.synced(static, dynamic)
    world.leave(dynamic)
    gone = answer_for(world.group, join(dynamic))
    assert isinstance(gone, JoinReply)
    assert (gone.error, gone.member_id) == (Error.UNKNOWN_MEMBER_ID, "")
    assert gone.detail == f"the group has no member {dynamic!r} (any more): join with an empty member id"
    world.join(instance_id="i")
    fenced = answer_for(world.group, join(static, "i"))
    assert isinstance(fenced, JoinReply)
    assert (fenced.error, fenced.member_id) == (Error.FENCED_INSTANCE_ID, static)


def test_sync_waits_then_gets_the_assignment_of_its_generation_only() -> None:
    world = World()
    leader, follower = world.completed(world.enter(), world.enter())
    call = world.sync(follower)
    assert call.parked is not None
    assert answer_for(world.group, call.parked) is None
    world.sync(leader, {follower: b"F"})
    assert answer_for(world.group, call.parked) == call.reply
    world.join(leader)
    reply = answer_for(world.group, call.parked)
    assert isinstance(reply, SyncReply)
    assert (reply.error, reply.assignment) == (Error.REBALANCE_IN_PROGRESS, b"")
    world.join(follower)
    world.sync(leader, {follower: b"G"})
    later = answer_for(world.group, call.parked)
    assert later is not None
    assert later.error is Error.REBALANCE_IN_PROGRESS, "the next generation's assignment is not this sync's"


def test_sync_of_a_member_that_is_gone() -> None:
    world = World()
    (static,) = world.completed(world.join(instance_id="i"))
    assert world.join(instance_id="i").error is Error.NONE
    for parked, error in ((sync(static, "i"), Error.FENCED_INSTANCE_ID), (sync("x"), Error.UNKNOWN_MEMBER_ID)):
        reply = answer_for(world.group, parked)
        assert isinstance(reply, SyncReply)
        assert reply.error is error


def test_group_that_is_gone_or_dead() -> None:
    for parked in (join("m"), sync("m", "i")):
        reply = answer_for(None, parked)
        assert reply is not None
        assert reply.error is Error.UNKNOWN_MEMBER_ID
    world = World()
    call = world.enter()
    assert call.parked is not None
    world.kill()
    assert (call.error, call.member_id) == (Error.NOT_COORDINATOR, call.parked.member_id)
    world = World()
    _, follower = world.completed(world.enter(), world.enter())
    waiting = world.sync(follower)
    world.kill()
    assert waiting.error is Error.NOT_COORDINATOR


def test_only_an_existing_group_can_be_unloaded() -> None:
    world = World()
    with pytest.raises(ValueError, match="not 'orders' Dead"):
        world.kill()
    world.stable(1)
    before = world.group
    with pytest.raises(ValueError, match="not 'orders' Empty"):
        world.send(ForceState(GROUP, GroupState.EMPTY))
    assert world.group is before


def test_a_static_member_that_left_is_unknown_and_not_fenced() -> None:
    """FENCED_INSTANCE_ID is for a member whose instance id another one has now (classic.md 7.4)."""
    world = World()
    leader, static = world.completed(world.enter(), world.join(instance_id="i"))
    world.synced(leader, static)
    call = world.join(static, "i", names="range more")
    world.leave(static, instance_id="i")
    assert (call.error, call.member_id) == (Error.UNKNOWN_MEMBER_ID, "")


def test_any_process_sees_the_same_after_the_group_was_read_back() -> None:
    """The answer needs nothing but what is stored: an equal group gives an equal answer."""
    world = World()
    call = world.enter()
    assert call.parked is not None
    world.completed(call)
    assert world.group is not None
    read_back = replace(world.group, members=type(world.group.members)(world.group.members.values()))
    assert world.state is GroupState.COMPLETING_REBALANCE
    assert answer_for(read_back, call.parked) == call.reply


def test_a_group_that_goes_on_in_the_consumer_protocol_sends_everybody_to_join_again() -> None:
    """consumer.md 9.5: also the waiter whose process learns of it later."""
    group = ConsumerGroup("orders")
    joining, syncing = answer_for(group, join("m1")), answer_for(group, sync("m1"))
    assert isinstance(joining, JoinReply)
    assert (joining.error, joining.member_id) == (Error.REBALANCE_IN_PROGRESS, "m1")
    assert isinstance(syncing, SyncReply)
    assert syncing.error is Error.REBALANCE_IN_PROGRESS
