"""Tables as files: all their rows, a page at a time from a cursor on, written as they are read."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

from asgiref.sync import sync_to_async
from django.http import HttpResponseBase, StreamingHttpResponse

from frontend.csv_files import pieces
from frontend.views.page import attached
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.rest.paging import Page

MOST_ROWS = 100_000
"""Rows of a file; the API has the others."""

T = TypeVar("T")
C = TypeVar("C")
Read = Callable[[Runtime, C | None], Awaitable[tuple[Sequence[T], C | None]]]
"""A page of rows from a cursor on, and the cursor of the next; None: the first, and the last."""


def parts(found: Page[T]) -> tuple[Sequence[T], str | None]:
    """A page of a service as `Read` returns it."""
    return found.items, found.next_cursor


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
