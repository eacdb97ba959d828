"""Values of commits and fetches. Instants are milliseconds; an offset is the next one to read.

Source: offsets.md 3 and 5; http-api.md "commit, fetch".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from kcoord.protocol.errors import Error

Millis = int
TopicPartition = tuple[str, int]

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
"""Bounds of offsets, and of what they are added up to."""

NO_OFFSET = -1
"""The committed offset of a partition on which nothing was committed."""


@dataclass(frozen=True, slots=True)
class OffsetCommitReply:
    """The group's answer to a whole commit; the errors of partitions are those of the `Commit`."""

    error: Error
    session_deadline: Millis | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class OffsetFetch:
    """OffsetFetch, version 9, for one group. `topics` None: everything committed.

    `denied` holds topics the caller may not describe: refused where named, left out of a fetch of everything.

    """

    group_id: str
    member_id: str | None = None
    member_epoch: int = -1
    topics: tuple[tuple[str, tuple[int, ...]], ...] | None = None
    require_stable: bool = False
    denied: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class FetchedOffset:
    """The committed offset of one partition; NO_OFFSET and error NONE if nothing is committed."""

    topic: str
    partition: int
    committed_offset: int = NO_OFFSET
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp: Millis | None = None
    error: Error = Error.NONE

    @classmethod
    def stored(
        cls,
        topic: str,
        partition: int,
        committed_offset: int,
        leader_epoch: int,
        metadata: str,
        commit_timestamp: Millis,
    ) -> FetchedOffset:
        """The offset in a row."""
        return cls(topic, partition, committed_offset, leader_epoch, metadata, commit_timestamp)


@dataclass(frozen=True, slots=True)
class OffsetFetchReply:
    """`error` concerns the whole request; a group that does not exist is not an error (offsets.md 5 row 5)."""

    error: Error
    offsets: tuple[FetchedOffset, ...] = ()
    detail: str = ""


@dataclass(frozen=True, slots=True)
class OffsetRecord:
    """One row to write: what is stored for an accepted partition commit (offsets.md 3.6).

    `commit_timestamp` None: the time of writing.
    """

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    expire_timestamp: Millis | None = None
    commit_timestamp: Millis | None = None


class ChangeKind(str, Enum):
    """The kind of change that a line of the journal records.

    COMMIT: a member or a simple consumer. TXN_COMMIT: a transaction that ended. RESET: a plan that was applied, or
    start offsets. RESTORE: a plan that was undone. IMPORT: a file. ITEMS_BEGIN, ITEMS_DONE, ITEMS_DEAD: of share
    groups, which have no committed offsets (share.md 8). The others removed offsets.
    """

    COMMIT = "commit"
    TXN_COMMIT = "txn_commit"
    RESET = "reset"
    RESTORE = "restore"
    IMPORT = "import"
    DELETE = "delete"
    EXPIRE = "expire"
    GROUP_DELETE = "group_delete"
    TOPIC_DELETE = "topic_delete"
    ITEMS_BEGIN = "items_begin"
    ITEMS_DONE = "items_done"
    ITEMS_DEAD = "items_dead"


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a change of offsets comes from, as recorded in the journal.

    `principal`: name of the token or account of the caller; "" for the service itself. `plan_id`: a UUID.
    """

    kind: ChangeKind
    principal: str = ""
    member_id: str = ""
    generation_id: int = -1
    client_id: str = ""
    transactional_id: str | None = None
    plan_id: str | None = None


PartitionCounts = Mapping[str, int]
"""Topic name -> number of partitions; topics that do not exist are absent."""
