"""Worked examples: what each assignor makes of small groups, as documentation of Kafka's assignors tells it."""

from __future__ import annotations

import pytest

from kcoord.assignors import Assignment, MemberSubscription, get_assignor
from tests.kcoord.assignors.groups import BUILT_IN, Group, member

TWO_TOPICS = {"t0": 3, "t1": 3}


def both(*member_ids: str) -> tuple[MemberSubscription, ...]:
    return tuple(member(member_id, TWO_TOPICS) for member_id in member_ids)


@pytest.mark.parametrize(
    ("assignor", "expected"),
    [
        # Topic by topic: the first member gets the larger share of every topic.
        ("range", {"c0": {"t0": [0, 1], "t1": [0, 1]}, "c1": {"t0": [2], "t1": [2]}}),
        # All partitions in one row: three each.
        ("roundrobin", {"c0": {"t0": [0, 2], "t1": [1]}, "c1": {"t0": [1], "t1": [0, 2]}}),
        ("sticky", {"c0": {"t0": [0, 2], "t1": [1]}, "c1": {"t0": [1], "t1": [0, 2]}}),
        ("cooperative-sticky", {"c0": {"t0": [0, 2], "t1": [1]}, "c1": {"t0": [1], "t1": [0, 2]}}),
    ],
)
def test_two_topics_of_three_partitions_and_two_members(assignor: str, expected: Assignment) -> None:
    assert Group(TWO_TOPICS, both("c0", "c1")).assign(assignor) == expected


@pytest.mark.parametrize(
    ("assignor", "expected"),
    [
        ("roundrobin", {"c0": {"t0": [0]}, "c1": {"t1": [0]}, "c2": {"t1": [1], "t2": [0, 1, 2]}}),
        ("sticky", {"c0": {"t0": [0]}, "c1": {"t1": [0, 1]}, "c2": {"t2": [0, 1, 2]}}),
    ],
)
def test_round_robin_is_uneven_where_subscriptions_differ_and_sticky_is_not(
    assignor: str, expected: Assignment
) -> None:
    members = (member("c0", ["t0"]), member("c1", ["t0", "t1"]), member("c2", ["t0", "t1", "t2"]))
    assert Group({"t0": 1, "t1": 2, "t2": 3}, members).assign(assignor) == expected


def test_sticky_moves_only_what_the_member_that_left_had() -> None:
    topics = {"t0": 2, "t1": 2, "t2": 2, "t3": 2}
    three = Group(topics, tuple(member(member_id, topics) for member_id in ("c0", "c1", "c2")))
    before = three.assign("sticky")
    assert before == {"c0": {"t0": [0], "t1": [1], "t3": [0]}, "c1": {"t0": [1], "t2": [0], "t3": [1]},
                      "c2": {"t1": [0], "t2": [1]}}  # fmt: skip
    after = three.after(before, generation_id=1)
    two = Group(topics, tuple(m for m in after.members if m.member_id != "c1"))
    assert two.assign("sticky") == {
        "c0": {"t0": [0, 1], "t1": [1], "t3": [0]},
        "c2": {"t1": [0], "t2": [0, 1], "t3": [1]},
    }
    # Round robin deals anew and moves partitions between the members that stayed.
    assert two.assign("roundrobin") == {
        "c0": {"t0": [0], "t1": [0], "t2": [0], "t3": [0]},
        "c2": {"t0": [1], "t1": [1], "t2": [1], "t3": [1]},
    }


def test_cooperative_rebalance_of_a_member_that_joins_takes_two_rounds() -> None:
    first = Group({"t": 3}, (member("c0", ["t"], t=[0, 1, 2]), MemberSubscription("c1", None, ["t"])))
    round_one = first.assign("cooperative-sticky")
    assert round_one == {"c0": {"t": [0, 1]}, "c1": {}}
    assert first.after(round_one, 2).assign("cooperative-sticky") == {"c0": {"t": [0, 1]}, "c1": {"t": [2]}}
    assert first.assign("sticky") == {"c0": {"t": [0, 1]}, "c1": {"t": [2]}}


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_static_members_keep_their_place_when_they_restart_with_a_new_member_id(assignor: str) -> None:
    def group(first_id: str) -> Group:
        members = (MemberSubscription(first_id, "instance-1", ["t"]), MemberSubscription("c5", "instance-2", ["t"]))
        return Group({"t": 5}, (*members, MemberSubscription("a", None, ["t"])))

    before, restarted = group("c1").assign(assignor), group("c9").assign(assignor)
    assert before["c1"] == restarted["c9"]
    assert before["c5"] == restarted["c5"]
    assert before["a"] == restarted["a"]


def test_range_puts_static_members_first() -> None:
    members = (MemberSubscription("c1", None, ["t"]), MemberSubscription("c2", "instance", ["t"]))
    assert Group({"t": 3}, members).assign("range") == {"c1": {"t": [2]}, "c2": {"t": [0, 1]}}


@pytest.mark.parametrize("assignor", BUILT_IN)
def test_more_members_than_partitions_leaves_some_without(assignor: str) -> None:
    group = Group({"t": 2}, tuple(member(member_id, ["t"]) for member_id in ("c0", "c1", "c2")))
    assert group.assign(assignor) == {"c0": {"t": [0]}, "c1": {"t": [1]}, "c2": {}}


@pytest.mark.parametrize("assignor", BUILT_IN)
def test_topics_that_do_not_exist_or_that_nobody_wants_are_not_assigned(assignor: str) -> None:
    group = Group({"unwanted": 3, "empty": 0}, (member("c0", ["missing", "empty"]), member("c1", [])))
    assert group.assign(assignor) == {"c0": {}, "c1": {}}


@pytest.mark.parametrize("assignor", BUILT_IN)
def test_nobody_gets_nothing(assignor: str) -> None:
    assert get_assignor(assignor).assign({"t": 3}, []) == {}


def test_members_that_owned_more_keep_the_extra_partition() -> None:
    members = (member("c1", ["t"], t=[0, 1]), member("c2", ["t"], t=[2, 3, 4]))
    assert Group({"t": 5}, members).assign("sticky") == {"c1": {"t": [0, 1]}, "c2": {"t": [2, 3, 4]}}
