"""Parked requests and sessions over HTTP (classic.md 3, 6; http-api.md "Waiting")."""

from __future__ import annotations

import pytest

from groups.core.model.commands import AbandonWait, ParkKind
from groups.core.model.types import GroupState
from kcoord.protocol.errors import Error
from tests.groups.core.world import GROUP, Call, World

WAIT, SESSION = 30_000, 10_000


def preparing() -> tuple[World, Call, str]:
    """A rebalance in which the first of two members is parked and the second is not."""
    world = World()
    first, second = world.completed(
        world.enter(rebalance_timeout_ms=200_000), world.enter(rebalance_timeout_ms=200_000, session_timeout_ms=600_000)
    )
    world.synced(first, second)
    return world, world.join(first, rebalance_timeout_ms=200_000), first


def test_session_does_not_run_out_while_a_join_is_held_nor_a_session_timeout_after() -> None:
    """Differs from Kafka: there it never runs out while a request is parked, held or not."""
    world, call, member_id = preparing()
    world.advance(WAIT + SESSION - 1)
    assert call.ran_out
    assert world.group is not None
    assert member_id in world.group.members
    assert world.member(member_id).awaiting_join, "the join still counts"
    world.advance(1)
    assert member_id not in world.group.members


def test_join_sent_again_holds_on() -> None:
    world, _, member_id = preparing()
    for _ in range(5):
        world.advance(WAIT + SESSION - 1_000)
        call = world.join(member_id, rebalance_timeout_ms=200_000)
    world.advance(4_999)
    assert call.waits
    world.advance(1)
    assert call.reply.generation_id == 2


def test_completed_join_renews_the_session_of_who_waited_and_who_did_not() -> None:
    world, call, member_id = preparing()
    world.advance(5_000)
    second = world.join(list(world.group.members)[1] if world.group else "", session_timeout_ms=7_000)
    assert call.reply.session_deadline == world.member(member_id).session_deadline == world.now + SESSION
    assert second.reply.session_deadline == world.now + 7_000
    assert world.member(member_id).join_parked_until is None


def test_heartbeat_does_not_shorten_the_session_of_who_waits() -> None:
    world, _, member_id = preparing()
    deadline = world.member(member_id).session_deadline
    beat = world.heartbeat(member_id)
    assert beat.error is Error.REBALANCE_IN_PROGRESS
    assert beat.reply.session_deadline == world.member(member_id).session_deadline == deadline
    world.advance(WAIT + 5_000)
    world.heartbeat(member_id)
    assert world.member(member_id).session_deadline == world.now + SESSION


def test_heartbeat_does_not_shorten_the_session_of_who_waits_for_an_assignment() -> None:
    world = World()
    _, follower = world.completed(world.enter(rebalance_timeout_ms=200_000), world.enter())
    world.sync(follower)
    deadline = world.now + WAIT + SESSION
    assert world.heartbeat(follower).reply.session_deadline == deadline
    assert world.member(follower).session_deadline == deadline


def test_a_member_is_held_as_long_as_it_asks_for() -> None:
    """Only the first join of a new member has a limit (classic.md 10.1)."""
    world, _, member_id = preparing()
    world.join(member_id, rebalance_timeout_ms=200_000, max_wait_ms=400_000)
    assert world.member(member_id).session_deadline == world.now + 400_000 + SESSION


def test_abandoned_join_counts_but_the_session_does() -> None:
    """Differs from Kafka: it does not notice that the connection is gone."""
    world, call, member_id = preparing()
    world.advance(1_000)
    assert world.abandon(call).error is Error.NONE
    assert world.member(member_id).awaiting_join
    assert world.member(member_id).session_deadline == world.now + SESSION
    world.advance(SESSION - 1)
    again = world.join(member_id, rebalance_timeout_ms=200_000)
    assert world.member(member_id).session_deadline == world.now + WAIT + SESSION
    world.leave(list(world.group.members)[1] if world.group else "")
    assert again.error is Error.NONE


def test_shorter_request_does_not_shorten_the_session_of_a_longer_one() -> None:
    world, _, member_id = preparing()
    deadline = world.member(member_id).session_deadline
    world.join(member_id, max_wait_ms=1_000)
    assert world.member(member_id).session_deadline == deadline


def test_abandoning_does_not_prolong_a_new_members_limit() -> None:
    world = World()
    long = {"rebalance_timeout_ms": 900_000, "session_timeout_ms": 1_500_000}
    (first,) = world.completed(world.enter(**long))
    world.synced(first)
    call = world.enter(rebalance_timeout_ms=900_000, max_wait_ms=900_000)
    assert call.parked is not None
    world.advance(295_000)
    world.abandon(call)
    assert world.member(call.parked.member_id).session_deadline == world.now + 5_000


def test_abandoning_a_displaced_request_changes_nothing() -> None:
    world, older, member_id = preparing()
    world.advance(1_000)
    newer = world.join(member_id, rebalance_timeout_ms=200_000)
    before = world.group
    world.abandon(older)
    assert world.group is before
    world.abandon(newer)
    assert world.member(member_id).session_deadline == world.now + SESSION


@pytest.mark.parametrize("kind", [ParkKind.JOIN, ParkKind.SYNC])
def test_what_was_abandoned_once_is_held_no_longer(kind: ParkKind) -> None:
    if kind is ParkKind.JOIN:
        world, call, member_id = preparing()
    else:
        world = World()
        _, member_id = world.completed(world.enter(), world.enter())
        call = world.sync(member_id)
    world.advance(1_000)
    world.abandon(call)
    world.advance(1_000)
    before = world.group
    world.send(AbandonWait(GROUP, member_id, kind))
    assert world.group is before


@pytest.mark.parametrize("late", [0, 1])
def test_a_wait_that_has_run_out_cannot_be_abandoned(late: int) -> None:
    """The client was told to send the request again, and has its session until then."""
    world, call, _ = preparing()
    world.advance(WAIT + late)
    assert call.ran_out
    before = world.group
    world.abandon(call)
    assert world.group is before


def test_abandon_is_never_an_error() -> None:
    world = World()
    for kind in ParkKind:
        assert world.send(AbandonWait(GROUP, "nobody", kind)).error is Error.NONE
    (member_id,) = world.stable(1)
    before = world.group
    for kind in ParkKind:
        assert world.send(AbandonWait(GROUP, member_id, kind)).error is Error.NONE
    assert world.group is before


def test_parked_sync_is_suspended_and_abandoned_like_a_join() -> None:
    world = World()
    fields = {"rebalance_timeout_ms": 200_000}
    leader, follower = world.completed(world.enter(**fields, session_timeout_ms=600_000), world.enter(**fields))
    call = world.sync(follower)
    assert world.member(follower).session_deadline == world.now + WAIT + SESSION
    world.advance(SESSION + 5_000)
    world.abandon(call)
    assert world.member(follower).session_deadline == world.now + SESSION
    again = world.sync(follower)
    world.sync(leader, {follower: b"F"})
    assert again.reply.assignment == b"F"
    world.advance(SESSION - 1)
    assert world.heartbeat(follower).error is Error.NONE


def test_sync_whose_member_expires_is_answered() -> None:
    world = World()
    fields = {"rebalance_timeout_ms": 200_000, "session_timeout_ms": 60_000}
    _, follower = world.completed(world.enter(**fields), world.enter(rebalance_timeout_ms=200_000))
    world.sync(follower, max_wait_ms=WAIT)
    world.advance(WAIT + SESSION)
    assert world.group is not None
    assert follower not in world.group.members
    assert world.state is GroupState.PREPARING_REBALANCE


@pytest.mark.parametrize("session", [6_000, 400_000])
def test_new_member_has_five_minutes_whatever_its_session_timeout(session: int) -> None:
    world = World()
    long = {"rebalance_timeout_ms": 900_000, "session_timeout_ms": 1_500_000}
    world.completed(*(first := [world.enter(**long)]))
    world.synced(first[0].member_id)
    call = world.enter(rebalance_timeout_ms=900_000, session_timeout_ms=session, max_wait_ms=900_000)
    assert call.parked is not None
    world.advance(299_999)
    assert call.waits
    world.advance(1)
    assert (call.error, call.member_id) == (Error.UNKNOWN_MEMBER_ID, "")


def test_sending_a_new_members_join_again_does_not_renew_its_limit() -> None:
    world = World()
    long = {"rebalance_timeout_ms": 900_000, "session_timeout_ms": 1_500_000}
    (first,) = world.completed(world.enter(**long))
    world.synced(first)
    call = world.enter(rebalance_timeout_ms=900_000, session_timeout_ms=6_000)
    assert call.parked is not None
    member_id = call.parked.member_id
    for _ in range(9):
        world.advance(WAIT)
        call = world.join(member_id, rebalance_timeout_ms=900_000, session_timeout_ms=6_000)
    world.advance(WAIT - 1)
    assert call.waits
    world.advance(1)
    assert world.group is not None
    assert member_id not in world.group.members


def test_sending_a_new_members_join_again_does_not_shorten_its_limit() -> None:
    """Also of a member that came late to the rebalance."""
    world = World()
    long = {"rebalance_timeout_ms": 900_000, "session_timeout_ms": 1_500_000}
    (first,) = world.completed(world.enter(**long))
    world.synced(first)
    world.enter(rebalance_timeout_ms=900_000)
    world.advance(100_000)
    late = world.enter(rebalance_timeout_ms=900_000)
    assert late.parked is not None
    limit = world.now + 300_000
    for _ in range(10):
        world.advance(29_000)
        late = world.join(late.parked.member_id, rebalance_timeout_ms=900_000)
        assert late.parked is not None
        assert world.member(late.parked.member_id).session_deadline == limit


def test_new_member_gets_its_limit_back_after_an_abandoned_wait() -> None:
    world = World()
    long = {"rebalance_timeout_ms": 900_000, "session_timeout_ms": 1_500_000}
    (first,) = world.completed(world.enter(**long))
    world.synced(first)
    call = world.enter(rebalance_timeout_ms=900_000)
    assert call.parked is not None
    member_id = call.parked.member_id
    for _ in range(20):
        world.advance(8_000)
        world.abandon(call)
        assert world.member(member_id).session_deadline == world.now + SESSION
        call = world.join(member_id, rebalance_timeout_ms=900_000)
        assert world.member(member_id).session_deadline == world.now + WAIT + SESSION
    world.advance(WAIT + SESSION)
    assert world.group is not None
    assert member_id not in world.group.members


def test_heartbeat_of_a_new_member_replaces_its_limit() -> None:
    world = World()
    long = {"rebalance_timeout_ms": 900_000, "session_timeout_ms": 1_500_000}
    (first,) = world.completed(world.enter(**long))
    world.synced(first)
    call = world.enter(rebalance_timeout_ms=900_000, max_wait_ms=900_000)
    assert call.parked is not None
    world.heartbeat(call.parked.member_id)
    world.advance(SESSION)
    assert call.error is Error.UNKNOWN_MEMBER_ID
