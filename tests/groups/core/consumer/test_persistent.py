"""The persistent maps behave as dictionaries, never change in place, and share what did not change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groups.core.model.persistent import DeadlineMap, PersistentMap, Timer, _code, _leaves

keys = st.one_of(st.text(max_size=3), st.tuples(st.text(max_size=2), st.integers(0, 40)))
changes = st.lists(st.tuples(keys, st.one_of(st.none(), st.integers(0, 9))), max_size=120)

COLLIDING = ["".join(words) for words in product(("plumless", "buckeroo"), repeat=6)]
"""Texts with the same CRC-32: the two words have it in common, so whatever is composed of them has too."""
MANY = [f"m{number}" for number in range(300)]
crowded = st.sampled_from([*COLLIDING, *MANY])


def put_each(entries: Mapping[str, int]) -> PersistentMap[str, int]:
    kept = PersistentMap[str, int]()
    for key, value in entries.items():
        kept = kept.put(key, value)
    return kept


@given(st.dictionaries(keys, st.integers(), max_size=80), changes)
def test_every_change_is_that_of_a_dictionary(start: dict[object, int], steps: list[tuple[object, int | None]]) -> None:
    kept: PersistentMap[object, int] = PersistentMap(start)
    plain = dict(start)
    for key, value in steps:
        before, seen = kept, dict(plain)
        if value is not None:
            kept, plain[key] = kept.put(key, value), value
        elif key in plain:
            kept = kept.drop(key)
            del plain[key]
        assert dict(before) == seen, "the old map is as it was"
        assert len(kept) == len(plain)
        assert kept == plain
        assert kept.get(key) == plain.get(key)


@given(st.dictionaries(keys, st.integers(), max_size=200), st.dictionaries(keys, st.integers(), max_size=60))
def test_update_sets_everything(start: dict[object, int], more: dict[object, int]) -> None:
    before: PersistentMap[object, int] = PersistentMap(start)
    after = before.update(more)
    assert after == {**start, **more}
    assert len(after) == len({**start, **more})
    assert before == start, "the map itself stays as it is"
    left = after.without(list(more))
    assert left == {key: value for key, value in start.items() if key not in more}
    assert len(left) == len(start.keys() - more.keys())
    assert after == {**start, **more}
    assert before == start


@given(
    st.dictionaries(st.text(max_size=2), st.integers(0, 50), max_size=60),
    st.lists(st.tuples(st.text(max_size=2), st.one_of(st.none(), st.integers(0, 50))), max_size=60),
)
def test_the_earliest_deadline_is_known(start: dict[str, int], steps: list[tuple[str, int | None]]) -> None:
    timers = DeadlineMap({key: Timer(at, 0) for key, at in start.items()})
    plain = dict(start)
    for key, at in [("", None), *steps]:
        if at is not None:
            timers, plain[key] = timers.put(key, Timer(at, 0)), at
        elif key in plain:
            timers = timers.drop(key)
            del plain[key]
        assert (timers.least.deadline if timers.least is not None else None) == min(plain.values(), default=None)
        first = timers.first()
        assert (first is None) == (not plain)
        if first is not None:
            assert (plain[first], first) == min((at, key) for key, at in plain.items())


def test_a_change_of_one_in_many_copies_a_path() -> None:
    before = DeadlineMap({f"m{number}": Timer(number, 0) for number in range(10_000)})
    after = before.put("m5000", Timer(0, 1))
    assert before["m5000"] == Timer(5_000, 0)
    assert after["m5000"] == Timer(0, 1)
    shared = set(map(id, before._root.children)) & set(map(id, after._root.children))
    assert len(shared) == len(before._root.children) - 1


def test_leaves_stay_small_as_a_map_grows() -> None:
    grown = DeadlineMap()
    for number in range(1_000):
        grown = grown.put(f"m{number}", Timer(number, 0))
    assert max(map(len, _leaves(grown._root))) <= 16
    assert grown == DeadlineMap(dict(grown))


@given(
    st.dictionaries(crowded, st.integers(0, 3), max_size=60),
    st.dictionaries(crowded, st.integers(0, 3), max_size=60),
    st.sets(crowded, max_size=60),
)
def test_keys_with_the_same_code_are_told_apart(
    start: dict[str, int], more: dict[str, int], unwanted: set[str]
) -> None:
    one_by_one, at_once, plain = PersistentMap(start), PersistentMap(start).update(more), {**start, **more}
    for key, value in more.items():
        one_by_one = one_by_one.put(key, value)
    gone = [key for key in plain if key in unwanted]
    left = {key: value for key, value in plain.items() if key not in unwanted}
    for kept in (one_by_one, at_once, PersistentMap(plain)):
        assert dict(kept) == plain
        assert [kept.get(key) for key in COLLIDING] == [plain.get(key) for key in COLLIDING]
        dropped = kept
        for key in gone:
            dropped = dropped.drop(key)
        for after in (dropped, kept.without(gone)):
            assert dict(after) == left
            assert len(after) == len(left)
            assert all(key not in after for key in gone)


@pytest.mark.parametrize("make", [PersistentMap[str, int], PersistentMap[str, int]().update, put_each])
def test_more_keys_of_one_code_than_fit_in_a_leaf(make: Callable[[Mapping[str, int]], PersistentMap[str, int]]) -> None:
    assert len({_code(key) for key in COLLIDING}) == 1
    plain = {key: number for number, key in enumerate([*COLLIDING, *MANY])}
    full = make(plain)
    assert dict(full) == plain
    assert len(full) == len(plain)
    assert max(map(len, _leaves(full._root))) == len(COLLIDING), "they share a leaf, which grows"
    kept = full
    for key in COLLIDING[1:]:
        kept = kept.drop(key)
    assert dict(kept) == dict(full.without(COLLIDING[1:])) == {COLLIDING[0]: 0, **{key: plain[key] for key in MANY}}


@pytest.mark.parametrize("make", [PersistentMap[str, int], PersistentMap[str, int]().update, put_each])
def test_a_leaf_has_at_most_16_entries(make: Callable[[Mapping[str, int]], PersistentMap[str, int]]) -> None:
    assert len(list(_leaves(make(dict.fromkeys(MANY[:16], 0))._root))) == 1
    assert len(list(_leaves(make(dict.fromkeys(MANY[:17], 0))._root))) == 32


def test_each_of_many_can_be_dropped() -> None:
    kept, plain = PersistentMap(dict.fromkeys(MANY, 0)), dict.fromkeys(MANY, 0)
    for key in MANY:
        kept = kept.drop(key)
        del plain[key]
        assert dict(kept) == plain
    assert len(kept) == 0


def test_maps_are_equal_to_every_mapping_with_the_same_entries() -> None:
    one, same, other = PersistentMap({"a": 1}), PersistentMap({"a": 1}), PersistentMap({"a": 2})
    assert one == one
    assert one == same
    assert one == {"a": 1}
    assert one != other
    assert one != {"a": 2}
    assert one != PersistentMap({"a": 1, "b": 1})
    assert one != [("a", 1)]
    assert one != "a"
    assert PersistentMap[str, int]() == {}
    assert PersistentMap[str, int]() != []


@given(st.dictionaries(keys, st.integers(0, 3), max_size=40), st.dictionaries(keys, st.integers(0, 3), max_size=40))
def test_maps_are_equal_if_dictionaries_are(one: dict[object, int], other: dict[object, int]) -> None:
    assert (PersistentMap(one) == PersistentMap(other)) == (one == other)
    assert (PersistentMap(one) == other) == (one == other)


def test_a_change_of_nothing_copies_nothing() -> None:
    kept = PersistentMap(dict.fromkeys(MANY, 0))
    assert kept.update({}) is kept
    assert kept.without([]) is kept
    assert kept.changes_since(kept) == (frozenset(), {})


@given(
    st.dictionaries(crowded, st.integers(0, 3), max_size=60),
    st.dictionaries(crowded, st.integers(0, 3), max_size=60),
    st.sets(crowded, max_size=60),
)
def test_changes_are_those_of_dictionaries(start: dict[str, int], more: dict[str, int], unwanted: set[str]) -> None:
    before = PersistentMap(start)
    gone = [key for key in start if key in unwanted]
    for after in (before.without(gone).update(more), PersistentMap(dict(before.without(gone).update(more)))):
        removed, changed = after.changes_since(before)
        assert removed == start.keys() - after.keys()
        assert changed == {key: value for key, value in after.items() if key not in start or start[key] != value}


def test_changes_of_a_small_map_and_a_large_one() -> None:
    small, large = PersistentMap({"m1": 0, "a": 1}), PersistentMap(dict.fromkeys(MANY, 0))
    assert small.changes_since(large) == (frozenset(MANY) - {"m1"}, {"a": 1})
    assert large.changes_since(small) == ({"a"}, dict.fromkeys(set(MANY) - {"m1"}, 0))


class Counted:
    """A value that counts how often values are compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return self is other

    __hash__ = None  # type: ignore[assignment]


def test_what_two_maps_share_is_not_compared() -> None:
    before = PersistentMap({key: Counted() for key in MANY})
    after = before.put("m1", Counted()).drop("m2")
    Counted.compared = 0
    assert after.changes_since(before) == (frozenset({"m2"}), {"m1": after["m1"]})
    assert 0 < Counted.compared <= 1 + 2 * 16, "two leaves of at most 16, and the expectation itself"


def test_of_many_timers_of_one_instant_the_smallest_id_is_the_first() -> None:
    timers = DeadlineMap(dict.fromkeys(MANY, Timer(5, 1))).put("later", Timer(5, 2)).put("a", Timer(6, 0))
    for key in sorted(MANY):
        assert timers.first() == key
        timers = timers.drop(key)
    assert timers.first() == "later"


def test_a_key_that_is_no_text_of_any_encoding_is_a_key() -> None:
    assert PersistentMap({"\ud800": 1})["\ud800"] == 1


def test_dropping_a_stranger_is_a_bug() -> None:
    with pytest.raises(KeyError):
        PersistentMap[str, int]({"a": 1}).drop("b")
    with pytest.raises(KeyError):
        PersistentMap[str, int]({"a": 1}).without(["a", "b"])
    assert repr(PersistentMap({"a": 1})) == "PersistentMap({'a': 1})"
