"""The history of a Kafka cluster's committed offsets, recorded as this coordinator's own.

Every record becomes a line of the journal of kind `import`, with its instant in Kafka, so every moment of the history
can be restored; the archive takes the lines like any others. The final offsets are committed with the current time, so
the age of an offset begins with the move. A group that already has a history here is refused: two histories of one
group cannot be told apart.

Source: docs/restore.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from groups.catalogue.topics import TopicService, partition_counts
from groups.core.model.commands import ResetOffsets
from groups.core.model.events import EventKind
from groups.core.model.replies import Done
from groups.engine.service import GroupService
from groups.store.locked import LockedGroup
from kcoord.audit.recording import Act
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.sql import queries
from offsets.core.types import ChangeKind, Millis, OffsetRecord, Provenance, TopicPartition
from offsets.journal.archived_offsets import ArchivedOffsets
from offsets.journal.events import offsets_event
from offsets.kafka.dump import KafkaOffset
from offsets.plans.store import PlanStore, chunks
from offsets.store import OffsetStore

Q = queries("offsets")

MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """A line to be written to the journal. `offset` None: it was removed. `at` in ms."""

    at: Millis
    record: KafkaOffset


@dataclass(slots=True)
class GroupHistory:
    """A group in a dump: `lines` in the order of the dump, `current` what is committed after them."""

    lines: list[HistoryLine] = field(default_factory=list)
    current: dict[TopicPartition, KafkaOffset] = field(default_factory=dict)
    moved: int = 0
    """Lines whose instant was older than that of the line before, or in the future; they got one in between."""


def histories(records: Iterable[KafkaOffset], now: Millis) -> dict[str, GroupHistory]:
    """The records by group. Tombstones of offsets that the dump never shows as committed are skipped.

    Time does not run backwards on a partition, and no line is in the future: `now` in ms. A tombstone without an
    instant gets that of the group's previous line.
    """
    found: dict[str, GroupHistory] = {}
    last: dict[tuple[str, str, int], Millis] = {}
    newest: dict[str, Millis] = {}
    for record in records:
        group = found.setdefault(record.group, GroupHistory())
        key = record.topic, record.partition
        if record.offset is None and group.current.pop(key, None) is None:
            continue
        said = newest.get(record.group, 0) if record.at is None else record.at
        at = min(max(said, last.get((record.group, *key), 0)), now)
        group.moved += at != said
        group.lines.append(HistoryLine(at, record))
        if record.offset is not None:
            group.current[key] = record
        last[record.group, *key] = at
        newest[record.group] = max(newest.get(record.group, 0), at)
    return {name: group for name, group in found.items() if group.lines}


class KafkaImport:
    """Writes histories. Methods may raise COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._groups = runtime.get(GroupService)
        self._topics = runtime.get(TopicService)
        self._offsets = runtime.get(OffsetStore)
        self._store = runtime.get(PlanStore)
        self._archived = runtime.get(ArchivedOffsets)

    async def now(self) -> Millis:
        """The time of the database (ms)."""
        return await self._store.now()

    async def check(self, found: Mapping[str, GroupHistory]) -> None:
        """Raise ProtocolError unless all groups can be imported: without members or history, with topics that exist."""
        await self._check_topics(found.values())
        now = await self.now()
        for group_id in found:
            group = (await self._groups.describe(group_id)).group
            if group is not None and group.members:
                members = len(group.members)
                raise ProtocolError(
                    Error.NON_EMPTY_GROUP, f"group {group_id}: it has {members} members; stop them first"
                )
            async with self._db.connection() as connection:
                pk = await self._store.group_key(group_id)
                parameters = {"group_id": group_id, "group": -1 if pk is None else pk}
                known = await self._db.value(connection, Q.has_history, parameters)
            if known or await self._archived.at(group_id, now):
                raise _has_history(group_id)

    async def write(self, group_id: str, history: GroupHistory, principal: str, reason: str) -> None:
        """Write a group's history and commit what it ends with, in one transaction. Raises as `check` does."""
        current = [_committed(record) for record in history.current.values()]

        async def write(locked: LockedGroup) -> ProtocolError | None:
            parameters = {"group_id": group_id, "group": locked.pk}
            if await self._db.value(locked.connection, Q.has_history, parameters):
                return _has_history(group_id)
            for some in chunks(history.lines):
                lines = {
                    "group_id": group_id,
                    "kind": ChangeKind.IMPORT.value,
                    "principal": principal,
                    **_columns(some),
                }
                await locked.connection.execute(Q.import_history.encode(), lines)
            for records in chunks(current):
                await self._offsets.write(locked, records, Provenance(ChangeKind.IMPORT, principal=principal))
            after = {"offsets": len(current), "history": len(history.lines)}
            act = Act("offsets.import", "group", group_id, None, after, reason or "from Kafka", principal=principal)
            locked.acts.append(act)
            touched = list(history.current)
            event = offsets_event(
                EventKind.OFFSETS_RESET, locked.group, touched, principal=principal, reason=reason or "from Kafka"
            )
            locked.events.append(event)
            return None

        outcome: Any = await self._groups.execute(ResetOffsets(group_id, create=True), write)
        if isinstance(outcome, ProtocolError):
            raise outcome
        if isinstance(outcome, Done):
            raise ProtocolError(outcome.error, f"group {group_id}: {outcome.detail}")

    async def _check_topics(self, found: Iterable[GroupHistory]) -> None:
        wanted = {key for history in found for key in history.current}
        counts = partition_counts(await self._topics.current(), {topic for topic, _ in wanted})
        missing = sorted(key for key in wanted if key[1] >= counts.get(key[0], 0))
        if missing:
            told = ", ".join(f"{topic}-{partition}" for topic, partition in missing[:MOST_NAMED])
            more = f" and {len(missing) - MOST_NAMED} more" if len(missing) > MOST_NAMED else ""
            raise ProtocolError(
                Error.UNKNOWN_TOPIC_OR_PARTITION,
                f"{told}{more}: does not exist; create the topics (or add partitions) first",
            )


def _has_history(group_id: str) -> ProtocolError:
    return ProtocolError(
        Error.INVALID_REQUEST,
        f"group {group_id}: it already has offsets or a commit history, which would be mixed with the dump; import "
        "other groups with --group, or only its offsets from a CSV file",
    )


def _committed(record: KafkaOffset) -> OffsetRecord:
    assert record.offset is not None, "tombstones are not current"
    return OffsetRecord(
        record.topic,
        record.partition,
        record.offset,
        leader_epoch=record.leader_epoch,
        metadata=record.metadata,
        expire_timestamp=record.expire_timestamp,
    )


def _columns(lines: Sequence[HistoryLine]) -> dict[str, list[Any]]:
    return {
        "at": [line.at for line in lines],
        "topic": [line.record.topic for line in lines],
        "partition": [line.record.partition for line in lines],
        "committed_offset": [line.record.offset for line in lines],
        "leader_epoch": [line.record.leader_epoch for line in lines],
        "metadata": [line.record.metadata for line in lines],
        "expire_timestamp": [line.record.expire_timestamp for line in lines],
    }
