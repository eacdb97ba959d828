"""The names that a caller may see as ranges of an index, so that a list seeks to them instead of reading all names.

Names are compared by their code points, as Postgres does where the collation is `C` or one like it, and no name has a
NUL.
"""

from __future__ import annotations

from kcoord.database.paging import Visible

Range = tuple[str, str]
"""Names from the first on, and before the second."""

LAST = chr(0x10FFFF)
SURROGATES = 0xD800, 0xDFFF
BEYOND = LAST * 256
"""Comes after every name: a name has at most 255 characters."""


def ranges(visible: Visible) -> list[Range]:
    """The ranges that hold every visible name, in order, none of which overlaps another.

    Denied prefixes are left out of them; denied names are not.
    """
    found = sorted(
        [
            *((name, name + chr(1)) for name in visible.names),
            *((prefix, _after(prefix)) for prefix in visible.prefixes),
        ]
    )
    for denied in visible.denied_prefixes:
        found = [part for one in found for part in _without(one, (denied, _after(denied)))]
    return found


def _after(prefix: str) -> str:
    """The first name after all that begin with a prefix."""
    kept = prefix.rstrip(LAST)
    if not kept:
        return BEYOND
    following = ord(kept[-1]) + 1
    if following == SURROGATES[0]:
        following = SURROGATES[1] + 1
    return kept[:-1] + chr(following)


def _without(one: Range, taken: Range) -> list[Range]:
    (low, high), (first, beyond) = one, taken
    if beyond <= low or first >= high:
        return [one]
    return [part for part in ((low, min(first, high)), (max(beyond, low), high)) if part[0] < part[1]]
