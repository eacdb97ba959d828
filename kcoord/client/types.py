"""The values that users of the client see: partitions, offsets, records and the source that records come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from kcoord.client.errors import KcoordError


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class OffsetAndMetadata(NamedTuple):
    """A committed offset: the next offset to read, with any text that the committer attached."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Record(Generic[T_co]):
    """One record of a partition. `offset` is its own offset; committing it as done means committing `offset + 1`.

    For type checkers `Record[T]` is one with a `value` of type T, and a source of them makes a `Consumer[T]`.
    """

    topic: str
    partition: int
    offset: int
    key: Any = None
    value: T_co = None  # type: ignore[assignment]
    timestamp_ms: int = -1
    headers: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def timestamp(self) -> int:
        """`timestamp_ms`, under the name that it has in kafka-python."""
        return self.timestamp_ms


@dataclass(frozen=True, slots=True)
class Item(Record[T_co]):
    """A record that a share group gave to this worker for a time.

    `delivery_count`: how often it was given to somebody, 1 for the first time; `last_error`: why it was released the
    last time; `lock`: the right to settle it, which `locked_until` ends unless it is renewed. Without a source `value`
    is None.
    """

    delivery_count: int = 1
    last_error: str | None = None
    lock: int = 0
    locked_until: datetime | None = None


AcknowledgeType = Literal["accept", "release", "reject", "renew"]
"""Done; to be given to somebody again; given up, as a dead letter; still being worked on (KIP-932, KIP-1222)."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """What came of acknowledging one item; `error` None: it is stored."""

    topic: str
    partition: int
    offset: int
    type: str
    error: KcoordError | None = None


class OffsetAndTimestamp(NamedTuple):
    """The first record at or after a time: its offset and its own timestamp in ms since the epoch."""

    offset: int
    timestamp: int
    leader_epoch: int = -1


class RecordSource(Protocol[T_co]):
    """Where records come from. kcoord coordinates readers; it stores no records.

    The methods are called by the thread that calls `Consumer.poll` (or `position`, `seek_to_…`), never by another one.
    They should return promptly: time spent here counts as time between polls.
    """

    def fetch(self, topic: str, partition: int, offset: int, max_records: int) -> Sequence[Record[T_co]]:
        """Up to `max_records` records with offsets of `offset` and higher, ascending; empty if none exist yet.

        Raises `OffsetOutOfRangeError` if `offset` lies before the first or beyond the end.
        """

    def beginning_offset(self, topic: str, partition: int) -> int:
        """The first offset that can be read."""

    def end_offset(self, topic: str, partition: int) -> int:
        """The offset that the next record will have."""


class TimedRecordSource(RecordSource[T_co], Protocol[T_co]):
    """A source that also finds records by time, for `Consumer.offsets_for_times`."""

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> OffsetAndTimestamp | None:
        """The first record with a timestamp of `timestamp_ms` (since the epoch) or later; None if all are earlier."""


class TruncatedRecordSource(RecordSource[T_co], Protocol[T_co]):
    """A source whose logs may end earlier than before, which counts only because it says so."""

    def truncated(self, topic: str, partition: int) -> bool:
        """Whether the log was truncated. Asked if it ends earlier than was reported before, by whomever."""


class SettledRecordSource(RecordSource[T_co], Protocol[T_co]):
    """A source whose records may appear late or be deleted, so that `end_offset` does not say which are still to come.

    A share consumer settles an offset without a record as a gap only if it is below this; of other sources, if it is
    below the end.
    """

    def settled_offset(self, topic: str, partition: int) -> int:
        """No record with a smaller offset can appear any more. May lie beyond the end; 0 if nothing is known yet."""


class AsyncRecordSource(Protocol[T_co]):
    """A record source for `AsyncConsumer`, which also takes a `RecordSource`. The methods mean the same.

    They are awaited by the task that awaits `AsyncConsumer.poll`; `offset_for_time`, `truncated` and `settled_offset`
    may be added.
    """

    async def fetch(self, topic: str, partition: int, offset: int, max_records: int) -> Sequence[Record[T_co]]:
        """See `RecordSource.fetch`."""

    async def beginning_offset(self, topic: str, partition: int) -> int:
        """See `RecordSource.beginning_offset`."""

    async def end_offset(self, topic: str, partition: int) -> int:
        """See `RecordSource.end_offset`."""


AnyRecordSource = RecordSource[T_co] | AsyncRecordSource[T_co]
"""What the core reads from: its driver awaits what has to be awaited."""


class MemberState(str, Enum):
    """The state of the member in the group (classic protocol)."""

    UNJOINED = "unjoined"
    REBALANCING = "rebalancing"
    STABLE = "stable"


Offsets = Mapping[TopicPartition, OffsetAndMetadata]
"""What to commit: partition -> next offset to read."""
