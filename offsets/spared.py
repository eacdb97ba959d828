"""Runs over all groups in which one group that fails does not stop the others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import psycopg

T = TypeVar("T")

NAMED = 10
"""Groups that the error names."""


class GroupsFailed(Exception):
    """Raised at the end of a run that is complete but for some groups, so that its task counts as failed."""


class Spared:
    """Finds the groups of a batch whose data Postgres refuses, and does the others. `what`: what fails for a group."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._failed: dict[int, psycopg.DataError] = {}

    async def run(self, work: Callable[[int, int], Awaitable[T]], after: int, upto: int) -> list[T]:
        """The results of `work` on the groups with the keys from `after`, excluded, to `upto`.

        Where it fails with a DataError it is repeated on both halves, until one group is left.
        """
        try:
            return [await work(after, upto)]
        except psycopg.DataError as error:
            if upto - after == 1:
                self._failed[upto] = error
                return []
        middle = (after + upto) // 2
        return [*await self.run(work, after, middle), *await self.run(work, middle, upto)]

    def check(self) -> None:
        """Raises GroupsFailed naming the keys of the groups that failed."""
        if self._failed:
            keys = ", ".join(map(str, sorted(self._failed)[:NAMED]))
            first = next(iter(self._failed.values()))
            text = f"{self._what}: {len(self._failed)} groups, the first by groups_group.id {keys}: {first}"
            raise GroupsFailed(text) from first
