"""A group as it is stored: the columns of its row, what is read with it under the lock, and arrays of many rows.

An array is sent in the forms that Postgres reads: as text, or as bytes. An array of arrays must be rectangular, and the
members of a group do not list the same number of protocols. For long arrays it takes a fraction of the time that
psycopg needs, which looks at each element several times; for short ones psycopg's search for the type of the elements
takes longer than they do.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

import msgspec
from psycopg import adapters
from psycopg.adapt import Dumper
from psycopg.pq import Format

from groups.core.model.group import Group, wake_at
from groups.core.model.types import Hold, Millis

_HEAD = struct.Struct(">5i")
"""Dimensions, whether there are nulls, the type of the elements, how many there are, the number of the first."""
_WORD = 4


class _Numbers(bytes):
    """An array of numbers, of a size that `code` says, as bytes: for columns of hundreds, a quarter of the time."""

    code: ClassVar[str]
    oid: ClassVar[int]

    @classmethod
    def of(cls, values: Sequence[int]) -> _Numbers:
        """Raises OverflowError for a number that is too large."""
        content = array(cls.code, values)
        if sys.byteorder == "little":
            content.byteswap()
        words, step = array("i", content.tobytes()), 1 + content.itemsize // _WORD
        found = array("i", content.itemsize.to_bytes(_WORD, "big") * (step * len(values)))  # each after its length
        for at in range(1, step):
            found[at::step] = words[at - 1 :: step - 1]
        return cls(_HEAD.pack(1, 0, cls.oid, len(values), 1) + found.tobytes())


class Int4Array(_Numbers):
    """What Postgres reads as int[]."""

    code, oid = "i", adapters.types["int4"].oid


class Int8Array(_Numbers):
    """What Postgres reads as bigint[]."""

    code, oid = "q", adapters.types["int8"].oid


class _NumbersDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: _Numbers) -> bytes:
        return obj


class _Int4Dumper(_NumbersDumper):
    oid = adapters.types["int4"].array_oid


class _Int8Dumper(_NumbersDumper):
    oid = adapters.types["int8"].array_oid


adapters.register_dumper(Int4Array, _Int4Dumper)
adapters.register_dumper(Int8Array, _Int8Dumper)


def keys(pairs: Iterable[tuple[int, str]]) -> dict[str, str]:
    """The parameters of statements about members: the key of the group's row and the id of each."""
    ids, member_ids = zip(*pairs, strict=True)
    return {"id": number_array(ids), "member_id": text_array(member_ids)}


def as_json(rows: Sequence[Mapping[str, object]]) -> str:
    """What `json_populate_recordset` reads: columns that are missing are null, bytes are `bytea_text`."""
    return msgspec.json.encode(rows).decode()


def bytea_text(value: bytes) -> str:
    """What Postgres reads as bytea."""
    return f"\\x{value.hex()}"


def text_array(values: Iterable[str | None]) -> str:
    """What Postgres reads as text[]."""
    return _array(None if value is None else value.replace("\\", "\\\\").replace('"', '\\"') for value in values)


def number_array(values: Iterable[int | str | None]) -> str:
    """What Postgres reads as int[] or bigint[], or of truth values as bool[]."""
    return "{" + ",".join("null" if value is None else str(value) for value in values) + "}"


def bytea_array(values: Iterable[bytes | None]) -> str:
    """What Postgres reads as bytea[]."""
    return _array(None if value is None else f"\\\\x{value.hex()}" for value in values)


def _array(quoted: Iterable[str | None]) -> str:
    return "{" + ",".join("null" if value is None else f'"{value}"' for value in quoted) + "}"


class GroupRow(NamedTuple):
    """The columns of `lock_group`. What belongs to the other protocol has its default or is None."""

    id: int
    group_id: str
    version: int
    type: str
    state: str
    previous_state: str
    state_since: Millis
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    leader_id: str | None
    new_member_added: bool
    join_deadline: Millis | None
    join_delay_ms: Millis | None
    join_remaining_ms: Millis | None
    sync_deadline: Millis | None
    wake_at: Millis | None
    assignment_epoch: int
    assignment_timestamp: Millis
    metadata_hash: str
    metadata_version: int
    has_resolution: bool
    jobs: dict[str, Any] | None
    held_until: Millis | None
    held_by: str | None
    hold_reason: str | None
    version_tag: UUID
    partition: int | None
    armed_gap: int

    @property
    def hold(self) -> Hold | None:
        """Who keeps members out, and until when."""
        if self.held_until is None:
            return None
        return Hold(self.held_until, self.held_by or "", self.hold_reason or "")


def group_columns(group: Group) -> dict[str, Any]:
    """Columns of a group's row that both protocols have, and those of the others empty."""
    hold = group.hold
    return {
        "group_id": group.group_id,
        "state": group.state.value,
        "previous_state": "",
        "state_since": group.state_since,
        "new_member_added": False,
        "assignment_epoch": 0,
        "assignment_timestamp": 0,
        "metadata_hash": "",
        "metadata_version": -1,
        "armed_gap": group.armed_gap,
        "held_until": hold.until if hold else None,
        "held_by": hold.by if hold else None,
        "hold_reason": hold.reason if hold else None,
    }


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who runs the timers of a coordinator partition, read under the lock of a group.

    `now`: the time then. `exists`: the group does, if only under the lock of another transaction. `active`: the
    partition has an owner with enough left of its lease for the transaction to end, so something may expire. `owner`:
    the incarnation of a node, None for nobody. See `Env` for `gap` and `sessions_known_until`.
    """

    now: Millis
    exists: bool
    active: bool
    owner: int | None
    epoch: int
    gap: int
    sessions_known_until: Millis


class Written(NamedTuple):
    """What is written of a group besides its header: the key of its row, the group, and what changed."""

    pk: int
    after: Any
    changes: Any


class Change(NamedTuple):
    """A group under its lock, None if there was none, and what a decision at `now` made of it."""

    before: Stored
    after: Group | None
    now: Millis


@dataclass(slots=True)
class Writing:
    """What is to be written of a group. `header`: the columns of its row; `touched`: only its wake-up and version."""

    kept: Stored
    changes: Any = None
    header: dict[str, Any] | None = None
    touched: bool = False


class OwnerLapsed(Exception):
    """Something expired in a transaction that took so long that nobody ran the timers any longer: start it over."""


class GroupAppeared(Exception):
    """Another process created the group between our look and our insert: start the transaction over."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A group with the key, the version and the version tag of its row (None, 0, None: no row).

    `wake_at` is that of the row: never later than the earliest deadline of the group, and often earlier.
    """

    pk: int | None
    version: int
    version_tag: UUID | None
    wake_at: Millis | None
    group: Group | None

    @property
    def due(self) -> Millis | None:
        """The earliest deadline of the group."""
        return wake_at(self.group)


MISSING = Stored(pk=None, version=0, version_tag=None, wake_at=None, group=None)
