"""What a worker holds: locks, and their items from being acquired until they are settled. No clock, no network."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from kcoord.client.core.wire import AcquiredLock, Ranges
from kcoord.client.errors import IllegalStateError
from kcoord.client.types import Item, Record, TopicPartition


class Phase(Enum):
    """Where an item is."""

    UNREAD = "acquired, to be read from the source"
    WAITING = "read, to be given to the user"
    WORKED = "the user works on it"
    OUTSIDE = "the user settles it in a transaction"
    OVER = "settled, or lost"


@dataclass(slots=True, eq=False)
class Lock:
    """The right to settle what was acquired together. Times are seconds of a monotonic clock."""

    answer: AcquiredLock
    partition: TopicPartition
    length_s: float
    renewed_at: float
    open: dict[int, Delivery] = field(default_factory=dict)

    @property
    def ends_at(self) -> float:
        """When it is over, unless it is renewed."""
        return self.renewed_at + self.length_s

    @property
    def renew_at(self) -> float:
        """At half of its time."""
        return self.renewed_at + self.length_s / 2


@dataclass(slots=True, eq=False)
class Delivery:
    """One item of a lock. `kept`: the user said that the work on it goes on."""

    lock: Lock
    offset: int
    phase: Phase = Phase.UNREAD
    item: Item[Any] | None = None
    begun_at: float = 0.0
    kept: bool = False

    @property
    def partition(self) -> TopicPartition:
        """Where it is from."""
        return self.lock.partition


class Held:
    """Everything that is not settled."""

    def __init__(self) -> None:
        self.locks: dict[int, Lock] = {}
        self._waiting: deque[Delivery] = deque()
        self._newest: dict[tuple[TopicPartition, int], Delivery] = {}

    def add(self, answers: Iterable[AcquiredLock], length_s: float, now: float) -> None:
        """Locks were acquired, for so long."""
        for answer in answers:
            partition = TopicPartition(answer.topic, answer.partition)
            lock = self.locks[answer.lock] = Lock(answer, partition, length_s, now)
            for offset in offsets_in(answer.offsets):
                lock.open[offset] = self._newest[partition, offset] = Delivery(lock, offset)

    def read(self, delivery: Delivery, record: Record[Any]) -> None:
        """The source has this item."""
        answer = delivery.lock.answer
        delivery.item = Item(
            record.topic,
            record.partition,
            record.offset,
            record.key,
            record.value,
            record.timestamp_ms,
            record.headers,
            delivery_count=answer.delivery_count,
            last_error=answer.last_error,
            lock=answer.lock,
            locked_until=answer.locked_until,
        )
        delivery.phase = Phase.WAITING
        self._waiting.append(delivery)

    def waits(self) -> bool:
        """Something can be given to the user."""
        while self._waiting and self._waiting[0].phase is not Phase.WAITING:
            self._waiting.popleft()
        return bool(self._waiting)

    def take(self, most: int, now: float) -> list[Delivery]:
        """Up to `most` items for the user, who works on them from now on."""
        taken: list[Delivery] = []
        while len(taken) < most and self.waits():
            delivery = self._waiting.popleft()
            delivery.phase, delivery.begun_at = Phase.WORKED, now
            taken.append(delivery)
        return taken

    def within(self, *phases: Phase) -> list[Delivery]:
        """The items of these phases."""
        return [delivery for lock in self.locks.values() for delivery in lock.open.values() if delivery.phase in phases]

    def of(self, item: Item[Any]) -> Delivery:
        """The item, in the user's hands. Raises IllegalStateError."""
        lock = self.locks.get(item.lock)
        return self._with_user(None if lock is None else lock.open.get(item.offset), item.offset)

    def at(self, partition: TopicPartition, offset: int) -> Delivery:
        """The item at an offset. Raises IllegalStateError."""
        return self._with_user(self._newest.get((partition, offset)), offset)

    def over(self, delivery: Delivery) -> None:
        """It is settled, or lost."""
        delivery.phase = Phase.OVER
        delivery.lock.open.pop(delivery.offset, None)
        if not delivery.lock.open:
            self.locks.pop(delivery.lock.answer.lock, None)
        if self._newest.get((delivery.partition, delivery.offset)) is delivery:
            del self._newest[delivery.partition, delivery.offset]

    def _with_user(self, delivery: Delivery | None, offset: int) -> Delivery:
        if delivery is None or delivery.phase not in (Phase.WORKED, Phase.OUTSIDE):
            raise IllegalStateError(
                f"offset {offset} is not with this worker: it was acknowledged before, or its lock is lost"
            )
        return delivery


def offsets_in(ranges: Ranges) -> Iterator[int]:
    """Every offset of these ranges."""
    for first, last in ranges:
        yield from range(first, last + 1)


def ranges_of(offsets: Iterable[int]) -> Ranges:
    """These offsets as ranges, ascending."""
    ranges: Ranges = []
    for offset in sorted(offsets):
        if ranges and ranges[-1][1] == offset - 1:
            ranges[-1] = (ranges[-1][0], offset)
        else:
            ranges.append((offset, offset))
    return ranges
