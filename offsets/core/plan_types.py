"""Values of offset plans. Instants are milliseconds; an offset is the next one to read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kcoord.protocol.errors import Error
from offsets.core.types import Millis, OffsetRecord, TopicPartition

UNKNOWN_THEN = "not in the journal up to then"
"""The note of a partition of which the journal says neither that an offset was committed then nor that none was."""


class PlanState(StrEnum):
    """The life of a plan, forward only."""

    PLANNED = "planned"
    APPLIED = "applied"
    UNDONE = "undone"


@dataclass(frozen=True, slots=True)
class Log:
    """Where a partition's log begins and ends (the offset after the last), as last reported."""

    start: int
    end: int

    def clamp(self, offset: int) -> int:
        """The nearest offset that the log has."""
        return max(self.start, min(offset, self.end))

    def lag(self, offset: int) -> int:
        """Remaining records that a reader starting at `offset` has to read; never negative."""
        return max(self.end - max(offset, self.start), 0)


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed offset with everything stored for it. Instants in ms.

    `record_offset`: its line in the journal; it distinguishes a commit from a later one of the same offset.
    """

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp: Millis = 0
    expire_timestamp: Millis | None = None
    record_offset: int = 0


@dataclass(frozen=True, slots=True)
class Position:
    """A partition as the plan finds it. `committed` None: nothing is committed; `log` None: it was never reported."""

    topic: str
    partition: int
    exists: bool = True
    committed: Committed | None = None
    log: Log | None = None

    @property
    def key(self) -> TopicPartition:
        """Topic and partition."""
        return self.topic, self.partition


@dataclass(frozen=True, slots=True)
class Found:
    """Data of a source other than the partition itself: samples of the log, another group, a file, the journal.

    `offset` None: it is known not to exist.
    """

    offset: int | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One partition of a plan. `requested`: the new offset before it was clamped. `new` None: it will be removed."""

    topic: str
    partition: int
    old: Committed | None
    requested: int | None
    new: int | None
    log: Log | None = None
    note: str = ""

    @property
    def key(self) -> TopicPartition:
        """Topic and partition."""
        return self.topic, self.partition

    @property
    def old_offset(self) -> int | None:
        """What is committed when the plan is made."""
        return None if self.old is None else self.old.offset

    @property
    def clamped(self) -> bool:
        """The log does not have the requested offset."""
        return self.requested != self.new

    @property
    def changes(self) -> bool:
        """The committed offset will change."""
        return self.old_offset != self.new

    @property
    def removes(self) -> bool:
        """The committed offset will be removed: the group's members start by their own reset policy there."""
        return self.new is None and self.old is not None

    @property
    def removes_unknown(self) -> bool:
        """It will be removed because nothing is known of it, not because it is known that there was none."""
        return self.removes and self.note == UNKNOWN_THEN

    @property
    def outside(self) -> bool:
        """The log does not have the new offset: members will apply their own reset policy."""
        return self.new is not None and self.log is not None and self.log.clamp(self.new) != self.new

    @property
    def risky(self) -> bool:
        """Members will not read on from an offset that was committed."""
        return self.removes or self.outside

    @property
    def old_lag(self) -> int | None:
        """None if nothing is committed or the log is not known."""
        return _lag(self.log, self.old_offset)

    @property
    def new_lag(self) -> int | None:
        """None if nothing will be committed or the log is not known."""
        return _lag(self.log, self.new)


@dataclass(frozen=True, slots=True)
class Problem:
    """A partition that cannot be planned, why, and how to fix it."""

    topic: str
    partition: int
    error: Error
    text: str


@dataclass(frozen=True, slots=True)
class Totals:
    """A plan in numbers. `lag_change`: records more (or less) to read, over partitions where both lags are known; None
    without such partitions. `outside`: new offsets that the log does not have; `unknown`: offsets to be removed because
    nothing is known of them, which `removed` includes."""

    partitions: int
    changed: int
    clamped: int
    removed: int
    lag_change: int | None
    outside: int = 0
    unknown: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """What one step writes: these offsets, and the partitions whose offset is removed."""

    records: tuple[OffsetRecord, ...]
    removed: tuple[TopicPartition, ...]


def _lag(log: Log | None, offset: int | None) -> int | None:
    return None if log is None or offset is None else log.lag(offset)
