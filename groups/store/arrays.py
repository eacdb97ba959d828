"""Arrays of different lengths as parameters of one statement: as texts in the form that Postgres reads arrays in.

An array of arrays must be rectangular, and the members of a group do not list the same number of protocols.
"""

from __future__ import annotations

from collections.abc import Iterable


def text_array(values: Iterable[str]) -> str:
    """What Postgres reads as text[]."""
    return _array(value.replace("\\", "\\\\").replace('"', '\\"') for value in values)


def bytea_array(values: Iterable[bytes]) -> str:
    """What Postgres reads as bytea[]."""
    return _array(f"\\\\x{value.hex()}" for value in values)


def _array(quoted: Iterable[str]) -> str:
    return "{" + ",".join(f'"{value}"' for value in quoted) + "}"
