"""An assignment of a custom assignor is checked before anybody relies on it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given

from kcoord.assignors import (
    Assignment,
    FaultyAssignmentError,
    MemberSubscription,
    PartitionRacks,
    PartitionsPerTopic,
    RebalanceProtocol,
    checked_assign,
    get_assignor,
)
from tests.kcoord.assignors.groups import BUILT_IN, Group, groups

MEMBERS = (MemberSubscription("a", None, ["t"]), MemberSubscription("b", None, ["t", "u"]))
TOPICS = {"t": 2, "u": 1}


class Fixed:
    """An assignor that returns what it is told to."""

    name = "fixed"
    protocols = (RebalanceProtocol.EAGER,)

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment

    def assign(
        self,
        partitions_per_topic: PartitionsPerTopic,
        subscriptions: Sequence[MemberSubscription],
        partition_racks: PartitionRacks | None = None,
    ) -> Assignment:
        return self._assignment


@pytest.mark.parametrize(
    ("assignment", "fault"),
    [
        ({"c": {"t": [0]}}, "assigns to 'c', which is not a member"),
        ({"a": {"u": [0]}}, "assigns 'u' to 'a', which does not subscribe to it"),
        ({"a": {"t": [2]}}, "assigns t-2, which does not exist"),
        ({"a": {"t": [-1]}}, "assigns t--1, which does not exist"),
        ({"a": {"t": [0]}, "b": {"t": [1, 0]}}, "assigns t-0 to 'a' and again to 'b'"),
        ({"a": {"t": [1, 1]}}, "assigns t-1 to 'a' and again to 'a'"),
    ],
)
def test_faults_are_named(assignment: Assignment, fault: str) -> None:
    with pytest.raises(FaultyAssignmentError) as raised:
        checked_assign(Fixed(assignment), TOPICS, MEMBERS)
    assert str(raised.value) == f"the assignor 'fixed' {fault}"


def test_members_that_are_left_out_get_nothing_and_partitions_are_sorted() -> None:
    assert checked_assign(Fixed({"b": {"t": [1, 0]}}), TOPICS, MEMBERS) == {"a": {}, "b": {"t": [0, 1]}}


@pytest.mark.parametrize("name", BUILT_IN)
@given(group=groups(claims=True) | groups(claims=True, with_racks=True))
def test_the_built_in_assignors_pass_unchanged(name: str, group: Group) -> None:
    assert checked_assign(get_assignor(name), group.topics, group.members, group.racks) == group.assign(name)
