"""Rows as objects: a class with one field per column, of the same names in the same order.

Rows are made by position, which costs nothing; the names are compared when a statement returns its first rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import psycopg

T = TypeVar("T")

_compared: set[tuple[type[Any], str]] = set()


def rows_as(kind: type[T], statement: str) -> Callable[[psycopg.AsyncCursor[Any]], Callable[[Sequence[Any]], T]]:
    """The row factory of a named tuple or dataclass. Raises TypeError, when rows come, if the names differ."""
    make: Callable[[Sequence[Any]], T] = getattr(kind, "_make", None) or (lambda values: kind(*values))
    key = kind, statement

    def factory(cursor: psycopg.AsyncCursor[Any]) -> Callable[[Sequence[Any]], T]:
        if key not in _compared and cursor.description is not None:  # in this order: the description is made on request
            columns = tuple(column.name for column in cursor.description)
            if columns != fields_of(kind):
                raise TypeError(
                    f"{kind.__name__} has the fields {fields_of(kind)}, the rows have {columns}: {statement}"
                )
            _compared.add(key)
        return make

    return factory


def fields_of(kind: type[Any]) -> tuple[str, ...]:
    """The names of the fields, in order."""
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return tuple(kind._fields)
