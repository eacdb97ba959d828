"""Heads of tables that sort: where a click leads, and what aria-sort says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column. `sort_url` None: the list is not sorted by it; `sorted`: what aria-sort says."""

    label: str
    sort_url: str | None
    sorted: str
    number: bool = False
    title: str = ""


def direction(sort: str) -> str:
    """What aria-sort says of a column that a list is sorted by; orders from large to small begin with a minus."""
    return "descending" if sort.startswith("-") else "ascending"
