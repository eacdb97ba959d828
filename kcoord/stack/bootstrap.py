"""Before the services start: the database, its migrations, the first admin account and API token.

A separate process (`python -m kcoord.stack.bootstrap`), so that the supervisor stays small and Django's start
overlaps with that of Postgres. It does only what is missing, under a lock in the database, so that several
stacks on one database may start at once; if nothing is missing it ends without starting Django. A problem is one
line and exit status 2.
"""

from __future__ import annotations

import errno
import os
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from kcoord.database.address import pgdata
from kcoord.database.lineage import applied_migrations, is_prepared, not_migratable, too_old
from kcoord.stack import owner
from kcoord.stack.embedded import SUPERUSER
from kcoord.stack.preflight import EXIT_STATUS, StartProblem, one_line

STARTING_SECONDS = 120.0
"""How long Postgres may take to start; after a crash it replays its log first."""

LOCK_KEY = 0x6B636F6F7264
"""Advisory lock held while preparing the database: "kcoord" in ASCII."""

RIGHTS = """
select current_user, current_database(), pg_get_userbyid(datdba), current_schema(),
       has_database_privilege(current_database(), 'CREATE'),
       coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)
  from pg_database where datname = current_database()
"""

ADMIN = "admin"
TOKEN_NAME = "first start"  # noqa: S105 - a name


def main() -> int:
    """Prepare the database of the current settings; returns the exit status."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kcoord.settings")
    import django
    from django.conf import settings

    try:
        if not settings.KCOORD.str("database.url"):
            if not (pgdata(settings.DATA_DIR) / "PG_VERSION").is_file():
                django.setup()  # the first start, which needs it: while initdb runs
            admin = make_conninfo(settings.CONNINFO, dbname="postgres", user=SUPERUSER)
            wait_for(admin, STARTING_SECONDS)
            owner.prepare(admin, str(conninfo_to_dict(settings.CONNINFO)["dbname"]))
        check()
        if not is_prepared(settings.CONNINFO, settings.INSTALLED_APPS):
            prepare(settings.CONNINFO, settings.DATA_DIR)
    except StartProblem as problem:
        print(problem, file=sys.stderr)  # noqa: T201
        return EXIT_STATUS
    except (psycopg.Error, OSError) as error:
        full = os.strerror(errno.ENOSPC)
        if full not in str(error):
            raise
        print(f"{full}: {settings.DATA_DIR}, or Postgres, has no room left; make some and start again", file=sys.stderr)  # noqa: T201
        return EXIT_STATUS
    return 0


def prepare(conninfo: str, data_dir: Path) -> None:
    """Do what is missing, while no other stack does."""
    import django

    django.setup()
    with alone(conninfo):
        migrate()
        create_first_access(data_dir)


def migrate_shared() -> None:
    """Wait for the Postgres of the settings, check them and apply what is missing, while no other process does.

    Creates no account and no token: their secrets would have to be kept somewhere. Raises StartProblem.
    """
    import django
    from django.conf import settings

    django.setup()
    check(everything=True)
    wait_for(settings.CONNINFO, STARTING_SECONDS)
    with alone(settings.CONNINFO):
        migrate()


def say(text: str) -> None:
    """One line for the log."""
    print(text, flush=True)  # noqa: T201


def wait_for(conninfo: str, seconds: float) -> None:
    """Wait until Postgres answers. Raises StartProblem if it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    said = time.monotonic() + 5
    while True:
        try:
            psycopg.connect(conninfo, connect_timeout=3).close()
        except psycopg.OperationalError as error:
            if time.monotonic() > deadline:
                raise StartProblem(f"Postgres did not come up within {seconds:g} s: {one_line(error)}") from error
            if time.monotonic() > said:
                say(f"waiting for Postgres: {one_line(error)}")
                said += 10
            time.sleep(0.02)
        else:
            return


def check(*, everything: bool = False) -> None:
    """Run our system checks, or all of Django's. Errors raise one StartProblem for all; our warnings are printed."""
    from django.core.checks import ERROR, run_checks

    from kcoord.checks import TAG

    found = [message for message in run_checks(tags=None if everything else [TAG]) if not message.is_silenced()]
    errors = [f"{' '.join(message.msg.split())} ({message.id})" for message in found if message.level >= ERROR]
    if errors:
        raise StartProblem("; ".join(errors))
    for message in found:
        if not everything:
            say(f"{message.msg}. {message.hint or ''}".strip())


def refuse_too_old(conninfo: str) -> None:
    """Raises StartProblem for a database from before the first release; one that does not answer is looked at later."""
    with suppress(psycopg.Error), psycopg.connect(conninfo, connect_timeout=3) as connection:
        if problem := too_old(applied_migrations(connection)):
            raise StartProblem(problem)


@contextmanager
def alone(conninfo: str) -> Iterator[None]:
    """Hold the lock for preparing this database; waits while another stack has it."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("select pg_advisory_lock(%s)", [LOCK_KEY])
        yield


def migrate() -> None:
    """Apply the missing migrations. Raises StartProblem for a database of a newer release, or from before the first."""
    from django.core.management import call_command
    from django.db import OperationalError, ProgrammingError, connection
    from django.db.migrations.executor import MigrationExecutor

    executor = MigrationExecutor(connection)
    loader = executor.loader
    if problem := not_migratable(loader.applied_migrations, loader.disk_migrations):
        raise StartProblem(problem)
    missing = executor.migration_plan(loader.graph.leaf_nodes())
    if missing:
        check_rights(connection)
        say(f"applying {len(missing)} migrations")
        try:
            call_command("migrate", verbosity=0, interactive=False)
        except OperationalError as error:
            if not isinstance(error.__cause__, psycopg.errors.DiskFull):
                raise
            raise StartProblem(f"{one_line(error)}; free some space and start again") from error
        except ProgrammingError as error:
            if not isinstance(error.__cause__, psycopg.errors.InsufficientPrivilege):
                raise
            raise StartProblem(
                f"the migrations may not change the database: {one_line(error)}; connect as the user who made its "
                "tables, or give them and their schemas to this one (docs/operations/start.md, Your own Postgres)"
            ) from error


def check_rights(connection: Any) -> None:
    """Raises StartProblem if the user may not create schemas and tables, with the statement that lets them."""
    with connection.cursor() as cursor:
        cursor.execute(RIGHTS)
        user, database, owner, schema, may_create_schemas, may_create_tables = cursor.fetchone()
    if not may_create_schemas:
        remedy = f'alter database "{database}" owner to "{user}"'
        raise StartProblem(
            f"user {user} may not create schemas in the database {database}, which belongs to {owner}; run `{remedy}` "
            f"as {owner} or a superuser, or name another database in KCOORD_DATABASE_URL"
        )
    if not may_create_tables:
        remedy = f'grant create on schema "{schema}" to "{user}"' if schema else f'create schema "{user}"'
        raise StartProblem(
            f"user {user} may not create tables in the schema {schema or 'of its search_path'} of the database "
            f"{database}; run `{remedy}` as {owner} or a superuser"
        )


def create_first_access(data_dir: Path) -> None:
    """Create the admin account and the API token of the first start, unless either has existed before.

    The file is written before the commit: the database never contains them without the secrets being on disk.
    """
    from django.contrib.auth import get_user_model
    from django.db import transaction

    from kcoord.access import tokens
    from kcoord.models import ApiToken
    from kcoord.stack import credentials

    users: Any = get_user_model()._default_manager
    if users.filter(is_superuser=True).exists() or ApiToken.objects.exists():
        return
    password = secrets.token_urlsafe(18)
    with transaction.atomic():
        users.create_superuser(username=ADMIN, email="", password=password)
        token = tokens.create_token(TOKEN_NAME, tokens.ALL_RULES)
        path = credentials.write(data_dir, credentials.Credentials(ADMIN, password, token.secret))
    say(f"created the account {ADMIN} and an API token; both are in {path}")


if __name__ == "__main__":
    sys.exit(main())
