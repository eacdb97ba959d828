"""The built-in assignors: what holds for every group, and where Kafka leaves a choice, ours.

Source: consumer.md 5.4 to 5.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groups.core.assignors import BUILT_IN, Assignor, GroupSpec, MemberSpec, Partitions, RangeAssignor, UniformAssignor
from groups.core.assignors.base import subscribers_of
from groups.core.assignors.uniform import _in_set_order

TOPICS = {"a": 5, "b": 3, "c": 1, "d": 8}
Targets = Mapping[str, Partitions]

subscriptions = st.frozensets(st.sampled_from(sorted(TOPICS)))
groups = st.dictionaries(st.sampled_from([f"m{number}" for number in range(6)]), subscriptions, min_size=1)
assignors = pytest.mark.parametrize("assignor", BUILT_IN.values(), ids=BUILT_IN)


def spec(members: Mapping[str, MemberSpec]) -> GroupSpec:
    ordered = {member_id: members[member_id] for member_id in sorted(members)}
    return GroupSpec(ordered, homogeneous=len({member.topics for member in members.values()}) <= 1)


def fresh(subscribed: Mapping[str, frozenset[str]]) -> dict[str, MemberSpec]:
    return {member_id: MemberSpec(topics) for member_id, topics in subscribed.items()}


def topics_of(members: Mapping[str, MemberSpec]) -> dict[str, int]:
    subscribed = {topic for member in members.values() for topic in member.topics}
    return {topic: count for topic, count in TOPICS.items() if topic in subscribed}


def run(assignor: Assignor, members: Mapping[str, MemberSpec]) -> Targets:
    return assignor.assign(spec(members), topics_of(members))


def totals(targets: Targets) -> dict[str, int]:
    return {member_id: sum(map(len, partitions.values())) for member_id, partitions in targets.items()}


def assert_valid(members: Mapping[str, MemberSpec], targets: Targets, counts: Mapping[str, int] | None = None) -> None:
    topics = counts if counts is not None else topics_of(members)
    given_out = [
        (topic, p) for partitions in targets.values() for topic, numbers in partitions.items() for p in numbers
    ]
    assert sorted(given_out) == [(topic, p) for topic, count in topics.items() for p in range(count)]
    for member_id, partitions in targets.items():
        assert set(partitions) <= members[member_id].topics
        assert all(partitions.values()), "a topic without partitions is left out"


@assignors
@given(subscribed=groups, later=groups)
def test_every_partition_has_exactly_one_subscriber(
    assignor: Assignor, subscribed: dict[str, frozenset[str]], later: dict[str, frozenset[str]]
) -> None:
    members = fresh(subscribed)
    first = run(assignor, members)
    assert_valid(members, first)
    changed = {
        member_id: MemberSpec(topics, target=first.get(member_id, {}) if member_id in subscribed else {})
        for member_id, topics in later.items()
    }
    assert_valid(changed, run(assignor, changed))


@assignors
@given(subscribed=groups)
def test_an_assignment_that_fits_is_left_alone(assignor: Assignor, subscribed: dict[str, frozenset[str]]) -> None:
    members = fresh(subscribed)
    first = run(assignor, members)
    kept = {member_id: replace(member, target=first[member_id]) for member_id, member in members.items()}
    assert run(assignor, kept) == first


@given(st.integers(1, 6), subscriptions, st.integers(0, 5))
def test_uniform_balances_totals_and_takes_only_from_the_rich(size: int, topics: frozenset[str], gone: int) -> None:
    members = fresh({f"m{number}": topics for number in range(size)})
    first = run(UniformAssignor(), members)
    assert max(totals(first).values()) - min(totals(first).values()) <= 1
    rest = {
        member_id: replace(member, target=first[member_id])
        for member_id, member in members.items()
        if member_id != f"m{gone}"
    }
    if not rest:
        return
    second = run(UniformAssignor(), rest)
    assert max(totals(second).values()) - min(totals(second).values()) <= 1
    for member_id in rest:
        for topic, numbers in first[member_id].items():
            assert numbers <= second[member_id].get(topic, frozenset()), "nobody had more than its new share"


def assert_no_move_helps(members: Mapping[str, MemberSpec], targets: Targets) -> None:
    load = totals(targets)
    for topic in topics_of(members):
        owners = [load[member_id] for member_id in members if topic in targets[member_id]]
        subscribers = [load[member_id] for member_id, member in members.items() if topic in member.topics]
        assert max(owners) - min(subscribers) < 2


@given(groups, groups)
def test_uniform_leaves_no_move_that_helps(
    subscribed: dict[str, frozenset[str]], later: dict[str, frozenset[str]]
) -> None:
    members = fresh(subscribed)
    first = run(UniformAssignor(), members)
    assert_no_move_helps(members, first)
    changed = {member_id: MemberSpec(topics, target=first.get(member_id, {})) for member_id, topics in later.items()}
    assert_no_move_helps(changed, run(UniformAssignor(), changed))


@given(groups, subscriptions)
def test_only_the_newcomer_gains_where_all_subscribe_to_the_same(
    subscribed: dict[str, frozenset[str]], topics: frozenset[str]
) -> None:
    members = fresh(dict.fromkeys(subscribed, topics))
    first = run(UniformAssignor(), members)
    joined = {member_id: replace(member, target=first[member_id]) for member_id, member in members.items()}
    second = run(UniformAssignor(), {**joined, "newcomer": MemberSpec(topics)})
    for member_id in members:
        for topic, numbers in second[member_id].items():
            assert numbers <= first[member_id].get(topic, frozenset())


@assignors
@given(subscribed=groups, later=groups)
def test_the_order_in_which_topics_are_listed_makes_no_difference(
    assignor: Assignor, subscribed: dict[str, frozenset[str]], later: dict[str, frozenset[str]]
) -> None:
    first = run(assignor, fresh(subscribed))
    listed = {member_id: list(first.get(member_id, {}).items()) for member_id in later}
    results = [
        run(assignor, {member_id: MemberSpec(later[member_id], dict(listed[member_id][::step])) for member_id in order})
        for step, order in ((1, sorted(later)), (-1, sorted(later, reverse=True)))
    ]
    assert results[0] == results[1]


def test_the_largest_holder_has_the_first_claim_to_one_more() -> None:
    members = {
        "m1": MemberSpec(frozenset({"a"}), target={"a": frozenset({0, 1})}),
        "m2": MemberSpec(frozenset({"a"}), target={"a": frozenset({2, 3, 4})}),
    }
    targets = run(UniformAssignor(), members)
    assert targets == {member_id: member.target for member_id, member in members.items()}


def test_what_is_no_longer_subscribed_to_gives_no_claim() -> None:
    members = {
        "m1": MemberSpec(frozenset({"a"}), target={"a": frozenset({0, 1}), "gone": frozenset(range(9))}),
        "m2": MemberSpec(frozenset({"a"}), target={"a": frozenset({2, 3, 4})}),
    }
    assert run(UniformAssignor(), members) == {"m1": {"a": frozenset({0, 1})}, "m2": {"a": frozenset({2, 3, 4})}}


def test_of_several_topics_the_first_are_kept() -> None:
    held = {"b": frozenset({0}), "a": frozenset({0})}
    members = {"m1": MemberSpec(frozenset(held), target=held), "m2": MemberSpec(frozenset(held))}
    targets = UniformAssignor().assign(spec(members), {"a": 1, "b": 1})
    assert targets == {"m1": {"a": frozenset({0})}, "m2": {"b": frozenset({0})}}


@pytest.mark.parametrize(
    ("held", "order"),
    [
        ([*range(6), *range(16, 22)], [0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21]),
        ([*range(7), *range(16, 22)], [*range(7), *range(16, 22)]),
        ([*range(12), 32], [0, 32, *range(1, 12)]),
        ([*range(23), 32], [0, 32, *range(1, 23)]),
        ([*range(24), 32], [*range(24), 32]),
        ([0, 1, 65_536], [0, 1, 65_536]),
        ([0, 2, 65_536], [0, 65_536, 2]),
    ],
    ids=["12 in 16", "13 in 32", "13 in 32, wrapped", "24 in 32", "25 in 64", "upper half", "upper half first"],
)
def test_partitions_are_kept_in_the_order_of_a_java_hash_set(held: list[int], order: list[int]) -> None:
    assert _in_set_order(frozenset(held)) == order


@assignors
def test_a_topic_without_partitions_is_assigned_to_nobody(assignor: Assignor) -> None:
    members = fresh({"m1": frozenset({"a", "none"}), "m2": frozenset({"none"})})
    targets = assignor.assign(spec(members), {"a": 2, "none": 0})
    assert targets == {"m1": {"a": frozenset({0, 1})}, "m2": {}}


@assignors
def test_a_topic_without_subscribers_is_assigned_to_nobody(assignor: Assignor) -> None:
    members = fresh({"m1": frozenset({"a", "b"}), "m2": frozenset({"b"})})
    targets = assignor.assign(spec(members), {"a": 2, "b": 1, "orphan": 3})
    assert_valid(members, targets, {"a": 2, "b": 1})


def test_uniform_with_overlapping_subscriptions_follows_the_examples() -> None:
    fresh_ones = fresh({"A": frozenset({"t1", "t3"}), "B": frozenset({"t3"})})
    assert UniformAssignor().assign(spec(fresh_ones), {"t1": 3, "t3": 6}) == {
        "A": {"t1": frozenset({0, 1, 2}), "t3": frozenset({4})},
        "B": {"t3": frozenset({0, 1, 2, 3, 5})},
    }
    moved = {
        "A": MemberSpec(frozenset({"t1"}), target={"t1": frozenset({0, 1, 2})}),
        "B": MemberSpec(frozenset({"t1", "t2"}), target={"t1": frozenset({3}), "t2": frozenset({0})}),
        "C": MemberSpec(
            frozenset({"t1", "t2", "t3"}),
            target={"t1": frozenset({4, 5}), "t2": frozenset({1, 2, 3}), "t3": frozenset(range(4))},
        ),
    }
    assert UniformAssignor().assign(spec(moved), {"t1": 6, "t2": 4, "t3": 4}) == {
        "A": {"t1": frozenset({0, 1, 2, 5})},
        "B": {"t1": frozenset({3}), "t2": frozenset(range(4))},
        "C": {"t1": frozenset({4}), "t3": frozenset(range(4))},
    }


def test_range_gives_equal_subscribers_the_same_numbers_of_equal_topics() -> None:
    members = fresh(dict.fromkeys(("m1", "m2", "m3"), frozenset({"x", "y"})))
    targets = RangeAssignor().assign(spec(members), {"x": 7, "y": 7})
    assert all(partitions["x"] == partitions["y"] for partitions in targets.values())
    assert [sorted(partitions["x"]) for partitions in targets.values()] == [[0, 1, 2], [3, 4], [5, 6]]


def test_range_puts_static_members_first() -> None:
    members = {
        "a": MemberSpec(frozenset({"a"})),
        "b": MemberSpec(frozenset({"a"}), instance_id="z"),
        "c": MemberSpec(frozenset({"a"})),
    }
    targets = run(RangeAssignor(), members)
    assert {member_id: sorted(partitions["a"]) for member_id, partitions in targets.items()} == {
        "b": [0, 1],
        "a": [2, 3],
        "c": [4],
    }


@assignors
def test_a_group_without_members_gets_nothing(assignor: Assignor) -> None:
    assert assignor.assign(GroupSpec({}, homogeneous=True), {}) == {}


def plain_range(members: Mapping[str, MemberSpec]) -> Targets:
    """consumer.md 5.4, read word by word."""
    static = sorted((m for m in members if members[m].instance_id is not None), key=lambda m: members[m].instance_id)
    order = static + sorted(m for m in members if members[m].instance_id is None)
    targets: dict[str, dict[str, frozenset[int]]] = {member_id: {} for member_id in members}
    for topic, count in topics_of(members).items():
        subscribers = [member_id for member_id in order if topic in members[member_id].topics]
        least, extra = divmod(count, len(subscribers))
        left = list(range(count))
        for place, member_id in enumerate(subscribers):
            share = least + 1 if place < extra else least
            if share:
                targets[member_id][topic] = frozenset(left[:share])
                del left[:share]
    return targets


@given(groups, st.sets(st.sampled_from([f"m{number}" for number in range(6)])))
def test_range_is_what_the_plain_reading_gives(subscribed: dict[str, frozenset[str]], static: set[str]) -> None:
    # The instance ids sort the other way round than the member ids.
    members = {
        member_id: replace(member, instance_id=f"i{9 - int(member_id[1:])}" if member_id in static else None)
        for member_id, member in fresh(subscribed).items()
    }
    assert run(RangeAssignor(), members) == plain_range(members)


@given(groups)
def test_topics_with_the_same_subscribers_share_them(subscribed: dict[str, frozenset[str]]) -> None:
    found = subscribers_of(subscribed.values(), TOPICS)
    for topic in TOPICS:
        assert found.of(topic) == [place for place, topics in enumerate(subscribed.values()) if topic in topics]
        assert all(found.of(topic) is found.of(other) for other in TOPICS if found.of(topic) == found.of(other))


@pytest.mark.parametrize("assignor", [RangeAssignor(), UniformAssignor()], ids=lambda assignor: assignor.name)
def test_a_topic_that_is_gone_is_assigned_to_nobody(assignor: Assignor) -> None:
    members = {
        "m0": MemberSpec(frozenset({"a", "gone"}), {"gone": frozenset({0})}),
        "m1": MemberSpec(frozenset({"a"})),
    }
    targets = assignor.assign(spec(members), {"a": 2})
    assert targets == {"m0": {"a": frozenset({0})}, "m1": {"a": frozenset({1})}}
