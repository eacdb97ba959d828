"""Immutable maps whose copies share all but the changed path, by key or in order of arrival.

A group has up to tens of thousands of members, and a heartbeat that changes nothing but a deadline must cost the same
however many there are: a dictionary would be copied as a whole, and a storm of joins would be quadratic in the members.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, ItemsView, Iterable, Iterator, Mapping, ValuesView
from itertools import zip_longest
from typing import Any, Generic, NamedTuple, Self, TypeVar, overload
from zlib import crc32

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

_BITS = 5
_WIDTH = 1 << _BITS
_MOST_IN_LEAF = 16
_DEEPEST = 30
"""The last shift that still has bits of the 32-bit code; leaves there grow without splitting."""


class _Branch(Generic[K, V]):
    """An inner node: its children by the next bits of the key's code. `least`: see `DeadlineMap`."""

    __slots__ = ("children", "least")

    def __init__(self, children: tuple[Any, ...], least: V | None) -> None:
        self.children = children
        self.least = least


class PersistentMap(Mapping[K, V]):
    """A hash trie. Keys are texts, or tuples of texts and integers; the order of iteration is unspecified.

    `put`, `drop`, `update` and `without` return a changed copy and leave this one unchanged.
    """

    __slots__ = ("_root", "_size")

    def __init__(self, entries: Mapping[K, V] | None = None) -> None:
        entries = entries if entries is not None else {}
        self._size = len(entries)
        self._root: Any = self._grow([(_code(key), key, value) for key, value in entries.items()], 0)

    def put(self, key: K, value: V) -> Self:
        """A copy in which `key` has `value`."""
        return self._copy(self._put(self._root, _code(key), 0, key, value), self._size + (key not in self))

    def drop(self, key: K) -> Self:
        """A copy without `key`. KeyError if it is missing."""
        return self._copy(self._drop(self._root, _code(key), 0, key), self._size - 1)

    def update(self, entries: Mapping[K, V]) -> Self:
        """A copy in which all of `entries` are set."""
        if not entries:
            return self
        added = sum(key not in self for key in entries)
        coded = [(_code(key), key, value) for key, value in entries.items()]
        return self._copy(self._put_all(self._root, coded, 0), self._size + added)

    def without(self, keys: Collection[K]) -> Self:
        """A copy without `keys`. KeyError for a missing one."""
        if not keys:
            return self
        return self._copy(
            self._drop_all(self._root, [(_code(key), key, None) for key in keys], 0), self._size - len(keys)
        )

    def changes_since(self, before: PersistentMap[K, V]) -> tuple[frozenset[K], dict[K, V]]:
        """The removed keys, and the entries that are new or have another value.

        The cost depends on the changes, not on the size: shared parts are not visited.
        """
        old: dict[K, V] = {}
        new: dict[K, V] = {}
        _differences(before._root, self._root, old, new)
        changed = {key: value for key, value in new.items() if key not in old or old[key] != value}
        return frozenset(old.keys() - new.keys()), changed

    def __getitem__(self, key: K) -> V:
        value: V = self._leaf(key)[key]
        return value

    @overload
    def get(self, key: K, default: None = None, /) -> V | None: ...
    @overload
    def get(self, key: K, default: V | T, /) -> V | T: ...
    def get(self, key: K, default: Any = None, /) -> Any:
        """The value of `key`, or `default`. Looked up for every heartbeat, where raising KeyError would cost more."""
        return self._leaf(key).get(key, default)

    def _leaf(self, key: K) -> dict[K, V]:
        node: Any = self._root
        if type(node) is _Branch:  # only then the code of the key is needed
            code = _code(key)
            while type(node) is _Branch:
                node = node.children[code % _WIDTH]
                code >>= _BITS
        leaf: dict[K, V] = node
        return leaf

    def __iter__(self) -> Iterator[K]:
        return (key for leaf in _leaves(self._root) for key in leaf)

    def __len__(self) -> int:
        return self._size

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PersistentMap) and self._root is other._root:
            return True
        return isinstance(other, Mapping) and dict(self.items()) == dict(other.items())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self.items())!r})"

    def _copy(self, root: Any, size: int) -> Self:
        after = type(self).__new__(type(self))
        after._root = root
        after._size = size
        return after

    def _branch(self, children: tuple[Any, ...]) -> _Branch[K, V]:
        return _Branch(children, None)

    def _grow(self, entries: list[tuple[int, K, V]], shift: int) -> Any:
        if len(entries) <= _MOST_IN_LEAF or shift > _DEEPEST:
            return {key: value for _, key, value in entries}
        parts: list[list[tuple[int, K, V]]] = [[] for _ in range(_WIDTH)]
        for entry in entries:
            parts[(entry[0] >> shift) % _WIDTH].append(entry)
        return self._branch(tuple([self._grow(part, shift + _BITS) for part in parts]))

    def _put(self, node: Any, code: int, shift: int, key: K, value: V) -> Any:
        if type(node) is _Branch:
            index = (code >> shift) % _WIDTH
            child = self._put(node.children[index], code, shift + _BITS, key, value)
            return self._branch((*node.children[:index], child, *node.children[index + 1 :]))
        leaf = {**node, key: value}
        if len(leaf) <= _MOST_IN_LEAF or shift > _DEEPEST:
            return leaf
        return self._grow([(_code(key), key, value) for key, value in leaf.items()], shift)

    def _put_all(self, node: Any, entries: list[tuple[int, K, V]], shift: int) -> Any:
        if type(node) is _Branch:
            return self._branch(self._each(node, entries, shift, self._put_all))
        leaf = {**node, **{key: value for _, key, value in entries}}
        if len(leaf) <= _MOST_IN_LEAF or shift > _DEEPEST:
            return leaf
        return self._grow([(_code(key), key, value) for key, value in leaf.items()], shift)

    def _drop_all(self, node: Any, entries: list[tuple[int, K, None]], shift: int) -> Any:
        if type(node) is _Branch:
            return self._branch(self._each(node, entries, shift, self._drop_all))
        leaf = dict(node)
        for _, key, _ in entries:
            del leaf[key]
        return leaf

    @staticmethod
    def _each(
        node: Any, entries: list[Any], shift: int, change: Callable[[Any, list[Any], int], Any]
    ) -> tuple[Any, ...]:
        """The children of a branch, with those changed that some of `entries` belong to: each leaf is created once."""
        parts: dict[int, list[Any]] = {}
        for entry in entries:
            parts.setdefault((entry[0] >> shift) % _WIDTH, []).append(entry)
        children = list(node.children)
        for index, part in parts.items():
            children[index] = change(children[index], part, shift + _BITS)
        return tuple(children)

    def _drop(self, node: Any, code: int, shift: int, key: K) -> Any:
        if type(node) is _Branch:
            index = (code >> shift) % _WIDTH
            child = self._drop(node.children[index], code, shift + _BITS, key)
            return self._branch((*node.children[:index], child, *node.children[index + 1 :]))
        leaf = dict(node)
        del leaf[key]
        return leaf


class Timer(NamedTuple):
    """A timer that is armed: when it fires, and when it was armed (ms)."""

    deadline: int
    armed_at: int


class DeadlineMap(PersistentMap[str, Timer]):
    """Timers by member id; the earliest is known without visiting the others."""

    __slots__ = ()

    @property
    def least(self) -> Timer | None:
        """The timer that fires first, None without timers."""
        return _least(self._root)

    def first(self) -> str | None:
        """Whose timer fires first; of several at the same instant, the one armed first, then the smallest id."""
        least = self.least
        return min(_keys_of(self._root, least)) if least is not None else None

    def _branch(self, children: tuple[Any, ...]) -> _Branch[str, Timer]:
        return _Branch(children, min(filter(None, map(_least, children)), default=None))


def _least(node: Any) -> Timer | None:
    least: Timer | None = node.least if type(node) is _Branch else min(node.values(), default=None)
    return least


def _keys_of(node: Any, timer: Timer) -> Iterator[str]:
    if type(node) is _Branch:
        for child in node.children:
            if _least(child) == timer:
                yield from _keys_of(child, timer)
    else:
        yield from (key for key, value in node.items() if value == timer)


def _differences(before: Any, after: Any, old: dict[Any, Any], new: dict[Any, Any]) -> None:
    """Collect the entries of those leaves that the two do not share."""
    if before is after:
        return
    if type(before) is _Branch and type(after) is _Branch:
        for one, other in zip(before.children, after.children, strict=True):
            _differences(one, other, old, new)
        return
    for leaf in _leaves(before):
        old.update(leaf)
    for leaf in _leaves(after):
        new.update(leaf)


def _leaves(node: Any) -> Iterable[dict[Any, Any]]:
    if type(node) is not _Branch:
        yield node
        return
    for child in node.children:
        yield from _leaves(child)


def _code(key: object) -> int:
    """32 bits that depend only on the key, in every process."""
    return crc32(key.encode("utf-8", "surrogatepass") if isinstance(key, str) else repr(key).encode())


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
            _places_that_differ(before._root, before._height, self._root, self._height, old, new)
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


def _places_that_differ(
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
        _places_that_differ(
            one or _EMPTY,
            min(before_height, height - 1) if one else 0,
            other or _EMPTY,
            min(after_height, height - 1) if other else 0,
            old,
            new,
        )
