"""The rules of transactional commits: who may act for a transactional id, and which pending offset prevails.

A producer is the pair of id and epoch that a transactional id is used with. The producer with the larger epoch has
taken over: what its predecessor left pending is aborted, and what the predecessor still sends is refused (KIP-98).
A client of transaction version 2 gets a new epoch with the end of each transaction, so that nothing of an earlier one
can become part of a later one (KIP-890). The end that was written last is remembered: its client may have to send it
again, and has the epoch of before.
Source: offsets.md 4, and 5 for what an open transaction means to a fetch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from kcoord.protocol.errors import Error, ProtocolError
from offsets.core.types import FetchedOffset, Millis, TopicPartition

MAX_PRODUCER_EPOCH = 32_767
"""The largest epoch of a producer, which is a 16-bit number in Kafka."""


@dataclass(frozen=True, slots=True)
class Producer:
    """The producer that uses a transactional id."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """The producer of a transactional id, and what it has under way.

    `opened_at` (ms): since when a transaction is open; None: no transaction is open. `groups`: whose offsets are in it.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    opened_at: Millis | None
    groups: Sequence[str]


def before_epochs(error: Error) -> Error:
    """The error for clients of TxnOffsetCommit below version 6, which do not know member epochs (offsets.md 4.1)."""
    is_newer = error in (Error.GROUP_ID_NOT_FOUND, Error.STALE_MEMBER_EPOCH)
    return Error.ILLEGAL_GENERATION if is_newer else error


class Standing(Enum):
    """How a producer's identity relates to the one registered for its transactional id."""

    NEW = "nobody was registered"
    CURRENT = "it is the one registered"
    SUCCESSOR = "it takes over from the one registered"


@dataclass(frozen=True, slots=True)
class PendingOffset:
    """An offset of an open transaction, and what else was committed on its partition. `group`: key of the group's row.

    `record_offset` says when it was written, `committed_record_offset` when the committed offset was; None: no
    committed offset. `opened_at` (ms): when its transaction first wrote to the partition.
    """

    group: int
    topic: str
    partition: int
    record_offset: int
    committed_record_offset: int | None
    opened_at: Millis


@dataclass(frozen=True, slots=True)
class TransactionEnd:
    """The result of an end marker. `ended`: offsets that were pending; `committed`: those of them committed now.

    The others were dropped: the marker said abort, or another commit came after they were written. `following`: the
    producer of the next transaction, if the end gave one.
    """

    ended: int = 0
    committed: int = 0
    following: Producer | None = None


@dataclass(frozen=True, slots=True)
class LastEnd:
    """The last end that gave its producer a new epoch: whose it was, and what it said (offsets.md 4.5)."""

    producer_id: int
    producer_epoch: int
    committed: bool

    def is_of(self, producer: Producer, *, committed: bool) -> bool:
        """Whether the end that `producer` sends is this one, sent again.

        Raises ProtocolError INVALID_TXN_STATE if it says the opposite.
        """
        if (self.producer_id, self.producer_epoch) != (producer.producer_id, producer.producer_epoch):
            return False
        if self.committed is not committed:
            raise ProtocolError(
                Error.INVALID_TXN_STATE,
                f"the transaction of epoch {self.producer_epoch} has ended, and "
                f"{'was committed' if self.committed else 'was aborted'}; begin a new one",
            )
        return True


def standing(registered: Producer | None, producer: Producer) -> Standing:
    """How `producer` relates to `registered`, the one its transactional id was last used with.

    Raises ProtocolError INVALID_PRODUCER_EPOCH for one that was superseded, INVALID_PRODUCER_ID_MAPPING for one whose
    id does not belong to the transactional id.
    """
    if registered is None:
        return Standing.NEW
    if producer.producer_id != registered.producer_id:
        raise foreign(producer)
    if producer.producer_epoch < registered.producer_epoch:
        raise ProtocolError(
            Error.INVALID_PRODUCER_EPOCH,
            f"producer {producer.producer_id} of transactional id {producer.transactional_id!r} is past epoch "
            f"{producer.producer_epoch}: another producer took over, or the transaction was open for too long. Its "
            "pending offsets were aborted; stop, or initialize the transactional id and begin again",
        )
    return Standing.CURRENT if producer.producer_epoch == registered.producer_epoch else Standing.SUCCESSOR


def foreign(producer: Producer) -> ProtocolError:
    """The error for a producer id that belongs to another transactional id, or no longer to this one."""
    return ProtocolError(
        Error.INVALID_PRODUCER_ID_MAPPING,
        f"producer_id {producer.producer_id} does not belong to transactional id {producer.transactional_id!r}: "
        "initialize the transactional id, and use the producer_id and producer_epoch of the response",
    )


def successor(registered: Producer) -> Producer | None:
    """The producer that fences `registered`; None: its epochs are exhausted, so one with a new id does (KIP-360)."""
    if registered.producer_epoch >= MAX_PRODUCER_EPOCH:
        return None
    return replace(registered, producer_epoch=registered.producer_epoch + 1)


def prevailing(pending: Iterable[PendingOffset]) -> list[PendingOffset]:
    """The pending offsets that become committed when their transaction commits (offsets.md 4.3).

    Of a plain and a transactional commit the one written later wins, whenever the marker arrives.
    """
    return [
        offset
        for offset in pending
        if offset.committed_record_offset is None or offset.record_offset > offset.committed_record_offset
    ]


def overdue(pending: Iterable[PendingOffset], now: Millis, timeout_ms: Millis) -> bool:
    """Whether the transaction of these offsets has been open for `timeout_ms` or longer."""
    return any(now - offset.opened_at >= timeout_ms for offset in pending)


def stable(
    offsets: Iterable[FetchedOffset], pending: Collection[TopicPartition], wanted: Sequence[TopicPartition] | None
) -> list[FetchedOffset]:
    """What a fetch with `require_stable` finds: UNSTABLE_OFFSET_COMMIT if a transaction is open (offsets.md 5).

    `wanted` None: a fetch of everything committed, which leaves out partitions that are only pending; if they are named
    they are reported.
    """
    found = {(offset.topic, offset.partition): offset for offset in offsets}
    keys = list(found) if wanted is None else [key for key in wanted if key in found or key in pending]
    return [FetchedOffset(*key, error=Error.UNSTABLE_OFFSET_COMMIT) if key in pending else found[key] for key in keys]
