"""Free partitions are placed as evenly as possible while all others stay."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from kcoord.assignors._loads import Loads
from kcoord.assignors._spread import spread
from kcoord.assignors.assignor import MemberSubscription, TopicPartition


@st.composite
def placements(draw: st.DrawFn) -> tuple[Loads, list[TopicPartition]]:
    """Partitions placed anyhow, and which of them are free."""
    topics = {topic: draw(st.integers(1, 3)) for topic in ("t0", "t1", "t2")}
    members = [
        MemberSubscription(f"m{number}", None, draw(st.lists(st.sampled_from(sorted(topics)), unique=True)))
        for number in range(draw(st.integers(1, 4)))
    ]
    loads = Loads(topics, members)
    free = []
    for topic, count in topics.items():
        for partition in range(count if loads.subscribers[topic] else 0):
            loads.give((topic, partition), draw(st.sampled_from(loads.subscribers[topic])))
            if draw(st.booleans()):
                free.append((topic, partition))
    return loads, free


def unevenness(loads: Loads) -> int:
    return sum(loads.total(member) ** 2 for member in range(len(loads.member_ids)))


@given(placement=placements())
def test_no_placement_of_the_free_partitions_is_more_even(placement: tuple[Loads, list[TopicPartition]]) -> None:
    loads, free = placement
    before = dict(loads.holder)
    spread(loads, free)
    found = unevenness(loads)
    assert {p: holder for p, holder in before.items() if p not in free}.items() <= loads.holder.items()
    assert all(loads.holder[topic, partition] in loads.subscribers[topic] for topic, partition in free)

    for holders in product(*(loads.subscribers[topic] for topic, _ in free)):
        for partition, holder in zip(free, holders, strict=True):
            loads.give(partition, holder)
        assert found <= unevenness(loads)


def test_a_chain_of_two_evens_out_what_no_single_move_can() -> None:
    members = [MemberSubscription("a", None, ["t"]), MemberSubscription("b", None, ["t", "u"])]
    loads = Loads({"t": 1, "u": 3}, [*members, MemberSubscription("c", None, ["u"])])
    loads.give(("t", 0), 1)
    loads.give(("u", 0), 2)
    loads.give(("u", 1), 2)
    spread(loads, [("t", 0), ("u", 0), ("u", 1)])
    assert [loads.total(member) for member in range(3)] == [1, 1, 1]
