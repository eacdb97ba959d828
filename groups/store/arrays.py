"""Arrays as parameters of a statement, in the forms that Postgres reads arrays in: as texts, or as bytes.

An array of arrays must be rectangular, and the members of a group do not list the same number of protocols. For long
arrays it takes a fraction of the time that psycopg needs, which looks at each element several times; for short ones
psycopg's search for the type of the elements takes longer than they do.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterable, Sequence
from typing import ClassVar

from psycopg import adapters
from psycopg.adapt import Dumper
from psycopg.pq import Format

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


def text_array(values: Iterable[str | None]) -> str:
    """What Postgres reads as text[]."""
    return _array(None if value is None else value.replace("\\", "\\\\").replace('"', '\\"') for value in values)


def number_array(values: Iterable[int | None]) -> str:
    """What Postgres reads as int[] or bigint[], or of truth values as bool[]."""
    return "{" + ",".join("null" if value is None else str(value) for value in values) + "}"


def bytea_array(values: Iterable[bytes | None]) -> str:
    """What Postgres reads as bytea[]."""
    return _array(None if value is None else f"\\\\x{value.hex()}" for value in values)


def _array(quoted: Iterable[str | None]) -> str:
    return "{" + ",".join("null" if value is None else f'"{value}"' for value in quoted) + "}"
