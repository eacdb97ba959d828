"""Simulations without a service: what is said to move is the difference between two assignments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groups.core.assignors import BUILT_IN
from groups.simulation import (
    Changes,
    Partitions,
    Simulation,
    Standing,
    _assign_by_coordinator,
    _assign_by_leader,
    simulate,
)
from kcoord.protocol.errors import Error, ProtocolError

TOPICS = {"a": 4, "b": 3, "c": 1}
GROWTH = st.dictionaries(st.sampled_from(sorted(TOPICS)), st.integers(0, 3))
ASSIGNORS = {
    **{name: lambda members, topics, name=name: _assign_by_leader(name, members, topics)
       for name in ("range", "roundrobin", "sticky", "cooperative-sticky")},
    **{f"server {name}": lambda members, topics, assignor=assignor: _assign_by_coordinator(assignor, members, topics)
       for name, assignor in BUILT_IN.items()},
}  # fmt: skip


def owned_by(members: Sequence[Standing], assignment: Mapping[str, Partitions]) -> list[Standing]:
    return [Standing(m.member_id, m.topics, assignment[m.member_id], m.instance_id) for m in members]


@st.composite
def groups(draw: st.DrawFn) -> list[Standing]:
    """Members that own what some assignor gave them, or nothing."""
    count = draw(st.integers(0, 4))
    members = [Standing(f"m{n}", frozenset(draw(st.sets(st.sampled_from("abcd"))))) for n in range(count)]
    by = draw(st.none() | st.sampled_from(sorted(ASSIGNORS)))
    return members if by is None else owned_by(members, ASSIGNORS[by](members, TOPICS))


@given(groups(), st.data())
def test_what_is_said_to_move_is_the_difference(members: list[Standing], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(ASSIGNORS)))
    ids = [member.member_id for member in members]
    changes = Changes(
        data.draw(st.integers(0, 3)) if members else 0,
        data.draw(st.lists(st.sampled_from(ids), unique=True)) if ids else (),
        {topic: TOPICS[topic] + more for topic, more in data.draw(GROWTH).items()},
    )
    found = simulate(members, TOPICS, changes, name, ASSIGNORS[name])
    owners = {(t, p): m.member_id for m in members for t, owned in m.owned.items() for p in owned}
    before = Counter(owners.values())
    for move in found.moves:
        assert owners.pop((move.topic, move.partition), None) == move.owner != move.new_owner
        if move.new_owner is not None:
            owners[move.topic, move.partition] = move.new_owner
    after = Counter(owners.values())
    for member in found.members:
        assert (member.before, member.after) == (before[member.member_id], after[member.member_id])
        assert None not in (member.before, member.gained, member.lost)
        assert member.after == member.before + member.gained - member.lost  # type: ignore[operator]
        assert member.is_removed == (member.member_id in changes.remove)
        assert not member.is_removed or member.after == 0
    assert sum(member.is_new for member in found.members) == changes.add
    assert sum(member.lost or 0 for member in found.members) == found.moved
    subscribed = {t for m in members if m.member_id not in changes.remove for t in m.topics}
    if changes.add:
        subscribed |= {t for m in found.members if m.is_new for t in usual(members)}
    expected = {(t, p) for t, n in {**TOPICS, **changes.partitions}.items() if t in subscribed for p in range(n)}
    assert set(owners) == expected, (
        "every partition of a subscribed topic has an owner, also with a cooperative assignor"
    )
    assert found.total == len(expected)


def usual(members: Sequence[Standing]) -> frozenset[str]:
    return Counter(frozenset(member.topics) for member in members).most_common(1)[0][0]


def two() -> list[Standing]:
    return [Standing("m0", frozenset("a"), {"a": [0, 1]}), Standing("m1", frozenset("a"), {"a": [2, 3]})]


def run(changes: Changes, assignor: str = "sticky") -> Simulation:
    return simulate(two(), TOPICS, changes, assignor, ASSIGNORS[assignor])


def test_without_a_difference_a_sticky_assignor_moves_nothing() -> None:
    assert run(Changes()).moves == ()
    assert run(Changes()).spread == (2, 2)


def test_one_more_member_takes_as_little_as_it_can() -> None:
    found = run(Changes(add=1))
    assert [member.member_id for member in found.members] == ["m0", "m1", "new-1"]
    assert (found.moved, found.spread) == (1, (1, 2))


def test_more_partitions_go_to_those_with_few() -> None:
    found = run(Changes(partitions={"a": 6}))
    assert (found.moved, found.total, len(found.moves), found.spread) == (0, 6, 2, (3, 3))


def test_nothing_is_said_of_members_that_cannot_be_read() -> None:
    opaque = [Standing(f"m{number}", frozenset(), is_readable=False) for number in range(2, 5)]
    changes = Changes(add=1, remove=("m4",))
    found = simulate([*two(), *opaque], TOPICS, changes, "sticky", ASSIGNORS["sticky"])
    numbers = {one.member_id: (one.before, one.after, one.gained, one.lost) for one in found.members}
    assert [numbers[name] for name in ("m2", "m3", "m4")] == [(None,) * 4] * 3
    assert numbers["new-1"] == (0, 1, 1, 0), "a new member is like those that can be read"
    assert (found.unreadable, found.spread) == (3, (1, 2))
    unknown = simulate(opaque, TOPICS, Changes(add=1), "sticky", ASSIGNORS["sticky"])
    assert {one.after for one in unknown.members} == {None}
    assert unknown.unreadable == 3


def test_names_of_new_members_are_free() -> None:
    members = [Standing("new-1", frozenset("a"))]
    found = simulate(members, TOPICS, Changes(add=1), "range", ASSIGNORS["range"])
    assert [member.member_id for member in found.members] == ["new-1", "new-2"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        (Changes(remove=("m0", "ghost")), "remove_members[1]"),
        (Changes(partitions={"ghost": 2}), "topics"),
        (Changes(partitions={"a": 3}), "topics"),
    ],
)
def test_what_the_group_does_not_have_is_refused(changes: Changes, field: str) -> None:
    with pytest.raises(ProtocolError, match=r"ghost|lose") as refused:
        run(changes)
    assert (refused.value.error, refused.value.fields["field"]) == (Error.INVALID_REQUEST, field)


def test_a_new_member_needs_one_to_be_like() -> None:
    with pytest.raises(ProtocolError, match="add_members"):
        simulate([], TOPICS, Changes(add=1), "range", ASSIGNORS["range"])
