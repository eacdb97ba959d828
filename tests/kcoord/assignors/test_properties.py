"""What holds of every assignment."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kcoord.assignors.groups import BUILT_IN, STICKY, Group, assigned, changed, flat, groups, totals

any_group = groups(claims=True) | groups(with_racks=True, claims=True)


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky"])
@given(group=any_group)
def test_every_partition_of_every_subscribed_topic_is_assigned_once_to_a_subscriber(
    assignor: str, group: Group
) -> None:
    assignment = group.assign(assignor)
    assert set(assignment) == {member.member_id for member in group.members}
    assert sorted(partition for partition, _ in assigned(assignment)) == sorted(group.wanted())
    assert all(group.subscribes(member_id, topic) for (topic, _), member_id in assigned(assignment))


@pytest.mark.parametrize("assignor", BUILT_IN)
@given(group=any_group, seed=st.integers())
def test_the_order_of_the_arguments_makes_no_difference(assignor: str, group: Group, seed: int) -> None:
    rng = random.Random(seed)

    def shuffled(values: list[Any]) -> list[Any]:
        return rng.sample(values, len(values))

    members = [
        replace(
            member,
            topics=shuffled(list(member.topics)),
            owned_partitions={
                topic: shuffled(list(partitions))
                for topic, partitions in shuffled(list(member.owned_partitions.items()))
            },
        )
        for member in group.members
    ]
    other = Group(dict(shuffled(list(group.topics.items()))), tuple(shuffled(members)), group.racks)
    assert other.assign(assignor) == group.assign(assignor)


@given(group=groups(with_racks=True) | groups())
def test_range_balances_each_topic(group: Group) -> None:
    assignment = group.assign("range")
    for topic, count in group.topics.items():
        shares = [len(assignment[m.member_id].get(topic, ())) for m in group.members if topic in m.topics]
        assert not shares or (max(shares) - min(shares) <= 1 and sum(shares) == count)


@given(group=groups(equal=True, with_racks=True) | groups(equal=True))
def test_range_puts_the_same_partitions_of_topics_of_the_same_size_together(group: Group) -> None:
    assignment = group.assign("range")
    topics = [topic for topic in group.members[0].topics if topic in group.topics]
    for topic in topics:
        for other in topics:
            if group.topics[topic] == group.topics[other]:
                assert all(p.get(topic, []) == p.get(other, []) for p in assignment.values())


@pytest.mark.parametrize("assignor", ["roundrobin", "sticky"])
@given(group=groups(equal=True, claims=True) | groups(equal=True, with_racks=True, claims=True))
def test_totals_differ_by_at_most_one_where_subscriptions_are_equal(assignor: str, group: Group) -> None:
    sizes = totals(group.assign(assignor)).values()
    assert max(sizes) - min(sizes) <= 1


@given(group=groups(equal=False, claims=True) | groups(equal=False, with_racks=True, claims=True))
def test_sticky_leaves_no_move_that_would_even_out_totals(group: Group) -> None:
    assignment = group.assign("sticky")
    sizes = totals(assignment)
    for (topic, _), holder in assigned(assignment):
        assert all(sizes[holder] - sizes[m.member_id] < 2 for m in group.members if topic in m.topics)


@pytest.mark.parametrize("assignor", STICKY)
@given(group=groups(), data=st.data())
def test_nothing_moves_when_nothing_changed(assignor: str, group: Group, data: st.DataObject) -> None:
    before = group.assign(assignor)
    generations = data.draw(st.sampled_from([-1, 1, 7]))
    assert group.after(before, generations).assign(assignor) == before


@pytest.mark.parametrize("equal", [True, False])
@given(data=st.data())
def test_sticky_swaps_nothing_where_subscriptions_are_equal(equal: bool, data: st.DataObject) -> None:
    """A member that gives up a partition that it may keep gets no other instead."""
    group = data.draw(groups(equal=equal))
    joined = data.draw(changed(group.after(group.assign("sticky"), 1), equal=True))
    after = joined.assign("sticky")
    for member in joined.members:
        keepable = flat(member.owned_partitions) & joined.wanted()
        now = flat(after[member.member_id])
        assert keepable <= now or now <= keepable


@given(group=groups(equal=True), data=st.data())
def test_those_who_stay_keep_everything_when_others_leave(group: Group, data: st.DataObject) -> None:
    joined = group.after(group.assign("sticky"), 1)
    staying = data.draw(st.lists(st.sampled_from(joined.members), min_size=1, unique_by=lambda m: m.member_id))
    after = replace(joined, members=tuple(staying)).assign("sticky")
    assert all(flat(member.owned_partitions) <= flat(after[member.member_id]) for member in staying)
