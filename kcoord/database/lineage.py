"""The migrations of a database: whether this release can migrate it, and whether anything has to be prepared.

`is_prepared` costs a tenth of Django's start, for all starts after the first. It compares the migration files of the
installed applications with the migrations applied to the database, and looks for an admin account or a token. If it is
not sure it says no, and the whole preparation runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

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


WAS_MIGRATED = "select to_regclass('django_migrations') is not null"
APPLIED = "select app, name from django_migrations"
HAS_ACCESS = "select exists (select from auth_user where is_superuser) or exists (select from kcoord_apitoken)"


def is_prepared(conninfo: str, installed_apps: Iterable[str]) -> bool:
    """Every migration is applied, none is unknown, and an account or token exists. False also if this is uncertain."""
    try:
        with psycopg.connect(conninfo, connect_timeout=3) as connection:
            if applied_migrations(connection) != set(migration_files(installed_apps)):
                return False
            row = connection.execute(HAS_ACCESS).fetchone()
            return row is not None and bool(row[0])
    except psycopg.Error:
        return False  # no such table, or no database: the preparation finds and reports it


def applied_migrations(connection: psycopg.Connection[Any]) -> set[tuple[str, str]]:
    """(application, name) of each migration of a database; none in a new one."""
    if connection.execute(WAS_MIGRATED).fetchone() != (True,):
        return set()  # querying the table would leave an ERROR in the Postgres log
    return {(str(app), str(name)) for app, name in connection.execute(APPLIED)}


def migration_files(installed_apps: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(label, name) of each migration on disk. A label is assumed to be the last part of the package's name."""
    for entry in installed_apps:
        package = entry.partition(".apps.")[0]
        spec = find_spec(package)
        for place in (spec.submodule_search_locations or []) if spec else []:
            for path in Path(place, "migrations").glob("[!_]*.py"):
                yield package.rpartition(".")[2], path.stem
