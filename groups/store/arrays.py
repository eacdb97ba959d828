"""Arrays as parameters of a statement: as texts in the form that Postgres reads arrays in.

An array of arrays must be rectangular, and the members of a group do not list the same number of protocols. For long
arrays it takes a fraction of the time that psycopg needs, which looks at each element several times.
"""

from __future__ import annotations

from collections.abc import Iterable


def text_array(values: Iterable[str]) -> str:
    """What Postgres reads as text[]."""
    return _array(value.replace("\\", "\\\\").replace('"', '\\"') for value in values)


def number_array(values: Iterable[int | None]) -> str:
    """What Postgres reads as int[] or bigint[]."""
    return "{" + ",".join("null" if value is None else str(value) for value in values) + "}"


def bytea_array(values: Iterable[bytes]) -> str:
    """What Postgres reads as bytea[]."""
    return _array(f"\\\\x{value.hex()}" for value in values)


def _array(quoted: Iterable[str]) -> str:
    return "{" + ",".join(f'"{value}"' for value in quoted) + "}"
