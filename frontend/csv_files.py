"""Tables as CSV (RFC 4180), written as they are read."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence

FORMULA = re.compile(
    r"[\t\n\r]|[\s\x00-\x1f\x7f-\xa0\u200b-\u200f\u2028\u2029\u2060\ufeff]*"
    r"[=+\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b]"
)
"""A spreadsheet takes text that begins like this for a formula: with one of the signs, also full-width or small, after
blanks and invisible characters or not, or with a tab or a line end. `static/frontend/table-csv.js` has the same."""

LINES_A_PIECE = 500

BROKEN_OFF = "ERROR: the file is not complete"


def pieces(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[bytes]:
    """The file in pieces, in UTF-8: the names of the columns, then the rows. None is an empty cell.

    If the rows cannot all be read, the last line says so, and the error ends the answer without its last chunk.
    """
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow(head)
    try:
        for number, row in enumerate(rows, 1):
            writer.writerow([cell(value) for value in row])
            if number % LINES_A_PIECE == 0:
                yield _taken(buffer)
    except Exception:
        writer.writerow([BROKEN_OFF])
        yield _taken(buffer)
        raise
    yield _taken(buffer)


def cell(value: object) -> object:
    """A value as a spreadsheet may show it: text from outside must not become a formula."""
    if isinstance(value, str) and FORMULA.match(value):
        return f"'{value}"
    return value


def _taken(buffer: io.StringIO) -> bytes:
    content = buffer.getvalue().encode("utf-8", "replace")
    buffer.seek(0)
    buffer.truncate()
    return content
