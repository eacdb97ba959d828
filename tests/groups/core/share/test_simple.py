"""The assignor `simple`: share.md 3."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groups.core.assignors.base import GroupSpec, MemberSpec, Partitions
from groups.core.assignors.simple import SimpleAssignor, share_out

Names = dict[str, tuple[str, ...]]


def assign(topics: dict[str, int], names: Names, before: dict[str, Partitions] | None = None) -> dict[str, Partitions]:
    topics = {
        topic_id: count for topic_id, count in topics.items() if any(topic_id in named for named in names.values())
    }
    members = {
        member_id: MemberSpec(frozenset(named).intersection(topics), (before or {}).get(member_id, {}))
        for member_id, named in sorted(names.items())
    }
    alike = len({member.topics for member in members.values()}) <= 1
    return dict(SimpleAssignor().assign(GroupSpec(members, homogeneous=alike), topics))


def sets(assigned: dict[str, Partitions]) -> dict[str, list[int]]:
    return {member_id: sorted(partitions.get("t", ())) for member_id, partitions in assigned.items()}


@pytest.mark.parametrize(
    ("members", "partitions", "sizes", "sharing"),
    [
        ("a", 3, [3], 1),
        ("ab", 3, [2, 1], 1),
        ("abc", 3, [1, 1, 1], 1),
        ("abcd", 2, [1, 1, 1, 1], 2),
        ("abc", 2, [2, 1, 1], 2),
        ("abcde", 2, [2, 1, 1, 1, 1], 3),
        ("ab", 1, [1, 1], 2),
    ],
)
def test_the_table(members: str, partitions: int, sizes: list[int], sharing: int) -> None:
    assigned = sets(assign({"t": partitions}, dict.fromkeys(members, ("t",))))
    assert [len(assigned[member_id]) for member_id in members] == sizes
    assert set(Counter(p for has in assigned.values() for p in has).values()) == {sharing}


def test_different_subscriptions_are_balanced_topic_by_topic() -> None:
    assigned = assign({"t": 1, "u": 1}, {"a": ("t", "u"), "b": ("u",)})
    assert assigned == {"a": {"t": frozenset({0}), "u": frozenset({0})}, "b": {"u": frozenset({0})}}


def test_topics_of_equal_subscriptions_are_balanced_together() -> None:
    assigned = assign({"t": 1, "u": 1}, dict.fromkeys("ab", ("t", "u")))
    assert assigned == {"a": {"t": frozenset({0})}, "b": {"u": frozenset({0})}}


@pytest.mark.parametrize(
    ("members", "partitions", "before", "after"),
    [
        # Who has a partition already keeps its turn for the next one.
        ("abc", 2, {"a": {0}}, {"a": [0, 1], "b": [0], "c": [1]}),
        # Only as many as share a partition keep it, the first ones.
        ("abcd", 2, {"a": {0}, "b": {0}, "c": {0}, "d": {1}}, {"a": [0], "b": [0], "c": [1], "d": [1]}),
        # Nobody gets more than its number, who had some or who had none.
        ("ab", 6, {"a": {0, 1}}, {"a": [0, 1, 2], "b": [3, 4, 5]}),
        ("ab", 6, {"b": {0, 1}}, {"a": [2, 4, 5], "b": [0, 1, 3]}),
        ("ab", 4, {"a": {0, 1, 2, 3}}, {"a": [0, 1], "b": [2, 3]}),
        # Who is below its number gets nothing if it has all that is missing.
        ("abc", 2, {"b": {0}, "c": {0, 1}}, {"a": [1], "b": [0], "c": [0]}),
        # A topic that was deleted and made again may have fewer partitions.
        ("a", 2, {"a": {0, 2}}, {"a": [0, 1]}),
    ],
)
def test_who_had_what(members: str, partitions: int, before: dict[str, set[int]], after: dict[str, list[int]]) -> None:
    had = {member_id: {"t": frozenset(had)} for member_id, had in before.items()}
    assert sets(assign({"t": partitions}, dict.fromkeys(members, ("t",)), had)) == after


def test_nothing_to_share_and_nobody_to_share_with() -> None:
    assert share_out([], [{("t", 0)}, set()]) == [set(), set()]
    assert share_out([("t", 0)], []) == []


def test_what_can_stay_stays() -> None:
    topics, both = {"t": 4}, {"a": ("t",), "b": ("t",)}
    before = assign(topics, both)
    assert assign(topics, both, before) == before
    alone = assign(topics, {"a": ("t",)}, before)
    assert alone == {"a": {"t": frozenset(range(4))}}
    again = assign(topics, both, alone)
    assert sets(again)["a"] == [0, 1]


def test_nothing_to_assign_and_nobody_to_assign_it_to() -> None:
    assert assign({}, {"a": ("t",)}) == {"a": {}}
    assert assign({"t": 2}, {}) == {}


counts = st.dictionaries(st.sampled_from("tuv"), st.integers(1, 6), min_size=1)
subscriptions = st.dictionaries(
    st.sampled_from([f"m{n}" for n in range(7)]), st.sets(st.sampled_from("tuv"), min_size=1).map(tuple), min_size=1
)


@given(counts, subscriptions, subscriptions)
def test_every_partition_has_a_member_and_members_are_even(topics: dict[str, int], before: Names, after: Names) -> None:
    assigned = assign(topics, after, assign(topics, before))
    for topic_id, partitions in topics.items():
        named = [member_id for member_id, names in after.items() if topic_id in names]
        users = Counter(p for member_id in assigned for p in assigned[member_id].get(topic_id, ()))
        assert set(users) == (set(range(partitions)) if named else set())
        assert all(topic_id in after[member_id] for member_id in assigned if topic_id in assigned[member_id])
    if len({frozenset(names).intersection(topics) for names in after.values()}) == 1:
        sizes = sorted(sum(map(len, has.values())) for has in assigned.values())
        assert sizes[-1] - sizes[0] <= 1
    assert assign(topics, after, assigned) == assigned, "it is at rest"
