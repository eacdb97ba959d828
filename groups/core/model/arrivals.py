"""Immutable maps in order of arrival, whose copies share all but the changed path.

A group has up to tens of thousands of members. A dictionary keeps their order too, but would be copied as a whole for
every record, and a storm of joins would be quadratic in the members.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, ValuesView
from itertools import zip_longest
from typing import Any, Self, TypeVar

from groups.core.model.persistent import PersistentMap

V = TypeVar("V")

_BITS = 5
_WIDTH = 1 << _BITS
_FEW_PLACES = 2 * _WIDTH
"""Up to this number of places those of removed keys are not worth reclaiming."""


class _Node:
    """`items`: nodes, or in a leaf (key, value) pairs and None where a key was removed. `least`: the earliest `due`."""

    __slots__ = ("items", "least")

    def __init__(self, items: tuple[Any, ...], least: int | None) -> None:
        self.items = items
        self.least = least


_EMPTY = _Node((), None)
_NO_PLACES: PersistentMap[str, int] = PersistentMap()


class ArrivalMap(Mapping[str, V]):
    """Values by key; iteration is in the order in which the keys arrived, and a changed value keeps its place.

    Each key has a place, a number; the values are a trie over the places, so a lookup, a change and the earliest `due`
    cost the logarithm of the size.
    """

    __slots__ = ("_height", "_next", "_numbering", "_places", "_root")

    def __init__(self, entries: Mapping[str, V]) -> None:
        self._fill(entries)

    @staticmethod
    def due(value: Any) -> int | None:
        """The instant (ms) at which a value runs out, None if it does not."""
        raise NotImplementedError

    @property
    def least(self) -> int | None:
        """The earliest `due` of all values."""
        return self._root.least

    def first_due(self) -> str:
        """The key whose value runs out first; of several at the same instant the one that arrived first.

        ValueError if none does.
        """
        node = self._root
        if node.least is None:
            raise ValueError("nothing runs out")
        for _ in range(self._height):
            node = next(child for child in node.items if child.least == node.least)
        key: str = next(entry[0] for entry in node.items if entry is not None and self.due(entry[1]) == node.least)
        return key

    def changes_since(self, before: Self) -> tuple[list[str], dict[str, V]]:
        """The removed keys, and the entries that are new or have another value, in order of arrival.

        The cost depends on the changes, not on the size: shared parts are not visited.
        """
        old: dict[str, V] = {}
        new: dict[str, V] = {}
        if self._numbering is before._numbering:
            _differences(before._root, before._height, self._root, self._height, old, new)
        else:
            old.update(before.items())
            new.update(self.items())
        changed = {
            key: value for key, value in new.items() if key not in old or (old[key] is not value and old[key] != value)
        }
        return [key for key in old if key not in self], changed

    def __getitem__(self, key: str) -> V:
        value: V = self._entry(self._places[key])[1]
        return value

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[str]:
        return (entry[0] for entry in _entries(self._root, self._height))

    def __len__(self) -> int:
        return len(self._places)

    def values(self) -> ValuesView[V]:
        """The values, in order of arrival."""
        return _Values(self)

    def items(self) -> ItemsView[str, V]:
        """Keys and values, in order of arrival."""
        return _Items(self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ArrivalMap) and self._root is other._root:
            return True
        return isinstance(other, Mapping) and dict(self.items()) == dict(other.items())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self.items())!r})"

    def _fill(self, entries: Mapping[str, V]) -> None:
        self._numbering = object()
        self._next = len(entries)
        self._places = PersistentMap({key: place for place, key in enumerate(entries)}) if entries else _NO_PLACES
        nodes = [self._leaf(part) for part in _parts(list(entries.items()))] or [_EMPTY]
        self._height = 0
        while len(nodes) > 1:
            nodes = [self._branch(part) for part in _parts(nodes)]
            self._height += 1
        self._root = nodes[0]

    def _put(self, key: str, value: V) -> Self:
        """A copy in which `key` has `value`, in its old place, or at the end when the key is new."""
        after = self._copy()
        try:
            place = self._places[key]
        except KeyError:
            place = self._next
            after._next += 1
            after._places = self._places.put(key, place)
            if place == 1 << _BITS * (self._height + 1):
                after._root = self._branch((self._root,))
                after._height += 1
        after._root = self._set(after._root, after._height * _BITS, place, (key, value))
        return after

    def _drop(self, key: str) -> Self:
        """A copy without `key`. KeyError if it is missing."""
        after = self._copy()
        after._places = self._places.drop(key)
        after._root = self._set(self._root, self._height * _BITS, self._places[key], None)
        if after._next > max(_FEW_PLACES, 2 * len(after)):
            after._fill(dict(after.items()))
        return after

    def _each(self, change: Callable[[V], V]) -> Self:
        """A copy in which each value is what `change` makes of it."""
        after = self._copy()
        after._root = self._changed(self._root, self._height, change)
        return after

    def _copy(self) -> Self:
        after = type(self).__new__(type(self))
        after._numbering = self._numbering
        after._next = self._next
        after._places = self._places
        after._height = self._height
        after._root = self._root
        return after

    def _entry(self, place: int) -> tuple[str, V]:
        node = self._root
        for shift in range(self._height * _BITS, 0, -_BITS):
            node = node.items[(place >> shift) % _WIDTH]
        entry: tuple[str, V] = node.items[place % _WIDTH]
        return entry

    def _set(self, node: _Node, shift: int, place: int, entry: tuple[str, V] | None) -> _Node:
        index = (place >> shift) % _WIDTH
        items = node.items
        old = items[index] if index < len(items) else None
        new: Any
        if shift:
            new = self._set(old or _EMPTY, shift - _BITS, place, entry)
            was, least = old.least if old else None, new.least
        else:
            new = entry
            was, least = self.due(old[1]) if old else None, self.due(entry[1]) if entry else None
        items = (*items[:index], new, *items[index + 1 :])
        if least is not None and (node.least is None or least <= node.least):
            return _Node(items, least)
        if was is None or was != node.least:
            return _Node(items, node.least)
        return self._branch(items) if shift else self._leaf(items)

    def _changed(self, node: _Node, height: int, change: Callable[[V], V]) -> _Node:
        if height:
            return self._branch([self._changed(child, height - 1, change) for child in node.items])
        return self._leaf([entry and self._after(entry, change(entry[1])) for entry in node.items])

    @staticmethod
    def _after(entry: tuple[str, V], value: V) -> tuple[str, V]:
        return entry if value is entry[1] else (entry[0], value)

    def _leaf(self, entries: Iterable[tuple[str, V] | None]) -> _Node:
        items = tuple(entries)
        dues = [self.due(entry[1]) for entry in items if entry is not None]
        return _Node(items, min((due for due in dues if due is not None), default=None))

    @staticmethod
    def _branch(nodes: Iterable[_Node]) -> _Node:
        items = tuple(nodes)
        return _Node(items, min((node.least for node in items if node.least is not None), default=None))


class _Values(ValuesView[V]):
    _mapping: ArrivalMap[V]

    def __iter__(self) -> Iterator[V]:
        return (entry[1] for entry in _entries(self._mapping._root, self._mapping._height))


class _Items(ItemsView[str, V]):
    _mapping: ArrivalMap[V]

    def __iter__(self) -> Iterator[tuple[str, V]]:
        return _entries(self._mapping._root, self._mapping._height)


def _parts(items: list[Any]) -> Iterator[list[Any]]:
    return (items[start : start + _WIDTH] for start in range(0, len(items), _WIDTH))


def _entries(node: _Node, height: int) -> Iterator[Any]:
    if height:
        for child in node.items:
            yield from _entries(child, height - 1)
    else:
        yield from filter(None, node.items)


def _differences(
    before: _Node, before_height: int, after: _Node, after_height: int, old: dict[str, Any], new: dict[str, Any]
) -> None:
    """Collect the entries of those leaves that the two do not share, both with the same numbering."""
    if before is after:
        return
    if before_height == after_height == 0:
        for one, other in zip_longest(before.items, after.items):
            if one is not other:
                old.update([one] if one else ())
                new.update([other] if other else ())
        return
    # The lower one is the first child of the other: a trie grows at its root.
    height = max(before_height, after_height)
    ones = before.items if before_height == height else (before,)
    others = after.items if after_height == height else (after,)
    for one, other in zip_longest(ones, others, fillvalue=None):
        _differences(
            one or _EMPTY,
            min(before_height, height - 1) if one else 0,
            other or _EMPTY,
            min(after_height, height - 1) if other else 0,
            old,
            new,
        )
