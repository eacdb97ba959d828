"""The delay of an initial rebalance (classic.md 2.7)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groups.core.model.types import GroupConfig, GroupState
from kcoord.protocol.errors import Error
from tests.groups.core.world import World

DELAY = 3_000


def test_one_member_completes_exactly_at_the_end_of_the_window() -> None:
    world = World()
    call = world.enter()
    world.advance(DELAY - 1)
    assert call.waits
    world.advance(1)
    assert (call.error, call.reply.generation_id, call.reply.leader) == (Error.NONE, 1, call.member_id)


def test_windows_slide_as_long_as_somebody_new_came() -> None:
    world = World()
    first = world.enter()
    world.advance(DELAY - 1)
    second = world.enter()
    world.advance(1 + DELAY - 1)
    assert first.waits
    assert second.waits
    third = world.enter()
    world.advance(1)
    assert first.waits
    world.advance(DELAY)
    assert [call.reply.generation_id for call in (first, second, third)] == [1, 1, 1]


def test_windows_end_with_the_first_members_rebalance_timeout() -> None:
    world = World()
    first = world.enter(rebalance_timeout_ms=7_000)
    for _ in range(2):
        world.enter(rebalance_timeout_ms=100_000)
        world.advance(DELAY)
        assert first.waits
    world.enter()
    world.advance(999)
    assert first.waits
    world.advance(1)
    assert first.error is Error.NONE


def test_timeout_not_longer_than_the_delay_is_never_prolonged() -> None:
    world = World()
    first = world.enter(rebalance_timeout_ms=DELAY)
    second = world.enter()
    world.advance(DELAY)
    assert (first.error, second.error) == (Error.NONE, Error.NONE)


@pytest.mark.parametrize("what", ["resend", "pending", "static"])
def test_only_new_members_prolong(what: str) -> None:
    world = World()
    first = world.join(instance_id="i")
    assert first.parked is not None
    if what == "resend":
        world.join(first.parked.member_id, "i")
    elif what == "static":
        world.join(instance_id="i")
    else:
        world.join()
    world.advance(DELAY)
    assert world.state is GroupState.COMPLETING_REBALANCE


def test_without_delay_the_join_completes_at_once() -> None:
    world = World(config=GroupConfig(initial_rebalance_delay_ms=0))
    assert world.enter().reply.generation_id == 1


def test_everybody_left_during_the_delay() -> None:
    world = World()
    call = world.enter()
    assert call.parked is not None
    world.leave(call.parked.member_id)
    assert (call.error, call.member_id) == (Error.UNKNOWN_MEMBER_ID, "")
    assert world.state is GroupState.PREPARING_REBALANCE
    world.advance(DELAY)
    assert world.group is not None
    assert (world.state, world.group.generation_id) == (GroupState.EMPTY, 1)


def test_delay_applies_to_every_start_from_empty() -> None:
    world = World()
    (member_id,) = world.stable(1)
    world.leave(member_id)
    assert world.state is GroupState.EMPTY
    call = world.enter()
    world.advance(DELAY - 1)
    assert call.waits
    world.advance(1)
    assert call.reply.generation_id == 3


def test_flag_left_over_from_an_ended_delay_does_not_prolong_the_next() -> None:
    """Differs from Kafka (classic.md 13.1 item 1): there a window may be prolonged for a member of an earlier
    rebalance.
    """
    world = World()
    first = world.enter(rebalance_timeout_ms=DELAY)
    second = world.enter()
    (first_id, second_id) = world.completed(first, second)
    assert world.group is not None
    assert world.group.new_member_added, "time ran out before the flag was looked at"
    world.leave(first_id, second_id)
    assert world.state is GroupState.EMPTY
    call = world.enter()
    world.advance(DELAY)
    assert call.error is Error.NONE


@pytest.mark.parametrize("who", ["pending", "member"])
def test_expiry_cuts_the_delay_short(who: str) -> None:
    world = World(config=replace(GroupConfig(), initial_rebalance_delay_ms=400_000))
    if who == "pending":
        world.join(session_timeout_ms=6_000)
    call = world.enter(rebalance_timeout_ms=500_000, max_wait_ms=500_000)
    if who == "member":
        assert call.parked is not None
        world.advance(299_000)
        later = world.enter(rebalance_timeout_ms=500_000, max_wait_ms=500_000)
        world.advance(1_000)
        assert (call.error, call.member_id) == (Error.UNKNOWN_MEMBER_ID, "")
        assert later.reply.generation_id == 1
    else:
        world.advance(5_999)
        assert call.waits
        world.advance(1)
        assert call.error is Error.NONE
