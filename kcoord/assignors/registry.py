"""Assignors by name: the built-in ones and those published by installed packages.

A package adds one with an entry point of the group "kcoord.assignors", whose name is the assignor's:

    [project.entry-points."kcoord.assignors"]
    weighted = "acme.assignors:WeightedAssignor"

The entry point is the assignor, or a class or function that takes no arguments and creates it.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points

from kcoord.assignors.assignor import Assignor
from kcoord.assignors.range_assignor import RangeAssignor
from kcoord.assignors.roundrobin import RoundRobinAssignor
from kcoord.assignors.sticky import CooperativeStickyAssignor, StickyAssignor

ENTRY_POINT_GROUP = "kcoord.assignors"

_BUILT_IN: dict[str, Assignor] = {
    assignor.name: assignor
    for assignor in (RangeAssignor(), RoundRobinAssignor(), StickyAssignor(), CooperativeStickyAssignor())
}


class UnknownAssignorError(LookupError):
    """No assignor has this name. The message lists the known ones."""


class AssignorLoadError(Exception):
    """An installed package publishes an assignor of this name that cannot be used."""


def known_assignors() -> tuple[str, ...]:
    """The names that `get_assignor` knows: the built-in ones, then those of installed packages in name order."""
    return (*_BUILT_IN, *sorted(set(_published()) - _BUILT_IN.keys()))


@cache
def get_assignor(name: str) -> Assignor:
    """The assignor with this name; one object per process. Built-in names cannot be overridden.

    Raises `UnknownAssignorError`; `AssignorLoadError` when the package that publishes it is broken.
    """
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    candidates = _published().get(name, [])
    if not candidates:
        raise UnknownAssignorError(f"no assignor is named {name!r}; available: {', '.join(known_assignors())}")
    if len(candidates) > 1:
        values = ", ".join(candidate.value for candidate in candidates)
        raise AssignorLoadError(f"the assignor {name!r} is published more than once: {values}; uninstall all but one")
    return _load(candidates[0])


def forget() -> None:
    """Look for packages again the next time."""
    get_assignor.cache_clear()
    _published.cache_clear()


@cache
def _published() -> dict[str, list[EntryPoint]]:
    """Read once: it looks through all installed packages, and any request may name an assignor that is not there."""
    published: dict[str, list[EntryPoint]] = {}
    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        published.setdefault(entry_point.name, []).append(entry_point)
    return published


def _load(entry_point: EntryPoint) -> Assignor:
    where = f"the assignor {entry_point.name!r} ({entry_point.value})"
    try:
        loaded = entry_point.load()
        # An assignor class has `assign` too, but needs an instance to call it on.
        assignor: Assignor = loaded() if isinstance(loaded, type) or not hasattr(loaded, "assign") else loaded
    except Exception as error:
        raise AssignorLoadError(f"{where} cannot be imported: {error!r}") from error
    missing = [attribute for attribute in ("name", "protocols", "assign") if not hasattr(assignor, attribute)]
    if missing:
        raise AssignorLoadError(f"{where} is not an assignor: it has no {', '.join(missing)}")
    if assignor.name != entry_point.name:
        raise AssignorLoadError(f"{where} has the name {assignor.name!r}; the entry point must have the same name")
    return assignor
