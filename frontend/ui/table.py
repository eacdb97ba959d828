"""Tables: heads that sort, and CSV files of all rows."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse

from frontend.ui.page import address, attached
from frontend.ui.wording import iso_if_known
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.rest.paging import Page


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `first`: the order of the first click on its head, None if the list is not sorted by it.

    `usual`: it is shown unless the address says which columns are.
    """

    name: str
    label: str
    first: Enum | None = None
    second: Enum | None = None
    number: bool = False
    title: str = ""
    usual: bool = True


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column. `sort_url` None: the list is not sorted by it; `sorted`: what aria-sort says."""

    label: str
    sort_url: str | None
    sorted: str
    number: bool = False
    title: str = ""


def heads(
    request: HttpRequest, columns: Iterable[Column], sort: Enum, offered: Collection[Enum], usual: Enum
) -> Iterator[Head]:
    """The heads of a list that is sorted by `sort`. `offered`: orders that the person may ask for."""
    for column in columns:
        chosen = column.second if sort is column.first else column.first
        value = None if chosen is None or chosen is usual else chosen.value
        url = address(request, sort=value, after=None, before=None) if chosen in offered else None
        said = "descending" if sort.value.startswith("-") else "ascending"
        is_sorted = sort in (column.first, column.second)
        yield Head(column.label, url, said if is_sorted else "", column.number, column.title)


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


MOST_ROWS = 100_000
"""Rows of a file; the API has the others."""

T = TypeVar("T")
C = TypeVar("C")
Read = Callable[[Runtime, C | None], Awaitable[tuple[Sequence[T], C | None]]]
"""A page of rows from a cursor on, and the cursor of the next; None: the first, and the last."""


def rows_of(read: Callable[[Runtime, str | None], Awaitable[Page[T]]]) -> Iterator[T]:
    """As `all_rows`, for a service whose pages say themselves where they go on."""

    async def one(runtime: Runtime, cursor: str | None) -> tuple[Sequence[T], str | None]:
        found = await read(runtime, cursor)
        return found.items, found.next_cursor

    return all_rows(one)


def all_rows(read: Read[C, T]) -> Iterator[T]:
    """The rows of all pages, at most MOST_ROWS. The first page is read at once, so that its errors are answered."""
    first, following = bridge.call(lambda runtime: read(runtime, None))

    def rest() -> Iterator[T]:
        after = following
        while after is not None:
            at = after
            found, after = bridge.call(lambda runtime, at=at: read(runtime, at))  # type: ignore[misc]
            yield from found

    return itertools.islice(itertools.chain(first, rest()), MOST_ROWS)


class _File(StreamingHttpResponse):
    """Sent piece by piece under ASGI too, where Django would first collect a whole iterator that is not asynchronous.

    So the last line of a file that breaks off arrives, and then the error ends the answer without its last chunk.
    """

    async def __aiter__(self) -> AsyncIterator[bytes]:
        written = iter(self)
        following = sync_to_async(lambda: next(written, None))
        while (piece := await following()) is not None:
            yield piece


def csv_file(name: str, head: Sequence[str], rows: Iterator[Sequence[object]]) -> HttpResponseBase:
    """The file, named `name` and `.csv`."""
    response = _File(pieces(head, rows), content_type="text/csv; charset=utf-8")
    return attached(response, name, "csv")


def csv_of(name: str, columns: str, found: Iterable[object], **same: object) -> HttpResponseBase:
    """The file of objects by their attributes. `same`: columns with one value in all rows, after the others.

    `columns`: their names, separated by blanks: `topic`, or `partitions=total.partitions` if the attribute has another
    name or belongs to another one, which may be a mapping, or None. `@created_at` is an instant in ms. Several texts
    are separated by blanks.
    """
    heads, paths = [], []
    for column in columns.split():
        head, _, path = column.removeprefix("@").partition("=")
        heads.append(head)
        paths.append(((path or head).split("."), column.startswith("@")))
    rows = ((*(_value(one, path, is_instant=at) for path, at in paths), *same.values()) for one in found)
    return csv_file(name, (*heads, *same), rows)


def _value(of: Any, path: Sequence[str], *, is_instant: bool) -> object:
    for name in path:
        of = of.get(name) if isinstance(of, Mapping) else None if of is None else getattr(of, name)
    if is_instant:
        return iso_if_known(of)
    return " ".join(of) if isinstance(of, list | tuple) else of
