"""Sessions, pending ids, late timers (classic.md 6)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groups.core.classic import rebalance
from groups.core.model.group import Deadline, TimerKind, due, wake_at, wake_at_to_store
from groups.core.model.records import MemberRemoved
from groups.core.model.types import ClassicGroup, ClassicMember, GroupState, JoinTimer, Members, PendingIds
from kcoord.protocol.errors import Error
from tests.groups.core.world import World


def test_what_renews_a_session() -> None:
    world = World()
    leader, follower = world.stable(2)
    world.advance(1_000)

    def renewed(deadline: int | None) -> bool:
        kept = world.member(follower).session_deadline
        return deadline == kept == world.now + 10_000 and world.member(follower).last_heartbeat_at == world.now

    assert not renewed(world.join(follower).reply.session_deadline)
    assert not renewed(world.sync(follower).reply.session_deadline)
    assert not renewed(world.commit(follower, transactional=True).reply.session_deadline)
    assert not renewed(world.heartbeat(follower, generation_id=7).reply.session_deadline)
    assert renewed(world.heartbeat(follower).reply.session_deadline)
    world.advance(1_000)
    assert renewed(world.commit(follower).reply.session_deadline)
    world.join(leader)
    world.advance(1_000)
    assert world.state is GroupState.PREPARING_REBALANCE
    assert renewed(world.commit(follower).reply.session_deadline)
    world.advance(1_000)
    assert renewed(world.heartbeat(follower).reply.session_deadline)


def test_session_ends_exactly_at_its_deadline() -> None:
    world = World()
    (member_id,) = world.stable(1)
    world.advance(9_999)
    assert world.heartbeat(member_id).error is Error.NONE
    world.advance(10_000)
    assert world.state is GroupState.EMPTY
    assert world.heartbeat(member_id).error is Error.UNKNOWN_MEMBER_ID


def test_a_command_expires_first_however_late_the_timers_are() -> None:
    world = World()
    leader, follower = world.stable(2)
    world.jump(9_000)
    world.heartbeat(leader)
    world.jump(2_000)
    reply = world.heartbeat(follower)
    assert reply.error is Error.UNKNOWN_MEMBER_ID, "its session was over, no tick had said so"
    assert world.heartbeat(leader).error is Error.REBALANCE_IN_PROGRESS


def test_late_timers_give_everybody_the_full_time_again() -> None:
    world = World()
    call = world.enter(max_wait_ms=600_000)
    world.jump(250_000)
    world.tick()
    assert call.error is Error.NONE
    assert world.group is not None
    assert world.group.sync_deadline == world.now + 30_000
    assert world.member(call.member_id).session_deadline == world.now + 10_000


def test_own_join_may_expire_into_the_generation_it_asks_for() -> None:
    """The join timer is overdue when the member sends its join again: the older one completes, the newer sees it."""
    world = World()
    first, second = world.completed(world.enter(), world.enter(session_timeout_ms=600_000))
    world.synced(first, second)
    older = world.join(second, names="range more", session_timeout_ms=600_000, max_wait_ms=60_000)
    world.now += 30_000
    newer = world.join(second, names="range more", session_timeout_ms=600_000)
    assert (older.reply.generation_id, newer.reply.generation_id) == (2, 2)
    assert len(older.reply.members) == 1


def test_answer_of_an_expired_barrier_is_not_the_newer_requests() -> None:
    world = World()
    first, second = world.completed(world.enter(), world.enter(session_timeout_ms=600_000))
    world.synced(first, second)
    older = world.join(second, names="range more", session_timeout_ms=600_000, max_wait_ms=60_000)
    world.now += 30_000
    newer = world.join(second, names="range other", session_timeout_ms=600_000)
    assert (older.reply.generation_id, newer.reply.generation_id) == (2, 3)


def test_overdue_timers_fire_in_the_order_of_their_deadlines() -> None:
    world = World()
    first, second = world.completed(world.enter(session_timeout_ms=20_000), world.enter())
    world.synced(first, second)
    world.jump(60_000)
    world.tick()
    assert world.last is not None
    gone = [record.member_id for record in world.last.records if isinstance(record, MemberRemoved)]
    assert gone == [second, first]
    assert world.group is not None
    assert (world.state, world.group.generation_id) == (GroupState.EMPTY, 2)


def test_pending_id_expires_after_the_sessions_timeout_of_its_request() -> None:
    world = World()
    pending = world.join(session_timeout_ms=6_000).member_id
    world.advance(5_999)
    assert world.group is not None
    assert pending in world.group.pending_join
    world.advance(1)
    assert pending not in world.group.pending_join
    assert world.join(pending).error is Error.UNKNOWN_MEMBER_ID


def test_pending_expiry_completes_a_rebalance() -> None:
    world = World()
    (member_id,) = world.stable(1)
    world.join(session_timeout_ms=6_000)
    call = world.join(member_id)
    world.advance(6_000)
    assert call.error is Error.NONE


def test_expiry_of_a_member_completes_a_rebalance_it_was_missing_from() -> None:
    world = World()
    first, second = world.stable(2)
    call = world.join(first)
    world.advance(10_000)
    assert [member.member_id for member in call.reply.members] == [first]
    assert second not in (world.group.members if world.group else ())


def test_wake_at_is_the_earliest_deadline() -> None:
    assert wake_at(None) is None
    assert wake_at(ClassicGroup("g")) is None
    world = World()
    world.join(session_timeout_ms=7_000)
    assert wake_at(world.group) == world.now + 7_000, "a pending id"
    call = world.enter(session_timeout_ms=60_000)
    assert wake_at(world.group) == world.now + 3_000, "the join timer"
    world.advance(7_000)
    assert world.group is not None
    assert wake_at(world.group) == world.group.sync_deadline, "the sync timer"
    world.synced(call.member_id)
    assert wake_at(world.group) == world.member(call.member_id).session_deadline, "a session"
    at = wake_at(world.group) or 0
    assert due(world.group, at - 1, at - 1) is None


@pytest.mark.parametrize(
    ("stored", "due_at", "kept"),
    [
        (None, None, None),
        (None, 130, 130),
        (150, None, None),
        (150, 130, 130),
        (111, 130, 111),
        (110, 130, 130),
        (109, 130, 130),
        (90, 130, 130),
    ],
)
def test_a_wake_up_is_never_late_and_moves_ahead_when_a_third_of_the_time_is_left(
    stored: int | None, due_at: int | None, kept: int | None
) -> None:
    assert wake_at_to_store(stored, due_at, now=100) == kept


def test_timers_of_the_same_instant_fire_in_a_fixed_order() -> None:
    at = World().now
    member = ClassicMember("m", None, "c", "h", 1, 1, "consumer", (), session_deadline=at)
    group = ClassicGroup(
        "g",
        state=GroupState.PREPARING_REBALANCE,
        members=Members([member]),
        pending_join=PendingIds({"p": at}),
        join_timer=JoinTimer(at),
        sync_deadline=at,
    )
    fired = []
    for without in (
        {"pending_join": PendingIds()},
        {"members": Members()},
        {"join_timer": None},
        {"sync_deadline": None},
    ):
        deadline = due(group, at, at)
        assert deadline is not None
        fired.append((deadline.kind, deadline.member_id))
        group = replace(group, **without)
    assert fired == [
        (TimerKind.PENDING, "p"),
        (TimerKind.SESSION, "m"),
        (TimerKind.JOIN, ""),
        (TimerKind.SYNC, ""),
    ]
    assert due(group, at, at) is None
    later = replace(group, join_timer=JoinTimer(at + 1), sync_deadline=at)
    assert due(later, at, at) == Deadline(at, TimerKind.SYNC)


def test_timers_that_do_not_come_to_rest_are_a_bug_and_not_an_endless_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.stable(2)
    monkeypatch.setattr(rebalance, "_fire", lambda turn, deadline: None)
    with pytest.raises(AssertionError, match=r"timers of group .* do not come to rest: 24 fired"):
        world.advance(60_000)


def test_metadata_of_a_protocol() -> None:
    world = World()
    (member_id,) = world.stable(1)
    member = world.member(member_id)
    assert [member.metadata_of(protocol.name) for protocol in member.protocols] == [
        protocol.metadata for protocol in member.protocols
    ]
    for other in ("zigzag", None):
        with pytest.raises(ValueError, match=f"does not support the protocol {other!r}"):
            member.metadata_of(other)
