"""Plans: even, complete, the same everywhere, and with as few moves as possible."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from groups.nodes.view import plan

OWNERS = st.lists(st.one_of(st.none(), st.integers(1, 12)), min_size=1, max_size=60).map(
    lambda owners: dict(enumerate(owners))
)


@given(st.sets(st.integers(1, 12), min_size=1), OWNERS)
def test_everything_is_planned_evenly_and_stays_where_it_may(nodes: set[int], owners: dict[int, int | None]) -> None:
    targets = plan(nodes, owners)
    assert targets.keys() == owners.keys()
    shares = Counter(dict.fromkeys(nodes, 0)) + Counter(targets.values())
    counts = [shares[node] for node in nodes]
    assert max(counts) - min(counts) <= 1
    assert plan(list(nodes)[::-1], dict(reversed(owners.items()))) == targets
    # Of every node stays as much as its share allows.
    for node in nodes:
        had = sum(owner == node for owner in owners.values())
        kept = sum(owner == node and targets[partition] == node for partition, owner in owners.items())
        assert kept == min(had, shares[node])


@given(st.sets(st.integers(1, 12), min_size=1), OWNERS)
def test_a_plan_that_was_carried_out_changes_nothing_more(nodes: set[int], owners: dict[int, int | None]) -> None:
    targets = plan(nodes, owners)
    assert plan(nodes, targets) == targets


def test_without_nodes_nothing_is_planned() -> None:
    assert plan([], {0: 1}) == {}
