"""Racks (KIP-881): partitions go to members on a rack of a replica, as far as balance allows."""

from __future__ import annotations

import pytest
from hypothesis import given

from kcoord.assignors import Assignment, MemberSubscription
from tests.kcoord.assignors.groups import STICKY, Group, assigned, groups, totals

ONE_REPLICA = [["r1"], ["r2"], ["r3"]]
TWO_REPLICAS = [["r1", "r2"], ["r2", "r3"], ["r3", "r1"]]


def on_racks(*racks: str | None, topics: tuple[str, ...] = ("t1",)) -> tuple[MemberSubscription, ...]:
    """Members c1, c2, … on these racks."""
    return tuple(
        MemberSubscription(f"c{number}", None, topics, rack_id=rack) for number, rack in enumerate(racks, start=1)
    )


def foreign(group: Group, assignment: Assignment) -> int:
    """How many partitions are read from another rack than those of their replicas."""
    rack = {member.member_id: member.rack_id for member in group.members}
    return sum(
        bool(rack[member_id]) and rack[member_id] not in (group.racks or {})[topic][partition]
        for (topic, partition), member_id in assigned(assignment)
    )


@pytest.mark.parametrize("assignor", ["range", *STICKY])
def test_partitions_follow_the_racks_of_their_replicas(assignor: str) -> None:
    group = Group({"t1": 3}, on_racks("r3", "r1", "r2"), {"t1": ONE_REPLICA})
    assert group.assign(assignor) == {"c1": {"t1": [2]}, "c2": {"t1": [0]}, "c3": {"t1": [1]}}


def test_range_aligns_co_partitioned_topics_together() -> None:
    members = on_racks("r3", "r1", "r2", topics=("t1", "t2"))
    group = Group({"t1": 3, "t2": 3}, members, {"t1": TWO_REPLICAS, "t2": TWO_REPLICAS})
    assert group.assign("range") == {
        "c1": {"t1": [1], "t2": [1]},
        "c2": {"t1": [0], "t2": [0]},
        "c3": {"t1": [2], "t2": [2]},
    }


def test_range_keeps_topics_co_partitioned_where_their_racks_disagree() -> None:
    members = on_racks("r1", "r2", topics=("t1", "t2"))
    group = Group({"t1": 2, "t2": 2}, members, {"t1": [["r2"], ["r1"]], "t2": [["r1"], ["r2"]]})
    assert group.assign("range") == {"c1": {"t1": [0], "t2": [0]}, "c2": {"t1": [1], "t2": [1]}}


@pytest.mark.parametrize("assignor", ["range", *STICKY])
@pytest.mark.parametrize(
    ("member_racks", "replicas"),
    [
        pytest.param(("r3", "r1", "r2"), [["r1", "r2", "r3"]] * 3, id="every partition is everywhere"),
        pytest.param(("x", "r1", "r2"), [["r1", "r2", "r3"]] * 3, id="every partition is everywhere but with c1"),
        pytest.param(("x", "y", "z"), ONE_REPLICA, id="no rack in common"),
        pytest.param(("x", None, "z"), ONE_REPLICA, id="no rack in common, one unknown"),
        pytest.param((None, None, ""), ONE_REPLICA, id="members on no rack"),
        pytest.param(("r3", "r1", "r2"), [[], [], []], id="partitions on no rack"),
        pytest.param(("r3", "r1", "r2"), [], id="racks of partitions not told"),
    ],
)
def test_racks_that_make_no_difference_are_ignored(
    assignor: str, member_racks: tuple[str | None, ...], replicas: list[list[str]]
) -> None:
    group = Group({"t1": 3}, on_racks(*member_racks), {"t1": replicas})
    assert group.assign(assignor) == {"c1": {"t1": [0]}, "c2": {"t1": [1]}, "c3": {"t1": [2]}}


def test_balance_comes_before_racks() -> None:
    group = Group({"t1": 4}, on_racks("r1", "r2"), {"t1": [["r1"], ["r1"], ["r1"], ["r2"]]})
    assert group.assign("sticky") == {"c1": {"t1": [0, 1]}, "c2": {"t1": [2, 3]}}


def test_extra_partitions_by_rack_leave_enough_for_the_others() -> None:
    # r1 could take all six, but each member must have two before two may have three.
    replicas = [["r1"]] * 6 + [["r2"]]
    group = Group({"t1": 7}, on_racks("r1", "r1", "r2"), {"t1": replicas})
    assert sorted(totals(group.assign("sticky")).values()) == [2, 2, 3]


def test_differs_from_kafka_a_partition_on_a_foreign_rack_is_not_handed_round() -> None:
    # Nobody is on the rack of t-1. c1 would give it up to nobody's good.
    members = (
        MemberSubscription("c0", None, ["t"], {"t": [2]}, 1, rack_id="a"),
        MemberSubscription("c1", None, ["t"], {"t": [0, 1]}, 1, rack_id="a"),
    )
    group = Group({"t": 3}, members, {"t": [["a"], ["b"], ["a"]]})
    assert group.assign("sticky") == {"c0": {"t": [2]}, "c1": {"t": [0, 1]}}


@given(group=groups(with_racks=True))
def test_differs_from_kafka_racks_move_partitions_only_to_fewer_foreign_racks(group: Group) -> None:
    """With nothing changed, an assignment stays as it is or becomes more even or more local."""
    before = group.assign("sticky")
    again = group.after(before, 1)
    after = again.assign("sticky")

    def cost(assignment: Assignment) -> tuple[int, int]:
        return sum(size**2 for size in totals(assignment).values()), foreign(group, assignment)

    assert after == before or cost(after) < cost(before)
