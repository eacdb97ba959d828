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
    if last := _ahead(applied, known):
        return (
            f"the database was migrated by a newer release ({last} is unknown here); start that release, or "
            "restore a backup made before the migration"
        )
    return None


def newer(applied: Collection[Migration], known: Collection[Migration]) -> str:
    """What is said by a process of this release that runs on a database of a newer one, as in an upgrade; "": it is
    not newer. It serves: migrations only add (CONTRIBUTING.md, Migrations).
    """
    last = _ahead(applied, known)
    return last and (
        f"the database was migrated by a newer release ({last} is unknown here): this process serves, but replace it "
        "by that release before anybody uses what is new there"
    )


def _ahead(applied: Collection[Migration], known: Collection[Migration]) -> str:
    return max((f"{app}.{name}" for app, name in set(applied) - set(known)), default="")
