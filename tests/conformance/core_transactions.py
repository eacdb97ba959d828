"""Open transactions through the core: its rules of who may speak and what prevails, on a dictionary of what is pending.

The convention has no transaction coordinator (see `http_transactions`): a producer is its number.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from offsets.core.transactions import PendingOffset, Producer, Standing, prevailing, standing
from offsets.core.types import OffsetRecord, TopicPartition

Place = tuple[str, str, int]
"""Group, topic and partition."""


class CoreTransactions:
    """What producers have pending. A turn is the place of a write in the order of writing, plain commits included."""

    def __init__(self) -> None:
        self._turns = itertools.count(1)
        self._committed: dict[Place, int] = {}
        self._pending: dict[int, dict[Place, tuple[OffsetRecord, int]]] = {}
        self._producers: dict[int, Producer] = {}

    def admit(self, producer_id: int, producer_epoch: int) -> None:
        """Let a producer write. Raises ProtocolError INVALID_PRODUCER_EPOCH for one that was succeeded."""
        producer = Producer("", producer_id, producer_epoch)
        if standing(self._producers.get(producer_id), producer) is not Standing.CURRENT:
            self._producers[producer_id] = producer
            self._pending[producer_id] = {}

    def write(self, producer_id: int, group_id: str, records: Iterable[OffsetRecord]) -> None:
        """A transactional commit was accepted."""
        for record in records:
            self._pending[producer_id][group_id, record.topic, record.partition] = record, next(self._turns)

    def written(self, group_id: str, records: Iterable[OffsetRecord]) -> None:
        """A plain commit was accepted."""
        for record in records:
            self._committed[group_id, record.topic, record.partition] = next(self._turns)

    def end(self, producer_id: int, *, committed: bool) -> list[tuple[str, OffsetRecord]]:
        """The end of a transaction; what is committed by it, with its group."""
        pending = self._pending.get(producer_id, {})
        if producer_id in self._producers:
            self._pending[producer_id] = {}
        places = list(pending)
        offsets = [
            PendingOffset(number, place[1], place[2], pending[place][1], self._committed.get(place), 0)
            for number, place in enumerate(places)
        ]
        winners = [places[offset.group] for offset in (prevailing(offsets) if committed else ())]
        self._committed |= {place: pending[place][1] for place in winners}
        return [(place[0], pending[place][0]) for place in winners]

    def of(self, group_id: str) -> list[TopicPartition]:
        """Where something is pending for a group: once for each producer."""
        return [(topic, p) for found in self._pending.values() for name, topic, p in found if name == group_id]

    def forget(self, group_id: str, gone: TopicPartition | None = None) -> None:
        """A tombstone; None: the whole group is deleted."""
        for found in (self._committed, *self._pending.values()):
            for place in [place for place in found if place[0] == group_id and gone in (None, place[1:])]:
                del found[place]
