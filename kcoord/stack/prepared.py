"""Whether anything has to be prepared: a check that costs a tenth of Django's start, for all starts after the first.

It compares the migration files of the installed applications with the migrations applied to the database, and looks for
an admin account or a token. If it is not sure it says no, and the whole preparation runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

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
