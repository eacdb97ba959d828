"""The persistent maps behave as dictionaries, never change in place, and share what did not change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groups.core.model.persistent import DeadlineMap, PersistentMap, Timer, _leaves

keys = st.one_of(st.text(max_size=3), st.tuples(st.text(max_size=2), st.integers(0, 40)))
changes = st.lists(st.tuples(keys, st.one_of(st.none(), st.integers(0, 9))), max_size=120)


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


def test_a_key_that_is_no_text_of_any_encoding_is_a_key() -> None:
    assert PersistentMap({"\ud800": 1})["\ud800"] == 1


def test_dropping_a_stranger_is_a_bug() -> None:
    with pytest.raises(KeyError):
        PersistentMap[str, int]({"a": 1}).drop("b")
    with pytest.raises(KeyError):
        PersistentMap[str, int]({"a": 1}).without(["a", "b"])
    assert repr(PersistentMap({"a": 1})) == "PersistentMap({'a': 1})"
