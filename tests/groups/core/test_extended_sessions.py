"""The next deadline of a group whose sessions were extended is that of the group with these sessions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from groups.core.model.consumer_group import ConsumerGroup, ConsumerMember, ConsumerMembers, MemberState, Timers
from groups.core.model.group import Group, Session, wake_at, wake_at_extended, with_sessions
from groups.core.model.persistent import DeadlineMap, Timer
from groups.core.model.types import ClassicGroup, ClassicMember, Hold, JoinTimer, Members, PendingIds

IDS = [f"m{number}" for number in range(6)]


def instant(random: Random) -> int:
    return random.randint(1, 100)


def classic(random: Random) -> ClassicGroup:
    members = [
        ClassicMember(
            each, None, "c", "h", 1, 1, "consumer", (), session_deadline=random.choice((None, instant(random)))
        )
        for each in IDS
    ]
    return ClassicGroup(
        "g",
        members=Members(members),
        pending_join=PendingIds({"p": instant(random)} if random.random() < 0.3 else {}),
        join_timer=JoinTimer(instant(random)) if random.random() < 0.3 else None,
        sync_deadline=instant(random) if random.random() < 0.3 else None,
    )


def consumer(random: Random) -> ConsumerGroup:
    def some(share: float) -> DeadlineMap:
        return DeadlineMap({each: Timer(instant(random), 0) for each in IDS if random.random() < share})

    members = ConsumerMembers(
        ConsumerMember(each, client_id="c", client_host="h", rebalance_timeout_ms=1, state=MemberState.STABLE)
        for each in IDS
    )
    return replace(ConsumerGroup("g", members=members), timers=Timers(some(0.8), some(0.2), some(0.2), some(0.2)))


@pytest.mark.parametrize("make", [classic, consumer])
def test_extended_sessions_count_as_if_the_group_had_them(make: Callable[[Random], Group]) -> None:
    for seed in range(200):
        random = Random(seed)
        group = make(random)
        ends = {each: instant(random) for each in [*IDS, "gone"] if random.random() < 0.6}
        later = {each: Session(end, 0) for each, end in ends.items() if end > (session_of(group, each) or end)}
        assert wake_at_extended(group, ends) == wake_at(with_sessions(group, later)), seed


def session_of(group: Group, member_id: str) -> int | None:
    if isinstance(group, ConsumerGroup):
        timer = group.timers.session.get(member_id)
        return None if timer is None else timer.deadline
    assert group is not None
    member = group.members.get(member_id)
    return None if member is None else member.session_deadline


def test_group_that_is_held_wakes_when_that_ends() -> None:
    group = ClassicGroup("g", hold=Hold(70, "operator", ""))
    assert wake_at_extended(group, {"m0": 5}) == 70
    assert wake_at_extended(ClassicGroup("g"), {"m0": 5}) is None
