"""A group as it is stored in the database."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from groups.core.model.deadlines import wake_at
from groups.core.model.group import Group
from groups.core.model.types import Millis


class GroupAppeared(Exception):
    """Another process created the group between our look and our insert: start the transaction over."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A group with the key, the version and the version tag of its row (None, 0, None: no row).

    `wake_at` is that of the row: never later than the earliest deadline of the group, and often earlier.
    """

    pk: int | None
    version: int
    version_tag: UUID | None
    wake_at: Millis | None
    group: Group | None

    @property
    def due(self) -> Millis | None:
        """The earliest deadline of the group."""
        return wake_at(self.group)


MISSING = Stored(pk=None, version=0, version_tag=None, wake_at=None, group=None)
