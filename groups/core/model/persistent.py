"""Immutable maps whose copies share all but the changed path.

A group has up to tens of thousands of members, and a heartbeat that changes nothing but a deadline must cost the same
however many there are: a dictionary would be copied as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
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
