"""Cooperative rebalances: nobody gets what another may still read, and two rounds are enough."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kcoord.assignors import Assignment, MemberSubscription
from tests.kcoord.assignors.groups import Group, assigned, changed, flat, groups, member

NAME = "cooperative-sticky"

any_group = groups(claims=True) | groups(with_racks=True, claims=True)


def check_nothing_moves_directly(group: Group, assignment: Assignment) -> None:
    """Whoever gets a partition that others claim is the only one to claim it in the newest generation."""
    for partition, holder in assigned(assignment):
        claims = {m.member_id: m.generation_id for m in group.members if partition in flat(m.owned_partitions)}
        others = [generation for member_id, generation in claims.items() if member_id != holder]
        assert not others or claims.get(holder, -2) > max(others)


def check_second_round_completes(group: Group, first: Assignment) -> None:
    """What the first round gave stays, and the second, if there is need of one, gives the rest."""
    if len(assigned(first)) == len(group.wanted()):
        return
    second = group.after(first, generation_id=9).assign(NAME)
    assert sorted(partition for partition, _ in assigned(second)) == sorted(group.wanted())
    assert all(flat(partitions) <= flat(second[member_id]) for member_id, partitions in first.items())


@given(group=any_group)
def test_whatever_members_claim_nothing_moves_directly_and_two_rounds_complete_it(group: Group) -> None:
    first = group.assign(NAME)
    partitions = [partition for partition, _ in assigned(first)]
    assert len(partitions) == len(set(partitions))
    assert set(partitions) <= group.wanted()
    assert all(group.subscribes(member_id, topic) for (topic, _), member_id in assigned(first))
    check_nothing_moves_directly(group, first)
    check_second_round_completes(group, first)


@given(group=groups() | groups(with_racks=True), data=st.data())
def test_after_any_change_nothing_moves_directly_and_two_rounds_complete_it(group: Group, data: st.DataObject) -> None:
    settled = group.after(group.assign(NAME), 1)
    joined = data.draw(changed(settled, equal=data.draw(st.booleans())))
    first = joined.assign(NAME)
    check_nothing_moves_directly(joined, first)
    check_second_round_completes(joined, first)


def test_a_claim_of_an_older_generation_loses() -> None:
    stale = MemberSubscription("c3", None, ["t"], {"t": [1, 2]}, generation_id=0)
    group = Group({"t": 3}, (member("c1", ["t"], t=[0, 2]), member("c2", ["t"], t=[1]), stale))
    # 2 goes to c3 only after c1 gave it up; c2 keeps 1.
    assert group.assign(NAME) == {"c1": {"t": [0]}, "c2": {"t": [1]}, "c3": {}}


def test_what_two_members_claim_in_one_generation_is_given_to_nobody_first() -> None:
    group = Group({"t": 3}, (member("c1", ["t"], t=[0, 1]), member("c2", ["t"], t=[0, 2])))
    first = group.assign(NAME)
    assert first == {"c1": {"t": [1]}, "c2": {"t": [2]}}
    assert group.after(first, 2).assign(NAME) == {"c1": {"t": [0, 1]}, "c2": {"t": [2]}}


def test_differs_from_kafka_a_partition_that_moves_because_of_racks_is_withheld() -> None:
    owner = MemberSubscription("c1", None, ["t"], {"t": [0]}, 1, rack_id="a")
    other = MemberSubscription("c2", None, ["t"], {"t": [1]}, 1, rack_id="b")
    group = Group({"t": 2}, (owner, other), {"t": [["b"], ["a"]]})
    first = group.assign(NAME)
    assert first == {"c1": {}, "c2": {}}
    assert group.after(first, 2).assign(NAME) == {"c1": {"t": [1]}, "c2": {"t": [0]}}


def test_differs_from_kafka_a_partition_goes_back_to_an_older_owner_in_two_rounds() -> None:
    newest = MemberSubscription("c1", None, ["t"], {"t": [0, 1, 2]}, generation_id=2)
    older = MemberSubscription("c2", None, ["t", "u"], {"t": [0]}, generation_id=1)
    group = Group({"t": 3}, (MemberSubscription("c0", None, ["t"]), newest, older))
    # c0 has as little, but c2 had the partition before.
    assert group.assign("sticky") == {"c0": {"t": [1]}, "c1": {"t": [2]}, "c2": {"t": [0]}}
    first = group.assign(NAME)
    assert first == {"c0": {}, "c1": {"t": [2]}, "c2": {}}
    assert group.after(first, 3).assign(NAME) == {"c0": {"t": [0]}, "c1": {"t": [2]}, "c2": {"t": [1]}}


def test_differs_from_kafka_the_first_round_aims_where_the_second_would_find_that_more_must_move() -> None:
    owner = member("c1", ["t", "u"], t=[1, 2, 3], u=[0, 1])
    group = Group({"t": 4, "u": 2}, (member("c0", ["u"]), owner, member("c2", ["t"], t=[0])))
    # Kafka revokes t-1, t-2 and u-0, finds in the second round that u-1 must move as well, and needs a third.
    first = group.assign(NAME)
    assert first == {"c0": {}, "c1": {"t": [2, 3]}, "c2": {"t": [0]}}
    assert group.after(first, 2).assign(NAME) == {"c0": {"u": [0, 1]}, "c1": {"t": [2, 3]}, "c2": {"t": [0, 1]}}


def test_differs_from_kafka_racks_revoke_nothing_while_partitions_are_free() -> None:
    owner = MemberSubscription("c1", None, ["t"], {"t": [0]}, 1, rack_id="a")
    other = MemberSubscription("c2", None, ["t"], {"t": [1]}, 1, rack_id="b")
    group = Group({"t": 3}, (owner, other), {"t": [["b"], ["a"], ["b"]]})
    assert group.assign(NAME) == {"c1": {"t": [0]}, "c2": {"t": [1, 2]}}
    assert group.assign("sticky") == {"c1": {"t": [1]}, "c2": {"t": [0, 2]}}
