"""Consumer groups: holds and kicks, of members of both protocols."""

from __future__ import annotations

import pytest

from groups.core.model.consumer_group import ConsumerGroup, ConsumerMember
from groups.core.model.consumer_records import ConsumerMemberJoined
from groups.core.model.events import EventKind, events_of
from groups.core.model.fold import IllegalTransition, apply
from groups.core.model.types import ClassicGroup, GroupState, Hold
from kcoord.protocol.errors import Error
from tests.groups.core.consumer.classic_client import beat_classic, join_classic, migrating_world
from tests.groups.core.consumer.world import START, World


def world_of(*member_ids: str) -> World:
    made = World()
    made.set_topics(foo=6)
    made.stable(*member_ids)
    return made


def test_hold_empties_the_group_and_its_epoch_grows() -> None:
    world = world_of("m1", "m2")
    epoch = world.consumer.group_epoch
    reply = world.hold(60_000).reply
    assert (reply.hold, reply.removed) == (Hold(world.now + 60_000, "ann", "reset"), 2)
    assert (len(world.consumer.members), world.consumer.group_epoch) == (0, epoch + 1)
    assert world.heartbeat("m1", epoch).error is Error.UNKNOWN_MEMBER_ID
    refused = world.join("m1", "foo")
    assert (refused.error, refused.reply.retry_after_ms) == (Error.COORDINATOR_LOAD_IN_PROGRESS, 10_000)
    assert world.commit("m1", epoch).error is Error.UNKNOWN_MEMBER_ID
    assert world.commit("", -1).error is Error.COORDINATOR_LOAD_IN_PROGRESS
    world.jump(60_000)
    back = world.join("m1", "foo")
    assert (back.assignment, back.epoch) == ({"foo": [0, 1, 2, 3, 4, 5]}, epoch + 2)


def test_hold_answers_held_heartbeats() -> None:
    world = world_of("m1")
    waiting = world.heartbeat("m1", world.member("m1").member_epoch, max_wait_ms=30_000)
    assert waiting.parked is not None
    world.hold(60_000)
    assert waiting.error is Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("instance_id", [None, "i"])
def test_nobody_joins_a_held_group(instance_id: str | None) -> None:
    world = world_of("m1")
    world.hold(60_000)
    held = world.group
    joins = [
        world.join("m1", "foo", instance_id=instance_id),
        world.join("m2", "foo", instance_id=instance_id, max_wait_ms=9_000),
        join_classic(world, "", ("foo",), instance_id=instance_id),
        join_classic(world, "x", ("foo",), instance_id=instance_id),
    ]
    assert {call.error for call in joins} == {Error.COORDINATOR_LOAD_IN_PROGRESS}
    assert world.group is held, "not even its protocol changed"


def test_departed_static_member_goes_too() -> None:
    world = world_of("m0")
    world.join("m1", "foo", instance_id="i")
    world.heartbeat("m1", -2, instance_id="i")
    assert world.hold(1_000).reply.removed == 2
    world.release()
    assert world.join("m2", "foo", instance_id="i").error is Error.NONE


def test_hold_of_a_mixed_group_does_not_change_its_protocol() -> None:
    world = migrating_world()
    assert world.join("m1", "foo").error is Error.NONE
    asked = join_classic(world, "", ("foo",)).reply.member_id
    join_classic(world, asked, ("foo",))
    assert world.hold(60_000).reply.removed == 2
    assert isinstance(world.group, ConsumerGroup)
    assert beat_classic(world, asked, 1).error is Error.UNKNOWN_MEMBER_ID


def test_classic_group_that_is_held_stays_classic() -> None:
    world = migrating_world()
    join_classic(world, "", ("foo",))
    world.hold(60_000)
    held = world.group
    assert world.join("m1", "foo").error is Error.COORDINATOR_LOAD_IN_PROGRESS
    assert isinstance(held, ClassicGroup)
    assert world.group is held
    assert world.heartbeat("m1", 7).error is Error.GROUP_ID_NOT_FOUND
    world.release()
    assert world.join("m1", "foo").error is Error.NONE


def test_nobody_is_folded_into_a_held_group() -> None:
    held = ConsumerGroup("g", hold=Hold(START, "ann", ""))
    with pytest.raises(IllegalTransition, match="held"):
        apply(held, ConsumerMemberJoined(ConsumerMember("m"), START))


def test_kick_is_what_a_leave_would_be() -> None:
    kicked, left = world_of("m1", "m2"), world_of("m1", "m2")
    assert kicked.kick("m1").error is Error.NONE
    left.heartbeat("m1", -1)
    assert kicked.group == left.group
    assert kicked.heartbeat("m1", 2).error is Error.UNKNOWN_MEMBER_ID
    assert kicked.join("m1", "foo").error is Error.NONE, "it may come back"


def test_kick_of_a_member_that_departed_for_a_while_frees_its_partitions() -> None:
    world = world_of("m0")
    world.join("m1", "foo", instance_id="i")
    world.heartbeat("m0", 1)
    world.heartbeat("m0", 1, {"foo": [3, 4, 5]})
    assert world.heartbeat("m1", 2, instance_id="i").assignment == {"foo": [0, 1, 2]}
    world.heartbeat("m1", -2, instance_id="i")
    assert world.kick("m1").error is Error.NONE
    assert set(world.consumer.members) == {"m0"}
    assert world.heartbeat("m0", world.member("m0").member_epoch).assignment == {"foo": [0, 1, 2, 3, 4, 5]}


def test_kick_of_the_last_modern_member_lets_the_group_go_on_as_a_classic_one() -> None:
    world = migrating_world()
    world.join("m1", "foo")
    asked = join_classic(world, "", ("foo",)).reply.member_id
    join_classic(world, asked, ("foo",))
    world.kick("m1")
    assert isinstance(world.group, ClassicGroup)
    assert (world.group.state, set(world.group.members)) == (GroupState.PREPARING_REBALANCE, {asked})


def test_kick_of_a_classic_member_of_a_consumer_group() -> None:
    world = migrating_world()
    world.join("m1", "foo")
    asked = join_classic(world, "", ("foo",)).reply.member_id
    generation = join_classic(world, asked, ("foo",)).reply.generation_id
    assert world.kick(asked).error is Error.NONE
    assert set(world.consumer.members) == {"m1"}
    assert beat_classic(world, asked, generation).error is Error.UNKNOWN_MEMBER_ID
    assert world.kick("nobody").error is Error.UNKNOWN_MEMBER_ID


def test_events() -> None:
    world = world_of("m1")
    before = world.group
    world.kick("m1", "ann", "hangs")
    assert world.last is not None
    removed, bumped = events_of(before, world.last.records)
    assert (removed.kind, removed.member_id) == (EventKind.MEMBER_REMOVED, "m1")
    assert removed.detail == {"cause": "member_kicked", "reason": "hangs", "principal": "ann"}
    assert bumped.detail == {"cause": "member_kicked"}
    before = world.group
    world.hold(1_000, "bob", "")
    (held,) = events_of(before, world.last.records)
    assert (held.kind, held.detail) == (
        EventKind.GROUP_HELD,
        {"principal": "bob", "until": world.now + 1_000, "members": 0},
    )
