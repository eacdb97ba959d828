"""Whether a database can be migrated by this release, by the names of the migrations that were applied to it."""

from __future__ import annotations

from collections.abc import Collection

Migration = tuple[str, str]
"""Application and name."""

UNRELEASED: frozenset[Migration] = frozenset({("groups", "0002_cascades"), ("kcoord", "0002_pgmq")})
"""Applied to every database from before release 0.2.0. No migration may have one of these names."""

TOO_OLD = (
    "the database is from before the first release (0.2.0) and cannot be migrated; start with a new KCOORD_DATA_DIR or "
    "an empty database (docs/operations/backup.md, Upgrade, says how to keep committed offsets)"
)


def too_old(applied: Collection[Migration]) -> str | None:
    """Why a database from before the first release cannot be used, and the remedy; None: it is not that old."""
    return None if UNRELEASED.isdisjoint(applied) else TOO_OLD


def not_migratable(applied: Collection[Migration], known: Collection[Migration]) -> str | None:
    """Why this release may not migrate a database, and the remedy; None: it may. `known`: its own migrations."""
    if problem := too_old(applied):
        return problem
    ahead = sorted(set(applied) - set(known))
    if not ahead:
        return None
    app, name = ahead[-1]
    return (
        f"the database was migrated by a newer release ({app}.{name} is unknown here); start that release, or "
        "restore a backup made before the migration"
    )
