"""The history of a Kafka cluster's committed offsets, from a dump of `__consumer_offsets`, recorded as our own.

`manage.py import_offsets --from-kafka-dump FILE` reads the dump, shows its contents, and writes them. Every record
becomes a line of the journal of kind `import`, with its instant in Kafka, so every moment of the history can be
restored; the archive takes the lines like any others. The final offsets are committed with the current time, so the age
of an offset begins with the move. A group that already has a history here is refused: two histories of one group cannot
be told apart.

Kafka's own tools print three formats, told apart line by line:

- JSON objects of `kafka-console-consumer` with `OffsetsMessageFormatter` (Kafka 4; one may follow the other without a
  line end between them);
- `[group,topic,partition]::OffsetAndMetadata(…)` of the same formatter in earlier releases, where NULL is a tombstone;
- `kafka-dump-log --offsets-decoder`, with keys and values as JSON or, up to 3.x, as `offset_commit::group=…`.

Source: Kafka's `OffsetsMessageFormatter`, `GroupMetadataManager.OffsetsMessageFormatter` and `DumpLogSegments`;
docs/restore.md.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, OutputWrapper

from groups.core.model.commands import ResetOffsets
from groups.core.model.events import EventKind
from groups.core.model.replies import Done
from groups.engine.service import GroupService
from groups.store.locked import LockedGroup
from groups.topics import TopicService, partition_counts
from kcoord.access.audit.recording import Act
from kcoord.access.rights import Principal
from kcoord.config import Config
from kcoord.database.sql import queries
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.resets.offset_file import INT32_MAX, INT64_MAX, TOPIC, BadLine, check_group
from offsets.commits.store import OffsetStore
from offsets.core.days import DAY_MS
from offsets.core.types import ChangeKind, Millis, OffsetRecord, Provenance, TopicPartition
from offsets.journal.archived_offsets import ArchivedOffsets
from offsets.journal.events import offsets_event
from offsets.plans.store import PlanStore, chunks
from offsets.plans.table import HEADINGS, shown, table_row

NEWEST_VALUE = 4
"""The newest known version of offset values, from Kafka 4.x."""

OFFSET_KEYS = (0, 1)
"""Types of keys of committed offsets; all others are about groups and members."""

_TEXT = re.compile(r"\[(?P<group>.*),(?P<topic>[^,]*),(?P<partition>[^,\]]*)\]::(?P<value>.*)")
_VALUE = re.compile(
    r"OffsetAndMetadata\(offset=(?P<offset>\d+), ?leaderEpoch=Optional(?:Int)?(?:\.empty|\[(?P<epoch>\d+)\]),"
    r" ?metadata=(?P<metadata>.*), ?commitTimestamp(?:Ms)?=(?P<at>-?\d+),"
    r" ?expireTimestamp(?:Ms)?="
    r"(?:None|Optional(?:Long)?\.empty|(?:Some\(|Optional(?:Long)?\[)(?P<expires>-?\d+)[)\]])\)"
)
_GROUP_TEXT = re.compile(r".+::(?:GroupMetadata\(.*|NULL)")
_RECORD = re.compile(r"(?:\| ?)?(?:.*? )??key: (?P<key>.*)")
_OLD_KEY = re.compile(
    r"offset_commit::group=(?P<group>.*),partition=(?P<topic>.*)-(?P<partition>\d+) payload: (?P<value>.*)"
)
_OLD_VALUE = re.compile(r"offset=(?P<offset>\d+)(?:,metadata=(?P<metadata>.*))?")
_TIME = re.compile(r"(?:CreateTime|LogAppendTime): (\d+)")
_BATCH = re.compile(r"baseOffset: .* producerId: (?P<producer>-?\d+) .*isTransactional: (?P<transactional>true|false)")
_MARKER = re.compile(r"endTxnMarker: (COMMIT|ABORT)")
_NOISE = ("Dumping ", "Log starting offset:", "Starting offset:", "Processed a total of ")
_OTHER_KEYS = ("group_metadata::", "Unknown record type", "transaction_metadata::")

_JSON = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class KafkaOffset:
    """A record: an offset that was committed, or a tombstone (`offset` None). Instants in ms; None: not stated."""

    line: int
    group: str
    topic: str
    partition: int
    offset: int | None
    at: Millis | None
    leader_epoch: int = -1
    metadata: str = ""
    expire_timestamp: Millis | None = None


@dataclass(slots=True)
class KafkaDump:
    """The contents of a dump.

    `others`: records about groups and members, which are not used; `undone`: records of transactions that were aborted
    or had not ended.
    """

    records: list[KafkaOffset] = field(default_factory=list)
    bad: list[BadLine] = field(default_factory=list)
    others: int = 0
    undone: int = 0


def read_kafka_dump(lines: Iterable[str], group: str | None = None) -> KafkaDump:
    """Read all lines, also those after a bad one. `group`: keep only the records of this group."""
    reader = _Reader(group)
    for number, line in enumerate(lines, 1):
        reader.line = number
        try:
            reader.read(line.strip("\ufeff\r\n "))
        except ValueError as problem:
            reader.dump.bad.append(BadLine(number, str(problem)))
    reader.dump.undone += sum(map(len, reader.pending.values()))
    return reader.dump


class _Reader:
    """Reads line by line. `pending`: records of open transactions by producer."""

    def __init__(self, group: str | None) -> None:
        self.dump = KafkaDump()
        self.line = 0
        self.pending: dict[int, list[KafkaOffset]] = defaultdict(list)
        self._group = group
        self._producer: int | None = None
        """That of the batch, if it belongs to a transaction."""

    def read(self, line: str) -> None:
        """Raises ValueError with the problem of the line."""
        if not line or line.startswith(_NOISE):
            return
        if line.startswith("{"):
            for found in _objects(line):
                self._take_object(found.get("key"), found.get("value"), None)
        elif match := _TEXT.fullmatch(line):
            self._take_text(match)
        elif line.startswith("baseOffset:"):
            batch = _BATCH.match(line)
            self._producer = int(batch["producer"]) if batch and batch["transactional"] == "true" else None
        elif line.startswith(("|", "offset:", "key:")):
            self._take_record(line)
        elif _GROUP_TEXT.fullmatch(line):
            self.dump.others += 1
        else:
            raise ValueError(
                f"{line[:60]!r} is not a record printed by kafka-console-consumer with OffsetsMessageFormatter, or "
                "by kafka-dump-log with --offsets-decoder"
            )

    def _take_record(self, line: str) -> None:
        """A record of kafka-dump-log."""
        if " key: " not in line and (marker := _MARKER.search(line)):
            records = self.pending.pop(self._producer, []) if self._producer is not None else []
            if marker[1] == "COMMIT":
                self.dump.records += records
            else:
                self.dump.undone += len(records)
            return
        record = _RECORD.fullmatch(line)
        if record is None:
            raise ValueError("a record without a key: dump with --offsets-decoder (and without --print-data-log alone)")
        stamp = _TIME.search(line)
        at = None if stamp is None else int(stamp[1])
        key = record["key"]
        if old := _OLD_KEY.fullmatch(key):
            self._take_old(old, at)
        elif key.startswith(_OTHER_KEYS):
            self.dump.others += 1
        elif key.startswith("{"):
            found, end = _decoded(key)
            rest = key[end:].strip().removeprefix("payload:").strip()
            self._take_object(found, None if rest == "<DELETE>" else _whole(rest), at)
        else:
            raise ValueError(f"the key {key[:60]!r} is not a key printed by kafka-dump-log --offsets-decoder")

    def _take_old(self, match: re.Match[str], at: Millis | None) -> None:
        value = _OLD_VALUE.fullmatch(match["value"])
        if value is None and match["value"] != "<DELETE>":
            raise ValueError(f"the value {match['value'][:60]!r} is not a committed offset: is the line cut off?")
        self._take(
            match["group"],
            match["topic"],
            match["partition"],
            None if value is None else value["offset"],
            at=at,
            metadata=(value["metadata"] or "") if value else "",
        )

    def _take_text(self, match: re.Match[str]) -> None:
        value = _VALUE.fullmatch(match["value"])
        if value is None and match["value"] not in ("NULL", "null", "<DELETE>"):
            raise ValueError(f"the value {match['value'][:60]!r} is not a known value: is the line cut off?")
        key = match["group"], match["topic"], match["partition"]
        if value is None:
            self._take(*key, None)
            return
        self._take(
            *key,
            value["offset"],
            at=_number("commitTimestamp", value["at"]),
            leader_epoch=int(value["epoch"] or -1),
            metadata=value["metadata"],
            expires=value["expires"],
        )

    def _take_object(self, key: object, value: object, at: Millis | None) -> None:
        kind, data = _versioned("key", key, ("type", "version"))
        if kind not in OFFSET_KEYS:
            self.dump.others += 1
            return
        where = _field(data, "group"), _field(data, "topic"), _field(data, "partition")
        if value is None:
            self._take(*where, None, at=at)
            return
        version, stored = _versioned("value", value, ("version",))
        if not 0 <= version <= NEWEST_VALUE:
            raise ValueError(f"version {version} of an offset's value; this release reads up to {NEWEST_VALUE}")
        metadata = stored.get("metadata") or ""
        if not isinstance(metadata, str):
            raise ValueError("metadata is not a string")
        self._take(
            *where,
            _field(stored, "offset"),
            at=_number("commitTimestamp", _field(stored, "commitTimestamp")),
            leader_epoch=_number("leaderEpoch", stored.get("leaderEpoch", -1), -1, INT32_MAX),
            metadata=metadata,
            expires=stored.get("expireTimestamp"),
        )

    def _take(
        self,
        group: object,
        topic: object,
        partition: object,
        offset: object,
        *,
        at: Millis | None = None,
        leader_epoch: int = -1,
        metadata: str = "",
        expires: object = None,
    ) -> None:
        if not isinstance(group, str) or not isinstance(topic, str) or not TOPIC.fullmatch(topic):
            raise ValueError(f"{str(topic)[:50]!r} is not a valid topic name")
        if self._group is not None and group != self._group:
            return
        check_group(group)
        expire = -1 if expires is None else _number("expireTimestamp", expires, -1)
        record = KafkaOffset(
            self.line,
            group,
            topic,
            _number("partition", partition, 0, INT32_MAX),
            None if offset is None else _number("offset", offset),
            at,
            leader_epoch,
            metadata,
            None if expire < 0 else expire,
        )
        (self.dump.records if self._producer is None else self.pending[self._producer]).append(record)


def _objects(line: str) -> Iterator[Mapping[str, Any]]:
    start = 0
    while start < len(line):
        found, start = _decoded(line, start)
        yield found
        while start < len(line) and line[start].isspace():
            start += 1


def _decoded(text: str, start: int = 0) -> tuple[dict[str, Any], int]:
    try:
        found, end = _JSON.raw_decode(text, start)
    except ValueError as error:
        raise ValueError(f"not valid JSON: {error}; is the line cut off?") from None
    if not isinstance(found, dict):
        raise ValueError(f"{text[start:end][:60]!r} is not a JSON object")
    return found, end


def _whole(text: str) -> dict[str, Any]:
    found, end = _decoded(text)
    if text[end:].strip():
        raise ValueError(f"unexpected {text[end:][:60]!r} after the value")
    return found


def _versioned(what: str, found: object, names: tuple[str, ...]) -> tuple[int, Mapping[str, Any]]:
    """The version and the data of a key or a value."""
    if not isinstance(found, dict):
        raise ValueError(f"the {what} is missing")
    version = next((found[name] for name in names if name in found), None)
    data = found.get("data")
    number = _number(f"{names[0]} of the {what}", version, -1, INT32_MAX)
    if not isinstance(data, dict):
        raise ValueError(f"the {what} (version {number}) could not be read by the tool itself: {data!r}")
    return number, data


def _field(data: Mapping[str, Any], name: str) -> Any:
    if name not in data:
        raise ValueError(f"{name} is missing")
    return data[name]


def _number(name: str, found: object, least: int = 0, largest: int = INT64_MAX) -> int:
    try:
        if isinstance(found, bool) or not isinstance(found, (int, str)):
            raise ValueError
        number = int(found)
    except ValueError:
        raise ValueError(f"the {name} {str(found)[:50]!r} is not a whole number") from None
    if not least <= number <= largest:
        raise ValueError(f"the {name} {number} is not from {least} to {largest}")
    return number


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


TIMEOUT_SECONDS = 3_600.0
MOST_RECORDS = 5_000_000
"""About 2 GB of memory; import a larger dump a few groups at a time."""
MOST_BAD = 1_000
"""The most bad lines that are reported."""


@dataclass(frozen=True, slots=True)
class DumpImport:
    """What to import, and where to report it. `group` None: the whole dump."""

    path: Path
    group: str | None
    principal: Principal
    reason: str
    dry_run: bool
    skip_bad: bool
    config: Config
    out: OutputWrapper
    err: OutputWrapper

    def run(self) -> None:
        """Import. Raises CommandError: nothing is imported, or the groups named before it are."""
        dump = self._read()
        try:
            now = bridge.call(lambda runtime: runtime.get(KafkaImport).now())
            found = histories(dump.records, now)
            bridge.call(lambda runtime: runtime.get(KafkaImport).check(found), TIMEOUT_SECONDS)
            self._show(dump, found)
            if self.dry_run:
                self.err.write("dry run: nothing is imported")
                return
            bridge.call(lambda runtime: self._write(runtime, found), TIMEOUT_SECONDS)
        except ProtocolError as error:
            raise CommandError(f"{error.error.name}: {error.detail}") from error
        self._tell_about_age(found, now)

    def _read(self) -> KafkaDump:
        try:
            with self.path.open(encoding="utf-8") as lines:
                dump = read_kafka_dump(lines, self.group)
        except OSError as error:
            raise CommandError(f"{self.path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise CommandError(f"{self.path}: not UTF-8: {error.reason}") from error
        for bad in dump.bad[:MOST_BAD]:
            self.err.write(f"{self.path}:{bad.line}: {bad.problem}")
        count = "1 bad line" if len(dump.bad) == 1 else f"{len(dump.bad)} bad lines"
        if dump.bad and not self.skip_bad:
            raise CommandError(f"{self.path}: {count}; nothing is imported. Leave them out with --skip-bad-lines")
        if dump.bad:
            self.err.write(f"{self.path}: {count} left out")
        if not dump.records:
            of = "" if self.group is None else f" of the group {self.group!r}"
            raise CommandError(f"{self.path}: contains no committed offsets{of}")
        if len(dump.records) > MOST_RECORDS:
            raise CommandError(f"{self.path}: more than {MOST_RECORDS} records; import a group at a time with --group")
        return dump

    def _show(self, dump: KafkaDump, found: Mapping[str, GroupHistory]) -> None:
        self.out.write(table_row(HEADINGS))
        for name, history in found.items():
            for (topic, partition), record in sorted(history.current.items()):
                self.out.write(table_row((name, topic, str(partition), "-", shown(record.offset), "")))
        lines = sum(len(history.lines) for history in found.values())
        self.err.write(f"{len(found)} groups, {lines} lines of history")
        if dump.others:
            self.err.write(f"ignored {dump.others} records about groups and members")
        if dump.undone:
            self.err.write(f"ignored {dump.undone} records of transactions that were aborted or had not ended")
        if moved := sum(history.moved for history in found.values()):
            self.err.write(f"adjusted the time of {moved} lines to lie between that of the previous line and now")

    async def _write(self, runtime: Runtime, found: Mapping[str, GroupHistory]) -> None:
        for name, history in found.items():
            try:
                await runtime.get(KafkaImport).write(name, history, self.principal.name, self.reason)
            except ProtocolError as error:
                raise ProtocolError(error.error, f"{error.detail}; the groups named before it are imported") from error
            self.err.write(f"group {name}: imported; to undo it, delete the group")

    def _tell_about_age(self, found: Mapping[str, GroupHistory], now: int) -> None:
        days = self.config.int("offsets.journal.retention.days")
        old = sum(line.at < now - days * DAY_MS for history in found.values() for line in history.lines)
        if self.config.str("archive.path"):
            self.err.write("the next run of `manage.py archive` archives the history")
        elif old:
            self.err.write(
                f"{old} lines are older than {days} days: they are dropped from the journal unless "
                "KCOORD_ARCHIVE_PATH is set"
            )
