"""Columns of tables that sort: which are there, where a click on a head leads, and what aria-sort says."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from django.http import HttpRequest

from frontend.views.page import address


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
