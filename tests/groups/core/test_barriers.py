"""Where a decision may involve all members of a classic group: it decides what leaves the event loop."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groups.core.classic.rebalance import members_at_once
from groups.core.model.commands import Command, Heartbeat, SyncGroup, Tick
from groups.core.model.types import ClassicGroup, ClassicMember, GroupState, JoinTimer, Members, PendingIds
from tests.support.members import join

NOW = 1_000


def member(number: int, joins: bool) -> ClassicMember:
    plain = ClassicMember(f"m{number}", None, "c", "h", 10_000, 10_000, "consumer", (), session_deadline=NOW + 5_000)
    return replace(plain, join_parked_until=NOW + 9_000) if joins else plain


def preparing(joined: int, missing: int, pending: int = 0) -> ClassicGroup:
    members = [member(number, number < joined) for number in range(joined + missing)]
    ids = PendingIds({f"p{number}": NOW + 5_000 for number in range(pending)})
    return ClassicGroup("g", GroupState.PREPARING_REBALANCE, members=Members(members), pending_join=ids)


def running(state: GroupState) -> ClassicGroup:
    return ClassicGroup("g", state, leader_id="m0", members=Members(member(number, False) for number in range(5)))


def sync(member_id: str) -> SyncGroup:
    return SyncGroup("g", member_id, None, 1, None, None, {}, 0)


BEAT = Heartbeat("g", "m0", None, 1)
CASES: dict[str, tuple[ClassicGroup, list[Command], int]] = {
    "the last join": (preparing(4, 1), [join()], 5),
    "two of three joins": (preparing(4, 3), [join(), join()], 0),
    "three of three joins": (preparing(4, 3), [join(), join(), join()], 7),
    "an id that is not used yet": (preparing(4, 0, pending=2), [join()], 0),
    "nobody is missing": (preparing(4, 0), [BEAT], 4),
    "the sync of the leader": (running(GroupState.COMPLETING_REBALANCE), [BEAT, sync("m0")], 5),
    "the sync of another": (running(GroupState.COMPLETING_REBALANCE), [sync("m1")], 0),
    "a stable group": (running(GroupState.STABLE), [BEAT, sync("m0"), join()], 0),
    "a timer that is due": (replace(running(GroupState.STABLE), join_timer=JoinTimer(NOW)), [Tick("g")], 5),
    "a timer that is not": (replace(running(GroupState.STABLE), join_timer=JoinTimer(NOW + 1)), [Tick("g")], 0),
}


@pytest.mark.parametrize(("group", "commands", "members"), CASES.values(), ids=CASES)
def test_how_many_members_a_decision_may_involve(group: ClassicGroup, commands: list[Command], members: int) -> None:
    assert members_at_once(group, commands, NOW) == members
