"""Maps in order of arrival: what a dictionary would do, at a cost that does not grow with the size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from groups.core.model import persistent
from groups.core.model.persistent import ArrivalMap
from groups.core.model.types import PendingIds

keys = st.integers(0, 90).map(str)
instants = st.integers(0, 20)


class AgainstDict(RuleBasedStateMachine):
    """Any changes, also of older copies, beside a plain dictionary."""

    @initialize(size=st.sampled_from((0, 1, 31, 32, 33, 70)))
    def fill(self, size: int) -> None:
        self.plain = {str(number): number for number in range(size)}
        self.kept = PendingIds(self.plain)
        self.older = [(self.kept, self.plain)]

    @rule(key=keys, at=instants)
    def put(self, key: str, at: int) -> None:
        self.kept = self.kept.put(key, at)
        self.plain = {**self.plain, key: at}

    @rule(first=st.integers(1_000, 9_000), count=st.integers(1, 70))
    def put_many(self, first: int, count: int) -> None:
        for number in range(first, first + count):
            self.put(str(number), number)

    @rule(data=st.data(), count=st.integers(1, 80))
    def drop(self, data: st.DataObject, count: int) -> None:
        for _ in range(min(count, len(self.plain))):
            place = data.draw(st.integers(0, len(self.plain) - 1)) if count < 5 else 0
            key = list(self.plain)[place]
            self.kept = self.kept.drop(key)
            self.plain = {other: at for other, at in self.plain.items() if other != key}

    @rule(by=st.integers(0, 5))
    def change_each(self, by: int) -> None:
        self.kept = self.kept._each(lambda at: at + by)
        self.plain = {key: at + by for key, at in self.plain.items()}

    @rule()
    def remember(self) -> None:
        self.older.append((self.kept, self.plain))

    @rule(data=st.data())
    def go_back(self, data: st.DataObject) -> None:
        self.kept, self.plain = data.draw(st.sampled_from(self.older))

    @invariant()
    def same_in_the_same_order(self) -> None:
        assert list(self.kept.items()) == list(self.plain.items())
        assert (list(self.kept), list(self.kept.values())) == (list(self.plain), list(self.plain.values()))
        assert len(self.kept) == len(self.plain)
        assert all(self.kept[key] == at and key in self.kept for key, at in self.plain.items())

    @invariant()
    def earliest_is_known(self) -> None:
        assert self.kept.least == min(self.plain.values(), default=None)
        if self.plain:
            assert self.kept.first_due() == min(self.plain, key=lambda key: self.plain[key])

    @invariant()
    def differences_are_those_of_dictionaries(self) -> None:
        for older, was in self.older:
            removed, changed = self.kept.changes_since(older)
            assert removed == [key for key in was if key not in self.plain]
            expected = {key: at for key, at in self.plain.items() if was.get(key) != at}
            assert list(changed.items()) == list(expected.items())


TestAgainstDict = AgainstDict.TestCase
TestAgainstDict.settings = hypothesis_settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_many_keys_come_and_go() -> None:
    """Through every height of the trie and back, which few random sequences reach."""
    machine = AgainstDict()
    machine.kept, machine.plain, machine.older = PendingIds(), {}, []

    def compare() -> None:
        machine.same_in_the_same_order()
        machine.earliest_is_known()
        machine.differences_are_those_of_dictionaries()

    for number in range(1_100):
        if number in (33, 500, 1_025):
            machine.older.append((machine.kept, machine.plain))
        machine.kept = machine.kept.put(str(number), number * 7 % 13 + 1)
        machine.plain = {**machine.plain, str(number): number * 7 % 13 + 1}
        if number % 64 < 2:
            compare()
    for number in (*range(0, 1_100, 2), *range(1, 1_100, 2)):
        machine.kept = machine.kept.drop(str(number))
        machine.plain = {key: at for key, at in machine.plain.items() if key != str(number)}
        if number % 128 < 2:
            compare()
    assert machine.kept == PendingIds() == {}
    assert machine.kept != 7


def nodes_of(kept: ArrivalMap[int]) -> set[int]:
    """Identities of all nodes of the trie."""
    found, level = set(), [kept._root]
    for _ in range(kept._height + 1):
        found |= {id(node) for node in level}
        level = [child for node in level for child in node.items] if level[0] is not None else []
    return found


@pytest.mark.parametrize("change", ["put", "drop", "append"])
def test_a_change_copies_one_path(change: str) -> None:
    before = PendingIds({str(number): number for number in range(20_000)})
    match change:
        case "put":
            after = before.put("777", 1)
        case "drop":
            after = before.drop("777")
        case _:
            after = before.put("new", 1)
    assert len(nodes_of(after) - nodes_of(before)) == 3
    assert after._numbering is before._numbering


def test_differences_of_shared_parts_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    before = PendingIds({str(number): number for number in range(20_000)})
    after = before.put("777", 1).put("19999", 2).drop("5")
    looked, differences = [], persistent._places_that_differ

    def counted(*arguments: object) -> None:
        looked.append(1)
        differences(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(persistent, "_places_that_differ", counted)
    assert after.changes_since(before) == (["5"], {"777": 1, "19999": 2})
    assert len(looked) < 150


def test_places_of_the_removed_are_reclaimed() -> None:
    kept = PendingIds()
    for number in range(10_000):
        kept = kept.put(str(number), number)
        if number >= 10:
            kept = kept.drop(str(number - 10))
    assert len(kept) == 10
    assert kept._next <= 2 * persistent._FEW_PLACES


@given(st.lists(instants, max_size=5))
def test_equal_to_any_mapping_with_the_same_entries(found: list[int]) -> None:
    plain = {str(number): at for number, at in enumerate(found)}
    assert PendingIds(plain) == plain == PendingIds(dict(reversed(plain.items())))
    assert PendingIds(plain) != {**plain, "other": 1}
    assert repr(PendingIds(plain)) == f"PendingIds({plain})"


def test_nothing_runs_out_of_an_empty_map() -> None:
    with pytest.raises(ValueError, match="nothing runs out"):
        PendingIds().first_due()
    with pytest.raises(KeyError):
        PendingIds().drop("nobody")
