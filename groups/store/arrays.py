"""Arrays as parameters of a statement: as texts in the form that Postgres reads arrays in.

An array of arrays must be rectangular, and the members of a group do not list the same number of protocols. For long
arrays it takes a fraction of the time that psycopg needs, which looks at each element several times; for short ones
psycopg's search for the type of the elements takes longer than they do.
"""

from __future__ import annotations

from collections.abc import Iterable


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
