"""What leaves and commits of a classic group are told and tell (classic.md 7, 9; offsets.md 3.2)."""

from __future__ import annotations

import pytest

from groups.core.model.commands import CommitOffsets, LeaveGroup, LeavingMember
from groups.core.model.records import MemberRemoved, RebalanceStarted
from groups.core.model.types import Cause, GroupState
from kcoord.protocol.errors import Error
from tests.groups.core.world import GROUP, World


def records(world: World, kind: type) -> list[object]:
    assert world.last is not None
    return [record for record in world.last.records if isinstance(record, kind)]


@pytest.mark.parametrize("reason", [None, "deployed"])
def test_a_leave_keeps_its_reason(reason: str | None) -> None:
    world = World()
    _, second = world.stable(2)
    world.send(LeaveGroup(GROUP, (LeavingMember(second, None, reason),)))
    (removed,) = records(world, MemberRemoved)
    assert (removed.member_id, removed.detail) == (second, reason or "")  # type: ignore[attr-defined]


@pytest.mark.parametrize(("leaving", "told"), [(1, ""), (2, "2 members left"), (3, "3 members left")])
def test_a_rebalance_tells_how_many_members_left(leaving: int, told: str) -> None:
    world = World()
    _, *others = world.stable(4)
    world.leave(*others[:leaving])
    (started,) = records(world, RebalanceStarted)
    assert started.cause is Cause.MEMBER_LEFT  # type: ignore[attr-defined]
    assert (started.member_id, started.detail) == (others[0], told)  # type: ignore[attr-defined]


def commit(world: World, member_id: str, generation_id: int, instance_id: str | None = None, **fields: bool) -> Error:
    return world.send(CommitOffsets(GROUP, member_id, instance_id, generation_id, **fields)).error


@pytest.mark.parametrize(
    ("member_id", "generation_id", "instance_id", "error"),
    [
        ("", -1, None, Error.UNKNOWN_MEMBER_ID),
        ("", 0, None, Error.UNKNOWN_MEMBER_ID),
        ("", 1, None, Error.UNKNOWN_MEMBER_ID),
        ("", -1, "i", Error.UNKNOWN_MEMBER_ID),
        ("x", -1, None, Error.UNKNOWN_MEMBER_ID),
    ],
)
@pytest.mark.parametrize("transactional", [False, True])
def test_a_group_with_members_takes_commits_of_nobody_only_in_transactions(
    member_id: str, generation_id: int, instance_id: str | None, error: Error, transactional: bool
) -> None:
    world = World()
    world.stable(1)
    nobody = transactional and (member_id, generation_id, instance_id) == ("", -1, None)
    expected = Error.NONE if nobody else error
    assert commit(world, member_id, generation_id, instance_id, transactional=transactional) is expected


def test_a_commit_with_a_generation_creates_no_group() -> None:
    """Generation 0 is one, too."""
    world = World()
    assert commit(world, "", 0) is Error.GROUP_ID_NOT_FOUND
    assert commit(world, "", 0, transactional=True) is Error.GROUP_ID_NOT_FOUND
    assert world.group is None
    assert commit(world, "", -1) is Error.NONE
    assert world.state is GroupState.EMPTY
