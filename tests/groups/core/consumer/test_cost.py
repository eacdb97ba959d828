"""A heartbeat that changes nothing costs the same in a small group and in a large one: counted, not timed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

from groups.core.machine import decide
from groups.core.model.commands import ConsumerHeartbeat
from groups.core.model.consumer_group import ConsumerGroup, ConsumerMember, ConsumerMembers, Timers
from groups.core.model.persistent import DeadlineMap, Timer
from groups.core.model.turn import Decision
from groups.core.model.types import Env, Topic, TopicView
from tests.groups.core.consumer.world import GROUP, START

MORE_FOR_A_THOUSAND_TIMES_THE_SIZE = 200
"""Calls. The paths in the maps are longer by two nodes, each with 32 branches to find the earliest deadline of."""


def group_of(size: int) -> tuple[ConsumerGroup, Env]:
    """A Stable group in which each member has one partition."""
    topic = Topic("f", "foo", size)
    members = [
        ConsumerMember(
            f"m{number}",
            subscribed_topic_names=frozenset({"foo"}),
            member_epoch=1,
            previous_member_epoch=1,
            assigned={"f": {number: 1}},
            target={"f": frozenset({number})},
        )
        for number in range(size)
    ]
    sessions = {member.member_id: Timer(START + 45_000, START) for member in members}
    group = ConsumerGroup(
        GROUP,
        group_epoch=1,
        assignment_epoch=1,
        metadata_version=1,
        members=ConsumerMembers(members),
        timers=Timers(session=DeadlineMap(sessions)),
    )
    assert group.state.value == "Stable"
    return group, Env(START + 1, str, topics=TopicView(1, {"foo": topic}, {"f": topic}))


def calls_of(act: Callable[[], object]) -> int:
    """How many functions are called, those of the interpreter included."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(None)
    return calls


def beat(size: int) -> tuple[ConsumerGroup, Decision, int]:
    group, env = group_of(size)
    command = ConsumerHeartbeat(GROUP, "m1", 1)
    calls = calls_of(lambda: decide(group, command, env))
    return group, decide(group, command, env), calls


def test_a_steady_heartbeat_touches_one_path() -> None:
    _, _, few = beat(3)
    group, decision, many = beat(3_000)
    assert isinstance(decision.group, ConsumerGroup)
    assert [type(record).__name__ for record in decision.records] == ["TimerArmed"]
    assert decision.group.members is group.members
    assert decision.group.timers.rebalance is group.timers.rebalance
    before, after = group.timers.session._root, decision.group.timers.session._root
    assert sum(one is not other for one, other in zip(before.children, after.children, strict=True)) == 1
    assert many - few <= MORE_FOR_A_THOUSAND_TIMES_THE_SIZE, (few, many)


def test_the_count_notices_a_look_at_everybody() -> None:
    group, _ = group_of(3_000)
    assert calls_of(lambda: [member.member_id for member in group.members.values()]) > 3_000
