"""What a group had committed at an instant: from the journal, and from the archive where the journal ends.

A day of the journal is dropped only once the archive has it, so what the journal lacks is in the archive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kcoord.http.types import rfc3339
from kcoord.process.runtime import Runtime
from kcoord.resets.strategies import invalid
from offsets.core.days import DAY_MS, bounds, day_of
from offsets.core.plan_types import UNKNOWN_THEN, Found, Position
from offsets.core.types import Millis, TopicPartition
from offsets.journal.archived_offsets import ArchivedOffsets, Offsets
from offsets.plans.store import PlanStore

DAYS_BACK = (0, 1, 3, 7, 15)
"""Days by which the journal is searched backwards: most partitions are found in the first, a single table."""

NOTHING_THEN = "no offset was committed then"


@dataclass(frozen=True, slots=True)
class GroupPast:
    """What the journal and the archive say about a group at an instant (ms)."""

    group_id: str
    at: Millis
    journal: Offsets
    archive: Offsets

    @property
    def archived_topics(self) -> set[str]:
        """Topics that the archive has anything about up to the instant."""
        return {topic for topic, _ in self.archive}


class Past:
    """Reads past offsets. Methods may raise UNKNOWN_SERVER_ERROR: the archive cannot be read."""

    def __init__(self, runtime: Runtime) -> None:
        self._store = runtime.get(PlanStore)
        self._archived = runtime.get(ArchivedOffsets)
        self._retention_ms = runtime.config.int("offsets.journal.retention.days") * DAY_MS

    async def check(self, now: Millis, at: Millis) -> None:
        """Raise INVALID_REQUEST, naming `at`, for an instant in the future, or one for which nothing is kept."""
        if at > now:
            raise invalid("at", "at: must not be in the future")
        if at >= now - self._retention_ms:
            return
        begins = await self._archived.begins()
        if begins is not None and begins <= at:
            return
        days = self._retention_ms // DAY_MS
        kept = f"it is kept for {days} days (offsets.journal.retention.days)"
        archive = "" if begins is None else f", and the archive begins at {rfc3339(begins)}"
        raise invalid("at", f"at: before the journal begins; {kept}{archive}")

    async def of(
        self, group_id: str, partitions: Sequence[TopicPartition], at: Millis, *, others: bool = True
    ) -> GroupPast:
        """What is known about these partitions at an instant that `check` accepted.

        `others`: also return partitions that only the archive has; otherwise it is read only as far back as needed.
        """
        # In this order: a day dropped between the two reads is in the archive, which is read second.
        journal = await self._in_journal(group_id, partitions, at)
        left = None if others else {key for key in partitions if key not in journal}
        return GroupPast(group_id, at, journal, await self._archived.at(group_id, at, left))

    async def committed(self, past: GroupPast, positions: Sequence[Position]) -> dict[TopicPartition, Found]:
        """What the last line up to the instant says about each partition.

        For a partition without such a line: if its current offset has no later line either, it was committed before the
        journal begins, and was in place at that instant; otherwise nothing is known to have been committed.
        """
        found = {key: _told(offset, "from the archive") for key, offset in past.archive.items()}
        found |= {key: _told(offset, "") for key, offset in past.journal.items()}
        unknown = [position for position in positions if position.key not in found]
        current = {p.key: p.committed.offset for p in unknown if p.committed is not None}
        changed = await self._store.journal_since(past.group_id, list(current), past.at)
        for position in unknown:
            key = position.key
            if key in current and key not in changed:
                found[key] = Found(current[key], "unchanged since before the journal begins")
            else:
                found[key] = Found(None, UNKNOWN_THEN)
        return found

    async def _in_journal(self, group_id: str, partitions: Sequence[TopicPartition], at: Millis) -> Offsets:
        offsets: dict[TopicPartition, int | None] = {}
        left = list(partitions)
        today, until = bounds(day_of(at))[0], at
        for since in (*(today - days * DAY_MS for days in DAYS_BACK), 0):
            if not left or since > until:
                continue
            offsets |= await self._store.journal_at(group_id, left, since, until)
            left = [key for key in left if key not in offsets]
            until = since - 1
        return offsets


def _told(offset: int | None, note: str) -> Found:
    return Found(offset, note if offset is not None else NOTHING_THEN)
