"""What a heartbeat is answered before it changes anything: consumer.md 2.2 to 2.4 and 3 as tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from groups.core.model.commands import ConsumerHeartbeat
from groups.core.model.types import ClassicGroup, GroupConfig, GroupState
from kcoord.protocol.errors import Error
from tests.groups.core.consumer.world import GROUP, Call, World

NAMES = frozenset({"foo"})
JOIN = ConsumerHeartbeat(GROUP, "m1", 0, rebalance_timeout_ms=5_000, subscribed_topic_names=NAMES, topic_partitions={})
STAY = ConsumerHeartbeat(GROUP, "m1", 1)
LEAVE = ConsumerHeartbeat(GROUP, "m1", -1)


def world(**fields: int) -> World:
    made = World(config=GroupConfig(**fields))
    made.set_topics(foo=6, bar=2)
    return made


REQUESTS = {
    "member id empty": (replace(JOIN, member_id=""), "INVALID_REQUEST", "member_id"),
    "member id blank": (replace(STAY, member_id="  "), "INVALID_REQUEST", "member_id"),
    "member id empty, leaves": (replace(LEAVE, member_id=""), "INVALID_REQUEST", "member_id"),
    "group id blank": (replace(JOIN, group_id=" "), "INVALID_REQUEST", "group_id"),
    "instance id blank": (replace(JOIN, instance_id=" "), "INVALID_REQUEST", "instance_id"),
    "rack id blank": (replace(STAY, rack_id=""), "INVALID_REQUEST", "rack_id"),
    "joins without timeout": (replace(JOIN, rebalance_timeout_ms=-1), "INVALID_REQUEST", "rebalance_timeout_ms"),
    "joins without partitions": (replace(JOIN, topic_partitions=None), "INVALID_REQUEST", "topic_partitions"),
    "joins with partitions": (
        replace(JOIN, topic_partitions={"foo": frozenset({1})}),
        "INVALID_REQUEST",
        "topic_partitions",
    ),
    "joins without subscription": (
        replace(JOIN, subscribed_topic_names=None),
        "INVALID_REQUEST",
        "subscribed_topic_names",
    ),
    "departs without instance id": (replace(LEAVE, member_epoch=-2), "INVALID_REQUEST", "instance_id"),
    "epoch below -2": (replace(STAY, member_epoch=-3), "INVALID_REQUEST", "member_epoch"),
    "assignor nobody has": (replace(JOIN, server_assignor="x"), "UNSUPPORTED_ASSIGNOR", "server_assignor"),
    "assignor nobody has, leaves": (replace(LEAVE, server_assignor="x"), "UNSUPPORTED_ASSIGNOR", "server_assignor"),
    "field before assignor": (
        replace(JOIN, server_assignor="x", topic_partitions=None),
        "INVALID_REQUEST",
        "topic_partitions",
    ),
    "empty names": (replace(JOIN, subscribed_topic_names=frozenset()), "NONE", ""),
    "empty regex": (replace(JOIN, subscribed_topic_names=None, subscribed_topic_regex=""), "NONE", ""),
    "stays in a group that is not": (STAY, "GROUP_ID_NOT_FOUND", GROUP),
    "leaves a group that is not": (LEAVE, "GROUP_ID_NOT_FOUND", GROUP),
    "departs from a group that is not": (replace(LEAVE, member_epoch=-2, instance_id="i"), "GROUP_ID_NOT_FOUND", GROUP),
}


@pytest.mark.parametrize(("command", "error", "named"), REQUESTS.values(), ids=REQUESTS)
def test_requests(command: ConsumerHeartbeat, error: str, named: str) -> None:
    made = world()
    call = made.send(command)
    assert call.error.name == error
    if error != "NONE":
        assert named in call.reply.detail, "the text names the field"
        assert made.group is None, "a group that was refused is not kept"


Ask = Callable[[World], Call]
MEMBERS: dict[str, tuple[Ask, str]] = {
    "dynamic stays": (lambda w: w.heartbeat("m1", 2), "NONE"),
    "dynamic joins again": (lambda w: w.join("m1", "foo"), "NONE"),
    "dynamic, newer epoch": (lambda w: w.heartbeat("m1", 3), "FENCED_MEMBER_EPOCH"),
    "dynamic, previous epoch, silent": (lambda w: w.heartbeat("m1", 1), "FENCED_MEMBER_EPOCH"),
    "dynamic, previous epoch, a subset": (lambda w: w.heartbeat("m1", 1, {"foo": [3]}), "NONE"),
    "dynamic, previous epoch, nothing": (lambda w: w.heartbeat("m1", 1, {}), "NONE"),
    "dynamic, previous epoch, more": (lambda w: w.heartbeat("m1", 1, {"foo": [0]}), "FENCED_MEMBER_EPOCH"),
    "stranger stays": (lambda w: w.heartbeat("x", 2), "UNKNOWN_MEMBER_ID"),
    "stranger leaves": (lambda w: w.heartbeat("x", -1), "UNKNOWN_MEMBER_ID"),
    "dynamic with an instance id": (lambda w: w.heartbeat("m1", 2, instance_id="new"), "UNKNOWN_MEMBER_ID"),
    "dynamic joins with an instance id": (lambda w: w.join("m1", "foo", instance_id="new"), "NONE"),
    "static without its instance id": (lambda w: w.heartbeat("s1", 2), "NONE"),
    "static stays": (lambda w: w.heartbeat("s1", 2, instance_id="i1"), "NONE"),
    "static joins again": (lambda w: w.join("s1", "foo", instance_id="i1"), "UNRELEASED_INSTANCE_ID"),
    "static of another stays": (lambda w: w.heartbeat("m1", 2, instance_id="i1"), "FENCED_INSTANCE_ID"),
    "static of another joins": (lambda w: w.join("x", "foo", instance_id="i1"), "UNRELEASED_INSTANCE_ID"),
    "static of another leaves": (lambda w: w.heartbeat("m1", -1, instance_id="i1"), "FENCED_INSTANCE_ID"),
    "static of nobody leaves": (lambda w: w.heartbeat("s1", -2, instance_id="new"), "UNKNOWN_MEMBER_ID"),
    "departed stays": (lambda w: w.heartbeat("d1", 2, instance_id="i2"), "FENCED_MEMBER_EPOCH"),
    "departed comes back": (lambda w: w.join("d1", "foo", instance_id="i2"), "NONE"),
    "departed comes back with another id": (lambda w: w.join("d2", "foo", instance_id="i2"), "NONE"),
    "departed comes back as somebody who is there": (
        lambda w: w.join("m1", "foo", instance_id="i2"),
        "UNRELEASED_INSTANCE_ID",
    ),
}


@pytest.mark.parametrize(("ask", "error"), MEMBERS.values(), ids=MEMBERS)
def test_members(ask: Ask, error: str) -> None:
    """m1 is dynamic, s1 static, d1 static and departed; all are at epoch 2, m1 was at 1 before."""
    made = world()
    made.join("m1", "foo")
    made.now += 1
    made.join("s1", "foo", instance_id="i1")
    assert made.heartbeat("m1", 1, {"foo": [3, 4, 5]}).epoch == 2
    assert made.heartbeat("s1", 2).assignment == {"foo": [0, 1, 2]}
    made.join("d1", instance_id="i2")
    made.heartbeat("d1", -2, instance_id="i2")
    assert [made.member(member_id).member_epoch for member_id in ("m1", "s1", "d1")] == [2, 2, -2]
    assert ask(made).error.name == error


def test_a_full_group_looks_at_the_member_id_alone() -> None:
    made = world(consumer_max_size=1)
    made.join("m1", "foo", instance_id="i1")
    assert made.heartbeat("x", 5).error is Error.GROUP_MAX_SIZE_REACHED
    made.heartbeat("m1", -2, instance_id="i1")
    assert made.join("m2", "foo", instance_id="i1").error is Error.GROUP_MAX_SIZE_REACHED
    assert made.join("m1", "foo", instance_id="i1").error is Error.NONE


def test_a_static_member_returns_to_what_it_had() -> None:
    made = world()
    made.join("m1", "foo", instance_id="i1")
    made.heartbeat("m1", -2, instance_id="i1")
    made.now += 1
    back = made.join("m2", "foo", instance_id="i1")
    assert back.assignment == {"foo": [0, 1, 2, 3, 4, 5]}
    assert back.epoch == 1
    assert made.epochs == (1, 1), "the same subscription needs no new target"
    assert set(made.consumer.members) == {"m2"}
    assert set(made.consumer.timers.session) == {"m2"}


def test_a_departed_member_ends_with_the_session_of_its_last_heartbeat() -> None:
    made = world()
    made.join("m1", "foo", instance_id="i1")
    made.now += 30_000
    made.heartbeat("m1", -2, instance_id="i1")
    made.advance(14_999)
    assert made.consumer.state.value == "Reconciling", "a departed member counts"
    made.advance(1)
    assert made.consumer.state.value == "Empty"
    assert made.epochs == (2, 2)


def test_an_error_brings_back_all_that_was_decided() -> None:
    """The invalid expression is noticed after the static member was replaced."""
    made = world()
    made.join("m1", "foo", instance_id="i1")
    made.heartbeat("m1", -2, instance_id="i1")
    before = made.group
    refused = made.join("m2", "foo", instance_id="i1", subscribed_topic_regex="(")
    assert refused.error is Error.INVALID_REGULAR_EXPRESSION
    assert made.group is before


def test_a_group_that_is_unloaded_is_looked_for_elsewhere() -> None:
    made = world()
    made.group = ClassicGroup(GROUP, state=GroupState.DEAD)
    assert made.send(JOIN).error is Error.COORDINATOR_NOT_AVAILABLE
