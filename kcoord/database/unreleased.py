"""Databases that were made before the first release, 0.2.0: their schema was another, and cannot be upgraded.

Their migrations begin with the same names as those of a release, so Django itself would take such a database for one
whose migrations are all applied.
"""

from __future__ import annotations

from collections.abc import Container

MARK = ("groups", "0002_cascades")
"""A migration that only they have; the name must not be used again."""
REFUSAL = (
    "this database was made before release 0.2.0 and cannot be upgraded: start with an empty one (another "
    "KCOORD_DATA_DIR, or another database in KCOORD_DATABASE_URL)"
)


def is_schema_of(applied: Container[tuple[str, str]]) -> bool:
    """Whether the migrations, pairs of application and name, are those of a database from before the first release."""
    return MARK in applied
