"""The assignors compared with plain ones (`reference`), which are slow and easily checked by reading."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kcoord.assignors import MemberSubscription
from kcoord.assignors._loads import Least, Loads
from kcoord.assignors._ownership import settle
from tests.kcoord.assignors import reference
from tests.kcoord.assignors.groups import Group, flat, groups

any_group = groups() | groups(with_racks=True) | groups(equal=True, with_racks=True)


def in_order(assignment: object) -> str:
    """With the order of members, topics and partitions, which equality of maps ignores."""
    return repr(assignment)


@given(group=any_group)
def test_range_is_what_the_plain_reading_gives(group: Group) -> None:
    assert in_order(group.assign("range")) == in_order(reference.range_(group))


@given(group=any_group)
def test_roundrobin_is_what_the_plain_reading_gives(group: Group) -> None:
    assert in_order(group.assign("roundrobin")) == in_order(reference.roundrobin(group))


@given(group=groups(claims=True))
def test_claims_are_settled_as_the_plain_reading_does(group: Group) -> None:
    topics = {topic: group.topics[topic] for topic, _ in group.wanted()}
    owner, previous, also_claimed = reference.owners(group)
    found = settle(topics, group.members)
    assert found.owner == owner
    assert found.previous == previous
    for member in group.members:
        assert found.owned[member.member_id] == sorted(p for p, owns in owner.items() if owns == member.member_id)
        held = {p for p in group.wanted() if owner.get(p) != member.member_id and (p in owner or p in also_claimed)}
        others = {p for p in held if owner.get(p) or claimed_by_another(group, member, p)}
        assert set(found.not_held_by_others(member.member_id, sorted(group.wanted()))) == group.wanted() - others


def claimed_by_another(group: Group, member: MemberSubscription, partition: tuple[str, int]) -> bool:
    return any(partition in flat(other.owned_partitions) for other in group.members if other is not member)


@given(data=st.data())
def test_the_least_loaded_is_known_through_moves_of_its_own_and_of_others(data: st.DataObject) -> None:
    members = [MemberSubscription(f"m{n}", None, ["t"] if n % 2 else ["t", "u"]) for n in range(5)]
    loads = Loads({"t": 6, "u": 3}, members)
    partitions = [("t", p) for p in range(6)] + [("u", p) for p in range(3)]
    for partition in partitions:
        loads.give(partition, data.draw(st.sampled_from(loads.subscribers[partition[0]])))
    least = {topic: Least(loads, loads.subscribers[topic]) for topic in ("t", "u")}
    for partition in data.draw(st.lists(st.sampled_from(partitions))):
        topic = partition[0]
        least[topic].move(partition, data.draw(st.sampled_from(loads.subscribers[topic])))
        asked = data.draw(st.sampled_from(["t", "u"]))
        found = least[asked].member()
        assert found == min(loads.subscribers[asked], key=lambda member: (loads.total(member), member))
