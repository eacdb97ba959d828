"""The file that `kafka-consumer-groups --export` writes: CSV without a header, in one of two layouts.

`topic,partition,offset` if one group was exported, else `group,topic,partition,offset`. All errors are reported at
once, each with its line number; a file with a bad line is not used at all.
Source: offsets.md 13.5, items 5 and 6.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from kcoord.protocol.errors import Error, LineProblem, ProblemFields, ProtocolError
from kcoord.resets.strategies import TopicPartition, invalid

MAX_REPORTED = 1_000
"""The most bad lines that an error lists; beyond it, only their number."""
MAX_NAMED = 10
"""The most bad lines that the message of an error mentions."""

INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1
_NUMBER = re.compile(r"[0-9]{1,19}")
TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class BadLine:
    """An invalid line, and why. Lines count from 1."""

    line: int
    problem: str


@dataclass(frozen=True, slots=True)
class OffsetFile:
    """The contents of a file: offsets by partition by group. The group is "" if the layout has no groups."""

    groups: Mapping[str, Mapping[TopicPartition, int]]
    bad: tuple[BadLine, ...]

    @property
    def names_groups(self) -> bool:
        """The file has the layout with four columns."""
        return "" not in self.groups

    def refuse_bad_lines(self) -> None:
        """Raise INVALID_REQUEST naming every bad line, if there is any, or if the file has no lines."""
        if self.bad:
            told = "; ".join(f"line {bad.line}: {bad.problem}" for bad in self.bad[:MAX_NAMED])
            more = f"; and {len(self.bad) - MAX_NAMED} more" if len(self.bad) > MAX_NAMED else ""
            lines: list[LineProblem] = [{"line": bad.line, "problem": bad.problem} for bad in self.bad[:MAX_REPORTED]]
            fields: ProblemFields = {"field": "csv", "lines": lines, "bad_lines": len(self.bad)}
            raise ProtocolError(Error.INVALID_REQUEST, f"csv: {told}{more}", fields=fields)
        if not self.groups:
            raise invalid("csv", "csv: contains no offsets")

    def of_group(self, group_id: str) -> Mapping[TopicPartition, int]:
        """The lines that concern a group. Raises INVALID_REQUEST: a bad line anywhere, no line for this group."""
        self.refuse_bad_lines()
        if not self.names_groups:
            return self.groups[""]
        if group_id not in self.groups:
            raise invalid("csv", f"csv: contains no lines of group {group_id!r}; lines of other groups are ignored")
        return self.groups[group_id]


def read_offset_file(text: str) -> OffsetFile:
    """Read a whole file; blank lines and a byte order mark are skipped."""
    reader = _Reader()
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if line.strip():
            reader.read(number, line.removesuffix("\r"))
    return OffsetFile(reader.groups, tuple(reader.bad))


class _Reader:
    """Reads line by line, and keeps the state that the next line is checked against."""

    def __init__(self) -> None:
        self.groups: dict[str, dict[TopicPartition, int]] = {}
        self.bad: list[BadLine] = []
        self._columns = 0
        self._first = 0
        self._lines: dict[tuple[str, str, int], int] = {}

    def read(self, number: int, line: str) -> None:
        try:
            group_id, topic, partition, offset = self._fields(number, line)
            entry = group_id, topic, _bounded("partition", partition, INT32_MAX)
            value = _bounded("offset", offset, INT64_MAX)
            if entry in self._lines:
                raise ValueError(f"{topic}-{partition} is already listed in line {self._lines[entry]}")
        except ValueError as problem:
            self.bad.append(BadLine(number, str(problem)))
            return
        self._lines[entry] = number
        self.groups.setdefault(group_id, {})[entry[1:]] = value

    def _fields(self, number: int, line: str) -> tuple[str, str, str, str]:
        try:
            (fields,) = csv.reader([line], strict=True)
        except csv.Error as error:
            raise ValueError(f"not valid CSV: {error}") from None
        if len(fields) not in (3, 4):
            raise ValueError(f"{_count(fields)}; a line is topic,partition,offset or group,topic,partition,offset")
        if self._columns not in (0, len(fields)):
            raise ValueError(f"{_count(fields)} where line {self._first} has {self._columns}")
        if not self._columns:
            self._columns, self._first = len(fields), number
        group_id = fields.pop(0) if len(fields) == 4 else None
        if group_id is not None:
            check_group(group_id)
        topic, partition, offset = fields
        if not TOPIC.fullmatch(topic):
            raise ValueError(f"{topic[:50]!r} is not a valid topic name")
        return group_id or "", topic, partition, offset


def _count(fields: list[str]) -> str:
    return "1 field" if len(fields) == 1 else f"{len(fields)} fields"


def check_group(group_id: str) -> None:
    """The rule of http-api.md 1, for group ids."""
    if not 1 <= len(group_id) <= 255 or "/" in group_id:
        raise ValueError(f"{group_id[:50]!r} is not a valid group id: use 1 to 255 characters without '/'")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in group_id):
        raise ValueError("the group id contains a control character")


def _bounded(name: str, text: str, largest: int) -> int:
    if not _NUMBER.fullmatch(text) or int(text) > largest:
        raise ValueError(f"the {name} {text[:50]!r} is not a whole number from 0 to {largest}")
    return int(text)
