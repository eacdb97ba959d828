"""Tables as kafka-consumer-groups prints them: left-aligned columns with one blank between them.

Source: offsets.md 13.2 and 13.4.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

MISSING = "-"
"""How a missing value is printed."""

_ESCAPED = frozenset({"Cc", "Zl", "Zp", "Cs"})


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `width` 0: as wide as each value; `grows`: at least `width`, wider if a value is."""

    title: str
    width: int = 0
    grows: bool = False


def render(columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> list[str]:
    """The lines of a table: its header and its rows. None and "" print as `-`."""
    cells = [[cell(value) for value in row] for row in rows]
    widths = [_width(column, [row[index] for row in cells]) for index, column in enumerate(columns)]
    titles = [column.title for column in columns]
    return [" ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in [titles, *cells]]


def _width(column: Column, values: Sequence[str]) -> int:
    return max([column.width, *map(len, values)]) if column.grows else column.width


def cell(value: object) -> str:
    """A value as a table shows it; control characters are escaped, so that no member id can manipulate a terminal."""
    text = "" if value is None else str(value)
    return "".join(map(_visible, text)) or MISSING


def _visible(character: str) -> str:
    if unicodedata.category(character) not in _ESCAPED:
        return character
    return character.encode("unicode_escape").decode("ascii")
