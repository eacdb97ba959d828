"""Rows as objects: how psycopg makes them of the columns of an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import psycopg
from psycopg.rows import AsyncRowFactory, RowMaker, kwargs_row

T = TypeVar("T")


def by_name(kind: Callable[..., T]) -> AsyncRowFactory[T]:
    """A row factory for a class or a function that takes the columns by name.

    Each field of a class needs a column: a default would hide one that the statement forgot. Raises TypeError, when
    rows are made, if names differ.
    """
    if not isinstance(kind, type):
        return kwargs_row(kind)

    def factory(cursor: psycopg.AsyncCursor[Any]) -> RowMaker[T]:
        # Not cursor.description: it makes an object of each column, a tenth of the CPU time of a heartbeat.
        result = cursor.pgresult
        return _maker(kind, tuple(result.fname(number) or b"" for number in range(result.nfields)) if result else ())

    return factory


@lru_cache(maxsize=1_000)
def _maker(kind: type[T], names: tuple[bytes, ...]) -> RowMaker[T]:
    fields: Sequence[str] = kind.__match_args__  # type: ignore[attr-defined]
    columns = [name.decode() for name in names]
    if columns and sorted(columns) != sorted(fields):
        raise TypeError(f"{kind} has the fields {fields}, the rows have {columns}")
    if columns == list(fields):
        return lambda values: kind(*values)
    return lambda values: kind(**dict(zip(columns, values, strict=True)))
