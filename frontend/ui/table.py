"""Tables: their columns, once for pages and files; heads that sort, and CSV files of all rows."""

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

from frontend.ui.page import BadAddress, address, attached, number
from frontend.ui.wording import iso_if_known
from kcoord.database.paging import Page
from kcoord.process import bridge
from kcoord.process.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `name`: in files; "" if it is only on pages. `label`: on pages; "" if it is only in files.

    `first`, `second`: the orders of the first and second click on its head, None if the list is not sorted by it, and
    their names in `orders`, separated by `|`. `usual`: it is shown unless the address says which columns are.

    Of rows that `frontend/ui/table.html` writes: `path`: the attribute, `name` if it is called so, or `a.b`, of which
    `a` may be a mapping, or None. `form`: how it is written (`table_cell`); `at` is an instant in ms. `none`: what
    a dash means. `classes`: of its cells. `route`: of the page of what is named in it; the context has its `query`.
    `hint`: the key of what stands in the title of its cells.
    """

    name: str
    label: str = ""
    first: Enum | None = None
    second: Enum | None = None
    number: bool = False
    title: str = ""
    usual: bool = True
    orders: str = ""
    path: str = ""
    form: str = "text"
    none: str = ""
    classes: str = ""
    route: str = ""
    hint: str = ""

    def value(self, row: Any) -> Any:
        """What a row has in it."""
        for name in (self.path or self.name).split("."):
            row = row.get(name) if isinstance(row, Mapping) else None if row is None else getattr(row, name)
        return row

    def in_file(self, row: Any) -> object:
        """The same in a file. Several texts are separated by blanks."""
        found = self.value(row)
        if self.form == "at":
            return iso_if_known(found)
        return " ".join(found) if isinstance(found, list | tuple) else found


def files(columns: str) -> Sequence[Column]:
    """Columns of files alone, separated by blanks: `topic`, `partitions=total.partitions` or `@created_at`.

    What follows `=` is the path; `@` stands before an instant.
    """
    found = []
    for column in columns.split():
        name, _, path = column.removeprefix("@").partition("=")
        found.append(Column(name, path=path, form="at" if column.startswith("@") else "text"))
    return found


def orders(columns: Iterable[Column]) -> list[tuple[Any, str]]:
    """Every order of a list with these columns, and what it is called."""
    named = [((column.first, column.second), column.orders.split("|")) for column in columns if column.orders]
    return [pair for both, names in named for pair in zip(both, names, strict=True)]


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


def page_number(request: HttpRequest, most: int) -> int:
    """The page of a list whose pages are numbered, from 1. Raises BadAddress."""
    found = number(request, "page")
    if found is not None and not 1 <= found <= most:
        raise BadAddress(f"page: from 1 to {most:,}; what lies beyond is found with the filter, or in the CSV file.")
    return found or 1


def numbered(request: HttpRequest, page: int, more: bool) -> dict[str, str]:
    """The URLs of the pages before and after one of these, "" without."""
    return {
        "previous_url": address(request, page=str(page - 1) if page > 2 else None) if page > 1 else "",
        "next_url": address(request, page=str(page + 1)) if more else "",
    }


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


def as_json(columns: Iterable[Column], row: Any, **given: object) -> Mapping[str, Any]:
    """A row as an object. `given`: what is in columns, by their names."""
    return {**{column.name: column.in_file(row) for column in columns if column.name not in given}, **given}


def csv_of(name: str, columns: str | Iterable[Column], found: Iterable[Any], **given: object) -> HttpResponseBase:
    """The file of objects or mappings. `columns`: as `files` takes them, or those of a page.

    `given`: what is in columns, by their names: a value of all rows, or a function of each. Those that are not among
    the columns come after them.
    """
    written = [column for column in (files(columns) if isinstance(columns, str) else columns) if column.name]
    known = {column.name for column in written}
    written += [Column(name) for name in given if name not in known]

    def value(column: Column, row: Any) -> object:
        if column.name not in given:
            return column.in_file(row)
        found = given[column.name]
        return found(row) if callable(found) else found

    rows = ([value(column, one) for column in written] for one in found)
    return csv_file(name, [column.name for column in written], rows)
