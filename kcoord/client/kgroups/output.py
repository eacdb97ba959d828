"""The tool's output: results and errors on standard output, notices on standard error.

Source: offsets.md 13.1. Differs from Kafka: with `--export` errors go to standard error, so that a
file to which standard output is redirected contains only CSV.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kcoord.protocol.errors import ProtocolError


class Writable(Protocol):
    """A stream of text."""

    def write(self, text: str, /) -> object:
        """Write some text as it is."""
        ...


class Output:
    """Writes to both streams and remembers whether anything failed."""

    def __init__(self, stdout: Writable, stderr: Writable, *, errors_on_stderr: bool = False) -> None:
        self._stdout = stdout
        self._stderr = stderr
        self._errors = stderr if errors_on_stderr else stdout
        self.failed = False

    def line(self, text: str) -> None:
        """A line of the result."""
        self._stdout.write(f"{text}\n")

    def table(self, lines: Iterable[str]) -> None:
        """A table, with an empty line before it."""
        self._stdout.write("".join(f"\n{line}" for line in lines) + "\n")

    def notice(self, text: str) -> None:
        """Information that is not part of the result."""
        self._stderr.write(f"\n{text}\n")

    def error(self, text: str, *details: str) -> None:
        """Something that was requested but not done; the exit status reflects it."""
        self.failed = True
        self._errors.write("".join(f"{line}\n" for line in (f"\nError: {text}", *details)))


def reason(error: ProtocolError) -> str:
    """An error of the HTTP API in one line."""
    return f"{error.error.name}: {error.detail}"


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
