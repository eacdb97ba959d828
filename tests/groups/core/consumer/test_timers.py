"""The timers of a consumer group (consumer.md 8), and what they leave alone."""

from __future__ import annotations

import pytest

from groups.core.model.commands import DeleteGroup, ForceState
from groups.core.model.consumer_group import TimerKind, Timers
from groups.core.model.persistent import Timer
from groups.core.model.types import GroupConfig, GroupState
from kcoord.protocol.errors import Error
from tests.groups.core.consumer.world import GROUP, START, World


def world() -> World:
    made = World(config=GroupConfig(consumer_session_timeout_ms=10_000))
    made.set_topics(foo=6)
    return made


@pytest.mark.parametrize(("after", "members"), [(9_999, {"m1"}), (10_000, set())])
def test_a_session_ends_at_its_deadline(after: int, members: set[str]) -> None:
    made = world()
    made.join("m1", "foo")
    made.advance(after)
    assert set(made.consumer.members) == members


def test_a_late_look_finds_the_group_as_it_should_be() -> None:
    made = world()
    made.stable("m1", "m2")
    made.jump(8_000)
    made.heartbeat("m2", 2)
    made.jump(3_000)
    assert made.heartbeat("m1", 2).error is Error.UNKNOWN_MEMBER_ID, "expired before it was handled"
    assert set(made.consumer.members) == {"m2"}


def test_refusals_and_commits_do_not_renew_a_session() -> None:
    made = world()
    made.join("m1", "foo")
    made.now += 6_000
    assert made.heartbeat("m1", 9).error is Error.FENCED_MEMBER_EPOCH
    assert made.commit("m1", 1).error is Error.NONE
    made.advance(4_000)
    assert not made.consumer.members


def revoking() -> World:
    """m1 has to give up 3, 4 and 5 within 5 s, as of now."""
    made = world()
    made.join("m1", "foo")
    made.join("m2", "foo")
    made.heartbeat("m1", 1)
    assert set(made.consumer.timers.rebalance) == {"m1"}
    return made


def test_who_does_not_give_up_in_time_is_removed() -> None:
    made = revoking()
    for _ in range(4):
        made.advance(1_000)
        made.heartbeat("m1", 1, rebalance_timeout_ms=60_000)
        made.heartbeat("m2", 2)
    made.advance(1_000)
    assert set(made.consumer.members) == {"m2"}
    assert made.epochs == (3, 2)
    assert made.heartbeat("m2", 2).assignment == {"foo": [0, 1, 2, 3, 4, 5]}


def test_an_acknowledgement_ends_the_limit() -> None:
    made = revoking()
    made.heartbeat("m1", 1, {"foo": [0, 1, 2]})
    assert not made.consumer.timers.rebalance


def test_a_departure_ends_the_limit_and_frees_what_was_pending() -> None:
    made = world()
    made.join("m1", "foo", instance_id="i1")
    made.join("m2", "foo")
    made.heartbeat("m1", 1, instance_id="i1")
    made.heartbeat("m1", -2, instance_id="i1")
    assert not made.consumer.timers.rebalance
    assert made.heartbeat("m2", 2).assignment == {"foo": [3, 4, 5]}
    made.advance(6_000)
    assert set(made.consumer.members) == {"m1", "m2"}


def test_who_waits_for_others_has_no_limit() -> None:
    made = revoking()
    assert "m2" not in made.consumer.timers.rebalance


def test_a_rebalance_timeout_of_nothing_is_over_at_once() -> None:
    made = world()
    made.join("m1", "foo", rebalance_timeout_ms=-5)
    made.join("m2", "foo")
    made.heartbeat("m1", 1)
    assert set(made.consumer.members) == {"m2"}


def test_each_end_of_a_session_bumps() -> None:
    made = world()
    made.stable("m1", "m2", "m3")
    epoch = made.epochs[0]
    made.advance(10_000)
    assert made.epochs[0] == epoch + 3
    assert made.consumer.state.value == "Empty"


def test_timers_of_one_instant_fire_in_the_order_of_their_kinds() -> None:
    timers = Timers()
    for kind in reversed(TimerKind):
        timers = timers.arm(kind, "m", Timer(START, 0))
        assert timers.first() == (START, kind)
    assert timers.forget("m").first() is None


def test_an_empty_group_stays_until_it_is_deleted() -> None:
    made = world()
    made.join("m1", "foo")
    assert made.send(DeleteGroup(GROUP)).error is Error.NON_EMPTY_GROUP
    made.heartbeat("m1", -1)
    made.advance(1_000_000)
    assert made.epochs == (2, 2)
    assert made.join("m1", "foo").epoch == 3
    made.heartbeat("m1", -1)
    assert made.send(DeleteGroup(GROUP)).error is Error.NONE
    assert made.group is None
    assert made.send(DeleteGroup(GROUP)).error is Error.GROUP_ID_NOT_FOUND


def test_only_classic_groups_are_unloaded() -> None:
    made = world()
    made.join("m1", "foo")
    with pytest.raises(ValueError, match="consumer group"):
        made.send(ForceState(GROUP, GroupState.DEAD))
