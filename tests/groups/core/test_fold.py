"""Records that do not fit the group are bugs of the code that emitted them (classic.md 1)."""

from __future__ import annotations

import pytest

from groups.core.model.fold import IllegalTransition, apply
from groups.core.model.records import (
    GroupCreated,
    GroupDeleted,
    GroupHeld,
    MemberAdded,
    MemberPending,
    MemberRemoved,
    PendingForgotten,
    Record,
    SessionRenewed,
    SyncTimerCleared,
)
from groups.core.model.types import Cause, ClassicGroup, ClassicMember, GroupState, Hold, Members, PendingIds

HOLD = Hold(1_000, "ann", "")
MEMBER = ClassicMember("m", None, "c", "h", 1, 1, "consumer", ())
EMPTY = ClassicGroup("g")
HELD = ClassicGroup("g", hold=HOLD)

ILLEGAL: dict[str, tuple[ClassicGroup | None, Record, str]] = {
    "created twice": (EMPTY, GroupCreated("g", 0), "exists already"),
    "deleted before it is created": (None, GroupDeleted("g"), "does not exist"),
    "changed before it is created": (None, SyncTimerCleared(), "does not exist"),
    "an id in a held group": (HELD, MemberPending("m", 1), "is held"),
    "a member in a held group": (HELD, MemberAdded(MEMBER, "m", "consumer", False), "is held"),
    "held with a member": (ClassicGroup("g", members=Members([MEMBER])), GroupHeld(HOLD, 0, 0), "cannot be held"),
    "held with an id": (ClassicGroup("g", pending_join=PendingIds({"p": 1})), GroupHeld(HOLD, 0, 0), "cannot be held"),
    "held in a rebalance": (
        ClassicGroup("g", state=GroupState.PREPARING_REBALANCE),
        GroupHeld(HOLD, 0, 0),
        "cannot be held",
    ),
}


@pytest.mark.parametrize(("group", "record", "told"), ILLEGAL.values(), ids=ILLEGAL)
def test_illegal_records(group: ClassicGroup | None, record: Record, told: str) -> None:
    with pytest.raises(IllegalTransition, match=told):
        apply(group, record)


@pytest.mark.parametrize(
    "record",
    [
        PendingForgotten("x", Cause.MEMBER_LEFT, "", ""),
        MemberRemoved("x", None, None, Cause.MEMBER_LEFT, "", ""),
        SessionRenewed("x", 1, 0),
    ],
    ids=lambda record: type(record).__name__,
)
def test_records_of_strangers(record: Record) -> None:
    with pytest.raises(KeyError):
        apply(EMPTY, record)


def test_a_held_group_may_be_held_again() -> None:
    longer = Hold(2_000, "bob", "")
    assert apply(HELD, GroupHeld(longer, 0, 0)) == ClassicGroup("g", hold=longer)
