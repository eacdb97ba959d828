"""Heartbeats that wait: http-api.md "Waiting"."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groups.core.machine import answer_for
from groups.core.model.commands import AbandonWait, ParkKind
from groups.core.model.turn import WakeMembers
from groups.core.model.types import GroupConfig
from kcoord.protocol.errors import Error
from tests.groups.core.consumer.world import GROUP, Call, World

WAIT = 20_000
SESSION = 45_000


def world(**fields: int) -> World:
    made = World(config=GroupConfig(**fields))
    made.set_topics(foo=6)
    return made


def waiting() -> tuple[World, Call]:
    """m1 has everything, and waits."""
    made = world()
    made.stable("m1")
    call = made.heartbeat("m1", 1, max_wait_ms=WAIT)
    assert call.parked is not None
    return made, call


def test_a_join_is_answered_at_once() -> None:
    assert world().join("m1", "foo", max_wait_ms=WAIT).assignment == {"foo": [0, 1, 2, 3, 4, 5]}


def test_a_heartbeat_with_news_is_answered_at_once() -> None:
    made = world()
    made.stable("m1")
    made.set_topics(foo=7)
    assert made.heartbeat("m1", 1, max_wait_ms=WAIT).assignment == {"foo": [0, 1, 2, 3, 4, 5, 6]}


def test_refusals_are_answered_at_once() -> None:
    made, _ = waiting()
    assert made.heartbeat("m1", 9, max_wait_ms=WAIT).error is Error.FENCED_MEMBER_EPOCH


def test_the_session_lasts_beyond_the_wait() -> None:
    made, call = waiting()
    assert call.parked is not None
    assert call.parked.parked_until == made.now + WAIT
    made.advance(WAIT + SESSION - 1)
    assert set(made.consumer.members) == {"m1"}
    made.advance(1)
    assert not made.consumer.members


def test_a_new_member_ends_the_wait_of_the_others() -> None:
    made, call = waiting()
    made.join("m2", "foo")
    assert made.last is not None
    assert call.assignment == {"foo": [0, 1, 2]}
    assert call.reruns == 1
    second = made.heartbeat("m2", 2, max_wait_ms=WAIT)
    assert second.parked is not None, "what it waits for is not free yet"
    made.heartbeat("m1", 1, {"foo": [0, 1, 2]})
    assert second.assignment == {"foo": [3, 4, 5]}


def test_a_member_that_gives_up_may_wait_for_nothing() -> None:
    made, call = waiting()
    made.join("m2", "foo")
    assert call.assignment == {"foo": [0, 1, 2]}
    held = made.heartbeat("m1", 1, max_wait_ms=WAIT)
    assert held.parked is not None, "it has been told what to give up"
    made.advance(5_000)
    assert held.error is Error.UNKNOWN_MEMBER_ID, "the rebalance timeout runs nevertheless"


def test_a_leave_ends_the_wait() -> None:
    made = world()
    made.stable("m1", "m2")
    call = made.heartbeat("m1", 2, max_wait_ms=WAIT)
    made.heartbeat("m2", -1)
    assert call.assignment == {"foo": [0, 1, 2, 3, 4, 5]}


def test_a_background_target_ends_the_wait() -> None:
    made = world(consumer_assignment_inline_limit=11)
    made.join("m1", "foo")
    made.join("m2", "foo")
    call = made.heartbeat("m1", 1, max_wait_ms=WAIT)
    assert call.parked is not None, "somebody is computing"
    made.compute_target()
    assert call.assignment == {"foo": [0, 1, 2]}


def test_a_heartbeat_waits_for_a_target_that_may_not_be_computed_yet() -> None:
    made = world(consumer_assignment_interval_ms=10_000)
    made.join("m1", "foo")
    made.advance(1_000)
    made.join("m2", "foo")
    assert made.epochs == (2, 1)
    call = made.heartbeat("m1", 1, max_wait_ms=WAIT)
    assert call.parked is not None, "an answer at once would be followed by the next heartbeat at once"
    assert call.parked.again_in_ms == 9_000
    made.join("m3", "foo")
    assert (call.parked.again_in_ms, call.reruns) == (9_000, 0)
    made.jump(9_000)
    assert call in made.waiting
    made.waiting.remove(call)
    again = replace(call.command, max_wait_ms=WAIT - 9_000, resumes=call.parked)
    assert made.send(again).assignment == {"foo": [0, 1]}
    assert made.epochs == (3, 3)


def test_who_computes_a_deferred_target_ends_the_wait_of_the_others() -> None:
    made = world(consumer_assignment_interval_ms=10_000)
    made.join("m1", "foo")
    made.join("m2", "foo")
    call = made.heartbeat("m1", 1, max_wait_ms=WAIT)
    made.jump(10_000)
    made.heartbeat("m2", 1)
    assert call.assignment == {"foo": [0, 1, 2]}


def test_in_a_stable_group_a_heartbeat_waits_for_no_target() -> None:
    made = world(consumer_assignment_interval_ms=10_000)
    made.stable("m1")
    call = made.heartbeat("m1", 1, max_wait_ms=1)
    assert call.parked is not None
    assert call.parked.again_in_ms is None


def test_the_acknowledgement_of_a_revocation_is_answered_at_once() -> None:
    """consumer.md 2.6: it returns the new epoch with a null assignment."""
    made = world()
    made.join("m1", "foo")
    made.join("m2", "foo")
    made.heartbeat("m1", 1)
    done = made.heartbeat("m1", 1, {"foo": [0, 1, 2]}, max_wait_ms=WAIT)
    assert (done.epoch, done.assignment) == (2, None)


def test_a_wait_ends_with_the_first_partition_that_is_free() -> None:
    """m1c waits for one partition of m1 and one of m2."""
    made = world()
    made.stable("m1", "m2")
    epoch = made.join("m1c", "foo").epoch
    call = made.heartbeat("m1c", epoch, max_wait_ms=WAIT)
    assert call.parked is not None
    made.heartbeat("m1", 2)
    made.heartbeat("m1", 2, made.assigned("m1"))
    assert call.assignment == {"foo": [2]}
    assert made.heartbeat("m1c", epoch, max_wait_ms=WAIT).parked is not None, "m2 has not given up anything yet"


def test_a_departure_ends_the_wait_of_who_was_to_give_something_up() -> None:
    """The old process of the member hears that another one has left in its name."""
    made = world()
    made.join("m1", "foo", instance_id="i1")
    made.join("m2", "foo")
    made.heartbeat("m1", 1)
    call = made.heartbeat("m1", 1, max_wait_ms=WAIT)
    assert call.parked is not None
    made.heartbeat("m1", -2, instance_id="i1")
    assert call.error is Error.FENCED_MEMBER_EPOCH


def test_a_heartbeat_whose_wait_would_be_over_at_once_is_answered() -> None:
    """A partition of the target is free, but its topic is no longer subscribed to."""
    made = world(consumer_assignment_interval_ms=10_000)
    made.set_topics(bar=2)
    made.join("m1", "foo")
    made.jump(10_000)
    made.join("m2", "foo", "bar")
    assert made.assigned("m2") == {"bar": [0, 1]}
    made.heartbeat("m2", 2, {}, subscribed_topic_names=frozenset({"foo"}))
    assert made.epochs == (3, 2)
    assert made.assigned("m2") == {}
    assert made.heartbeat("m2", 2, max_wait_ms=WAIT).assignment is None


def test_a_heartbeat_that_is_resumed_after_the_group_is_gone() -> None:
    made, call = waiting()
    assert call.parked is not None
    made.group = None
    assert made.send(replace(call.command, resumes=call.parked)).error is Error.GROUP_ID_NOT_FOUND


def test_a_later_heartbeat_displaces_an_earlier_one() -> None:
    """The earlier one must not say again what is out of date by now."""
    made, early = waiting()
    late = made.heartbeat("m1", 1, max_wait_ms=WAIT, subscribed_topic_names=frozenset())
    assert early.reply is not None
    assert (early.epoch, early.assignment) == (1, None)
    assert late.assignment == {}
    assert made.member("m1").subscribed_topic_names == frozenset()


def test_two_of_the_same_millisecond_are_told_apart() -> None:
    made, early = waiting()
    late = made.heartbeat("m1", 1, max_wait_ms=WAIT)
    assert early.assignment is None
    assert late.parked is not None
    assert late.parked.parked_until == made.now + WAIT + 1
    session = made.consumer.timers.session["m1"]
    assert session.deadline == late.parked.session_deadline == late.parked.parked_until + SESSION
    made.join("m2", "foo")
    assert late.assignment == {"foo": [0, 1, 2]}


def test_only_news_wake() -> None:
    made, call = waiting()
    for act in (lambda: made.join("x"), lambda: made.commit("m1", 1)):
        act()
        assert made.last is not None
        assert WakeMembers(GROUP) not in made.last.effects
    assert call.parked is not None
    made.heartbeat("x", -1)
    assert made.last is not None
    assert WakeMembers(GROUP) in made.last.effects


def test_a_departure_is_news() -> None:
    """It changes no epoch, but a request that waits on behalf of the member has to be answered."""
    made = world()
    made.join("m1", "foo", instance_id="i1")
    epochs = made.epochs
    made.heartbeat("m1", -2, instance_id="i1")
    assert made.epochs == epochs
    assert made.last is not None
    assert WakeMembers(GROUP) in made.last.effects


def test_when_the_group_is_gone_the_wait_is_over() -> None:
    _, call = waiting()
    assert call.parked is not None
    assert answer_for(None, call.parked) is not None


def test_an_abandoned_wait_ends_its_suspension() -> None:
    made, call = waiting()
    made.now += 1_000
    made.abandon(call)
    made.advance(SESSION - 1)
    assert set(made.consumer.members) == {"m1"}
    made.advance(1)
    assert not made.consumer.members


@pytest.mark.parametrize(
    ("member_id", "kind", "shift"),
    [("x", ParkKind.HEARTBEAT, 0), ("m1", ParkKind.JOIN, 0), ("m1", ParkKind.HEARTBEAT, 1)],
)
def test_abandoning_something_else_does_nothing(member_id: str, kind: ParkKind, shift: int) -> None:
    made, call = waiting()
    assert call.parked is not None
    before = made.group
    made.send(AbandonWait(GROUP, member_id, kind, call.parked.parked_until + shift))
    made.send(AbandonWait(GROUP, member_id, kind, None))
    assert made.group is before


def test_a_wait_that_is_over_cannot_be_abandoned() -> None:
    """It would prolong the session."""
    made, call = waiting()
    assert call.parked is not None
    made.advance(WAIT)
    before = made.group
    made.send(AbandonWait(GROUP, "m1", ParkKind.HEARTBEAT, call.parked.parked_until))
    assert made.group is before


def test_what_is_given_up_is_news_and_what_is_got_is_not() -> None:
    made = world()
    made.join("m1", "foo")
    made.join("m2", "foo")
    made.heartbeat("m1", 1)
    made.heartbeat("m1", 1, {"foo": [0, 1, 2]})
    assert made.last is not None
    assert WakeMembers(GROUP) in made.last.effects
    assert made.heartbeat("m2", 2).assignment == {"foo": [3, 4, 5]}
    assert WakeMembers(GROUP) not in made.last.effects
