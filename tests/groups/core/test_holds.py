"""Classic groups: holds and kicks. What each API answers while a group is held, `test_tables` says."""

from __future__ import annotations

import pytest

from groups.core.model.commands import HoldGroup, ResetOffsets
from groups.core.model.consumer_group import ConsumerGroup
from groups.core.model.events import EventKind, events_of
from groups.core.model.fold import IllegalTransition, apply
from groups.core.model.group import MOST_RETRY_AFTER_MS
from groups.core.model.records import GroupConverted, GroupHeld, MemberPending, RebalanceStarted
from groups.core.model.types import ClassicGroup, GroupState, Hold, PendingIds
from kcoord.protocol.errors import Error
from tests.groups.core.world import GROUP, START, Call, World, protocols

STATES = [GroupState.EMPTY, GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE, GroupState.STABLE]


def world_in(state: GroupState) -> World:
    """Two members, one of them static, and a pending id."""
    world = World()
    if state is not GroupState.EMPTY:
        first, second = world.completed(world.enter(), world.join(instance_id="i"))
        world.synced(first, second)
        if state is GroupState.PREPARING_REBALANCE:
            world.join(first, protocols=protocols("range", metadata=b"new"))
        elif state is GroupState.COMPLETING_REBALANCE:
            world.join(first)
            world.join(second, "i")
    world.join()
    assert world.state is state
    return world


@pytest.mark.parametrize("state", STATES)
def test_hold_empties_the_group_and_lasts_as_long_as_it_says(state: GroupState) -> None:
    world = world_in(state)
    assert world.group is not None
    members, generation = len(world.group.members), world.group.generation_id
    reply = world.hold(60_000).reply
    assert (reply.hold, reply.removed) == (Hold(world.now + 60_000, "ann", "reset"), members)
    assert (world.state, len(world.group.members), world.group.pending_join) == (GroupState.EMPTY, 0, {})
    assert world.group.generation_id == generation + bool(members)
    world.jump(59_999)
    assert world.join().error is Error.COORDINATOR_LOAD_IN_PROGRESS
    world.jump(1)
    assert world.join().error is Error.MEMBER_ID_REQUIRED, "it ends by time alone"
    assert world.group.hold is None


def test_hold_answers_who_waits() -> None:
    world = World()
    parked_join = world.enter()
    world.hold(1_000)
    assert (parked_join.error, parked_join.member_id) == (Error.UNKNOWN_MEMBER_ID, "")
    world.release()
    first, second = world.completed(world.enter(), world.enter())
    parked_sync = world.sync(second)
    world.hold(1_000)
    assert parked_sync.error is Error.UNKNOWN_MEMBER_ID
    assert world.heartbeat(first).error is Error.UNKNOWN_MEMBER_ID
    assert world.commit(first).error is Error.UNKNOWN_MEMBER_ID


def test_refusal_says_by_whom_why_until_when_and_when_to_ask_again() -> None:
    world = world_in(GroupState.STABLE)
    world.hold(4_000, "ann", "bug 17")
    reply = world.join().reply
    for part in ("'ann'", "bug 17", "until 2023-11-14T22:13:"):
        assert part in reply.detail
    assert reply.retry_after_ms == 4_000
    world.hold(3_600_000)
    assert world.join().reply.retry_after_ms == MOST_RETRY_AFTER_MS, "it may be released before its time"
    assert world.commit("", generation_id=-1).reply.detail.endswith("if the commit is still right")


def test_bad_joins_are_told_what_is_wrong_with_them_also_while_the_group_is_held() -> None:
    world = world_in(GroupState.STABLE)
    world.hold(60_000)
    assert world.join(session_timeout_ms=1).error is Error.INVALID_SESSION_TIMEOUT


def test_hold_of_a_held_group_replaces_the_hold() -> None:
    world = world_in(GroupState.STABLE)
    world.hold(60_000)
    world.jump(1_000)
    reply = world.hold(2_000, "bob", "").reply
    assert (reply.hold, reply.removed) == (Hold(world.now + 2_000, "bob", ""), 0)
    world.advance(2_000)
    assert world.group is not None
    assert world.group.hold is None


def test_hold_lets_operators_reset() -> None:
    world = world_in(GroupState.STABLE)
    assert world.send(ResetOffsets(GROUP)).error is Error.NON_EMPTY_GROUP
    world.hold(60_000)
    assert world.send(ResetOffsets(GROUP)).error is Error.NONE


def test_release_lets_members_in_and_is_no_error_without_a_hold() -> None:
    world = world_in(GroupState.STABLE)
    assert world.release().error is Error.NONE
    assert world.last is not None
    assert world.last.records == ()
    world.hold(60_000)
    world.release()
    assert world.join().error is Error.MEMBER_ID_REQUIRED


@pytest.mark.parametrize("ask", [lambda w: w.hold(1), lambda w: w.release(), lambda w: w.kick("m")])
def test_what_does_not_exist(ask: object) -> None:
    world = World()
    assert callable(ask)
    call: Call = ask(world)
    assert (call.error, world.group) == (Error.GROUP_ID_NOT_FOUND, None)
    dead = world_in(GroupState.EMPTY)
    dead.kill()
    assert ask(dead).error is Error.GROUP_ID_NOT_FOUND


def test_held_group_can_be_deleted_and_its_hold_goes_with_it() -> None:
    world = world_in(GroupState.EMPTY)
    world.hold(60_000)
    assert world.delete().error is Error.NONE
    assert world.join().error is Error.MEMBER_ID_REQUIRED


def test_nobody_is_folded_into_a_held_group() -> None:
    held = ClassicGroup("g", hold=Hold(START, "ann", ""))
    with pytest.raises(IllegalTransition, match="held"):
        apply(held, MemberPending("m", START))
    with pytest.raises(IllegalTransition, match="anybody"):
        apply(ClassicGroup("g", pending_join=PendingIds({"m": START})), GroupHeld(Hold(START, "ann", ""), 0, START))


def test_hold_outlives_a_change_of_protocol() -> None:
    held = ClassicGroup("g", hold=Hold(START, "ann", ""))
    converted = apply(held, GroupConverted(ConsumerGroup("g"), START))
    assert isinstance(converted, ConsumerGroup)
    assert converted.hold == held.hold


def test_a_group_that_is_being_unloaded_is_not_held() -> None:
    """Its timers are dropped (classic.md 8.6), that of the hold too."""
    world = world_in(GroupState.EMPTY)
    world.hold(60_000)
    world.kill()
    assert world.group is not None
    assert world.group.hold is None
    assert world.join().error is Error.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize(("reason", "told"), [("", ""), ("reset", " (reset)")])
def test_a_refusal_tells_by_whom_until_when_and_why(reason: str, told: str) -> None:
    world = World()
    world.commit("", generation_id=-1)
    world.hold(60_000, "ann", reason)
    sentence = f"group 'orders' is held by 'ann' until 2023-11-14T22:14:20Z{told}: no member can join until then"
    assert world.join().reply.detail.startswith(sentence)


def test_a_hold_may_last_longer_than_dates_go() -> None:
    world = World()
    world.commit("", generation_id=-1)
    world.hold(10**15)
    assert "until 9999-12-31T23:59:59Z" in world.join().reply.detail


def test_events_of_a_hold() -> None:
    world = world_in(GroupState.STABLE)
    before = world.group
    world.send(HoldGroup(GROUP, 5_000, "ann", "bug 17"))
    assert world.last is not None
    told = events_of(before, world.last.records)
    assert told[-1].kind is EventKind.GROUP_HELD
    assert told[-1].detail == {"principal": "ann", "until": world.now + 5_000, "members": 2, "reason": "bug 17"}
    removed = [event.detail for event in told if event.kind is EventKind.MEMBER_REMOVED]
    assert [detail["cause"] for detail in removed] == ["member_kicked"] * 3, "two members and a pending id"
    assert {detail["principal"] for detail in removed} == {"ann"}
    before = world.group
    world.release("bob")
    (released,) = events_of(before, world.last.records)
    assert (released.kind, released.detail) == (EventKind.HOLD_RELEASED, {"principal": "bob"})
    world.hold(10)
    before = world.group
    world.advance(10)
    (ran_out,) = events_of(before, world.last.records)
    assert (ran_out.kind, ran_out.detail) == (EventKind.HOLD_RELEASED, {})


@pytest.mark.parametrize("state", STATES[1:])
def test_kick_is_what_a_leave_would_be(state: GroupState) -> None:
    kicked, left = world_in(state), world_in(state)
    assert kicked.group is not None
    member_id = list(kicked.group.members)[1]
    assert kicked.kick(member_id).error is Error.NONE
    left.leave(member_id)
    assert kicked.group == left.group
    assert kicked.heartbeat(member_id).error is Error.UNKNOWN_MEMBER_ID
    assert kicked.join(member_id, "i").error is Error.UNKNOWN_MEMBER_ID


def test_kick_of_a_stranger_changes_nothing() -> None:
    world = world_in(GroupState.STABLE)
    before = world.group
    assert world.kick("nobody").error is Error.UNKNOWN_MEMBER_ID
    assert world.group is before


def test_kick_of_a_pending_id_lets_the_others_go_on() -> None:
    world = World()
    leader, follower = world.stable(2)
    waiting = [world.join(leader), world.join(follower)]
    pending = world.join().member_id
    waiting = [world.join(leader, protocols=protocols("range", metadata=b"new")), world.join(follower)]
    assert all(call.waits for call in waiting), "a new generation waits for the id that was handed out"
    world.kick(pending)
    assert [call.error for call in waiting] == [Error.NONE, Error.NONE]


def test_kick_of_a_pending_id_of_a_stable_group_starts_no_rebalance() -> None:
    world = World()
    world.stable(2)
    pending = world.join().member_id
    assert world.kick(pending).error is Error.NONE
    assert world.group is not None
    assert world.group.state is GroupState.STABLE
    assert pending not in world.group.pending_join


def test_a_rebalance_of_a_hold_is_told_of_the_last_member_that_went() -> None:
    world = World()
    world.stable(3)
    assert world.group is not None
    last = list(world.group.members)[-1]
    world.hold(10)
    assert world.last is not None
    started = [record for record in world.last.records if isinstance(record, RebalanceStarted)]
    assert [record.member_id for record in started] == [last]


def test_event_of_a_kick() -> None:
    world = world_in(GroupState.STABLE)
    before = world.group
    assert before is not None
    member_id = list(before.members)[1]
    world.kick(member_id, "ann", "its host hangs")
    assert world.last is not None
    removed, started = events_of(before, world.last.records)
    assert (removed.kind, removed.member_id) == (EventKind.MEMBER_REMOVED, member_id)
    assert removed.detail == {
        "instance_id": "i",
        "cause": "member_kicked",
        "reason": "its host hangs",
        "principal": "ann",
    }
    assert started.detail == {"cause": "member_kicked", "reason": "its host hangs"}
