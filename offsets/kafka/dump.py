"""Dumps of `__consumer_offsets`, as Kafka's own tools print them: the history of committed offsets.

Three formats, told apart line by line:

- JSON objects of `kafka-console-consumer` with `OffsetsMessageFormatter` (Kafka 4; one may follow the other without a
  line end between them);
- `[group,topic,partition]::OffsetAndMetadata(…)` of the same formatter in earlier releases, where NULL is a tombstone;
- `kafka-dump-log --offsets-decoder`, with keys and values as JSON or, up to 3.x, as `offset_commit::group=…`.

Source: Kafka's `OffsetsMessageFormatter`, `GroupMetadataManager.OffsetsMessageFormatter` and `DumpLogSegments`.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kcoord.resets.offset_file import INT32_MAX, INT64_MAX, TOPIC, BadLine, check_group
from offsets.core.types import Millis

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
