"""The timeline that operators read."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from groups.core.model.commands import Command
from groups.core.model.events import LONGEST_TEXT, EventKind, GroupEvent, events_of
from groups.core.model.records import MemberRemoved, Record
from groups.core.model.types import Cause, ClassicGroup, GroupConfig
from kcoord.protocol.errors import Error
from tests.groups.core.world import Call, World


@dataclass
class Watched(World):
    """A world that keeps the events of every decision."""

    events: list[GroupEvent] = field(default_factory=list)

    def send(self, command: Command) -> Call:
        before = self.group
        call = super().send(command)
        assert self.last is not None
        self.events.extend(events_of(before, self.last.records))
        return call

    def told(self, kind: EventKind) -> list[dict[str, object]]:
        return [
            {"member_id": event.member_id, "generation_id": event.generation_id, **event.detail}
            for event in self.events
            if event.kind is kind
        ]

    def forget(self) -> None:
        self.events.clear()


def test_life_of_a_group() -> None:
    world = Watched()
    (member_id,) = world.stable(1)
    world.advance(1_000)
    world.heartbeat(member_id)
    world.leave(member_id)
    world.delete()
    assert [event.kind.value for event in world.events] == [
        "group_created",
        "member_joined",
        "rebalance_started",
        "rebalance_completed",
        "assignment_stored",
        "member_left",
        "rebalance_started",
        "group_emptied",
        "group_deleted",
    ]
    assert [event.generation_id for event in world.events] == [0, 0, 0, 1, 1, 1, 1, 2, 2]


def test_rebalance_tells_who_why_and_how_long() -> None:
    world = Watched()
    first, second = world.stable(2)
    world.forget()
    world.join(second, names="range more", reason="new topics")
    world.advance(2_000)
    world.join(first)
    world.advance(500)
    world.sync(first, {first: b"1", second: b"2", "stranger": b"3"})
    assert world.told(EventKind.REBALANCE_STARTED) == [
        {"member_id": second, "generation_id": 1, "cause": "protocols_changed", "reason": "new topics"}
    ]
    assert world.told(EventKind.REBALANCE_COMPLETED) == [
        {
            "member_id": None,
            "generation_id": 2,
            "leader": first,
            "protocol_name": "range",
            "members": 2,
            "duration_ms": 2_000,
        }
    ]
    assert world.told(EventKind.ASSIGNMENT_STORED) == [
        {"member_id": None, "generation_id": 2, "members": 2, "duration_ms": 500}
    ]


@pytest.mark.parametrize(
    ("cause", "kind", "removal"),
    [
        ("session_expired", EventKind.MEMBER_EXPIRED, "session_expired"),
        ("sync_timed_out", EventKind.MEMBER_REMOVED, "sync_timed_out"),
        ("member_left", EventKind.MEMBER_LEFT, "member_left"),
    ],
)
def test_why_a_member_went(cause: str, kind: EventKind, removal: str) -> None:
    world = Watched()
    first, second = world.completed(world.enter(), world.enter(session_timeout_ms=60_000))
    world.sync(first)
    if cause != "sync_timed_out":
        world.sync(second)
    world.forget()
    match cause:
        case "session_expired":
            world.advance(10_000)
        case "sync_timed_out":
            for _ in range(6):
                world.heartbeat(first)
                world.advance(5_000)
        case "member_left":
            world.leave(first)
    gone = second if cause == "sync_timed_out" else first
    session = {"session_timeout_ms": 10_000} if cause == "session_expired" else {}
    assert world.told(kind) == [{"member_id": gone, "generation_id": 1, "cause": removal, **session}]
    assert world.told(EventKind.REBALANCE_STARTED) == [{"member_id": gone, "generation_id": 1, "cause": cause}]


def test_a_new_member_whose_join_takes_too_long_had_no_session() -> None:
    """Its limit is a constant (classic.md 10.1), not the session timeout that it asked for."""
    world = Watched(config=GroupConfig(initial_rebalance_delay_ms=400_000))
    call = world.enter(rebalance_timeout_ms=500_000, max_wait_ms=500_000)
    assert call.parked is not None
    world.advance(300_000)
    assert world.told(EventKind.MEMBER_EXPIRED) == [
        {"member_id": call.parked.member_id, "generation_id": 0, "cause": "session_expired"}
    ]


def test_who_did_not_rejoin_and_who_found_the_group_full() -> None:
    world = Watched()
    first, second = world.completed(world.enter(rebalance_timeout_ms=4_000), world.enter(rebalance_timeout_ms=4_000))
    world.synced(first, second)
    world.forget()
    world.join(first, rebalance_timeout_ms=4_000)
    world.advance(4_000)
    assert [told["cause"] for told in world.told(EventKind.MEMBER_REMOVED)] == ["join_timed_out"]
    world = Watched(config=GroupConfig(max_size=2))
    first, second = world.stable(2)
    world.config = GroupConfig(max_size=1)
    world.join(first)
    world.join(second)
    assert [told["cause"] for told in world.told(EventKind.MEMBER_REMOVED)] == ["group_full"]


def test_restarted_static_member() -> None:
    world = Watched()
    (old,) = world.completed(world.join(instance_id="i"))
    world.synced(old)
    world.forget()
    new = world.join(instance_id="i").member_id
    assert world.told(EventKind.MEMBER_REPLACED) == [
        {"member_id": new, "generation_id": 1, "instance_id": "i", "old_member_id": old}
    ]
    assert len(world.events) == 1


def test_new_member_is_introduced() -> None:
    world = Watched()
    call = world.join(instance_id="i", client_id="billing", client_host="10.1.2.3")
    assert call.parked is not None
    assert world.told(EventKind.MEMBER_JOINED) == [
        {
            "member_id": call.parked.member_id,
            "generation_id": 0,
            "instance_id": "i",
            "client_id": "billing",
            "client_host": "10.1.2.3",
        }
    ]


def test_renewals_waits_and_timers_are_no_events() -> None:
    world = Watched()
    leader, follower = world.completed(world.enter(), world.enter())
    world.forget()
    waiting = world.sync(follower)
    world.heartbeat(follower)
    world.commit(leader)
    world.abandon(waiting)
    world.join()
    assert world.events == []


def test_a_group_that_is_created_and_complete_at_once_has_its_member() -> None:
    world = Watched(config=GroupConfig(initial_rebalance_delay_ms=0))
    world.join(instance_id="i")
    (completed,) = world.told(EventKind.REBALANCE_COMPLETED)
    assert (completed["generation_id"], completed["members"], completed["duration_ms"]) == (1, 1, 0)


def test_a_rebalance_that_is_complete_at_once_took_no_time() -> None:
    world = Watched()
    (leader,) = world.stable(1)
    world.advance(5_000)
    world.forget()
    world.join(leader)
    (completed,) = world.told(EventKind.REBALANCE_COMPLETED)
    assert (completed["members"], completed["duration_ms"]) == (1, 0)


def test_who_did_not_rejoin_is_no_member_of_the_next_generation() -> None:
    world = Watched()
    leader, *_ = world.completed(*[world.enter(rebalance_timeout_ms=4_000) for _ in range(3)])
    world.sync(leader)
    world.join(leader, rebalance_timeout_ms=4_000)
    world.forget()
    world.advance(4_000)
    (completed,) = world.told(EventKind.REBALANCE_COMPLETED)
    assert (completed["members"], completed["duration_ms"]) == (1, 4_000)


def test_an_assignment_takes_the_time_since_its_generation_began() -> None:
    """Also if the end of the rebalance is noticed only then."""
    world = Watched()
    call = world.enter(max_wait_ms=60_000)
    assert call.parked is not None
    world.jump(3_000)
    world.forget()
    assert world.sync(call.parked.member_id, generation_id=1).error is Error.NONE
    (stored,) = world.told(EventKind.ASSIGNMENT_STORED)
    assert stored["duration_ms"] == 0


@pytest.mark.parametrize(("principal", "reason"), [("ann", "hangs"), ("ann", ""), ("", "")])
def test_what_nobody_said_is_left_out(principal: str, reason: str) -> None:
    said = {name: text for name, text in (("principal", principal), ("reason", reason)) if text}
    world = Watched()
    member_id, pending = *world.stable(1), world.join().member_id
    world.forget()
    for kicked in (pending, member_id):
        world.kick(kicked, principal, reason)
    assert world.told(EventKind.MEMBER_REMOVED) == [
        {"member_id": kicked, "generation_id": 1, "cause": "member_kicked", **said} for kicked in (pending, member_id)
    ]
    world.hold(5_000, principal, reason)
    (held,) = world.told(EventKind.GROUP_HELD)
    assert held == {"member_id": None, "generation_id": 2, "members": 0, "until": world.now + 5_000, **said}
    world.release(principal)
    (released,) = world.told(EventKind.HOLD_RELEASED)
    assert released.get("principal") == (principal or None)


@pytest.mark.parametrize("more", [0, 1])
def test_text_of_any_length_is_cut(more: int) -> None:
    removed = MemberRemoved("m", None, None, Cause.MEMBER_LEFT, "x" * (LONGEST_TEXT + more), "")
    (event,) = events_of(None, [removed])
    assert event.detail["reason"] == ("x" * (LONGEST_TEXT - 1) + "…" if more else "x" * LONGEST_TEXT)


def test_events_need_no_records_of_before() -> None:
    none: tuple[Record, ...] = ()
    assert events_of(None, none) == ()
    assert events_of(ClassicGroup("g"), none) == ()
    world = Watched()
    world.stable(1)
    world.forget()
    world.kill()
    assert [event.kind for event in world.events] == [EventKind.GROUP_UNLOADED]
