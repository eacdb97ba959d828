"""What is made before the services start: first account, first token, migrations, the files that hold secrets."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from django.contrib.auth import authenticate, get_user_model
from django.core.management import CommandError, call_command
from django.db.migrations.loader import MigrationLoader
from django.test import override_settings

from kcoord.access import tokens
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.database.lineage import UNRELEASED, is_prepared, migration_files
from kcoord.door.http.health import readiness
from kcoord.models import AccessRule, ApiToken
from kcoord.process.runtime import Runtime
from kcoord.stack import bootstrap, credentials
from kcoord.stack.preflight import StartProblem
from tests.support.processes import free_port


@pytest.fixture
def empty(database: str) -> Iterator[str]:
    """A migrated database without accounts and tokens, and without what the test leaves behind."""
    get_user_model().objects.all().delete()
    yield database
    get_user_model().objects.all().delete()


def test_the_first_start_makes_an_account_and_a_token(empty: str, tmp_path: Path) -> None:
    bootstrap.create_first_access(tmp_path)
    made = credentials.read(tmp_path)
    user = authenticate(username=made.admin_user, password=made.admin_password)
    assert user is not None
    assert user.is_superuser
    token = ApiToken.objects.get(digest=tokens.digest(made.api_token))
    rules = set(token.rules.values_list("operation", "resource", "pattern", "name"))
    everything = {(op, res, "prefix", "") for op in AccessRule.Operation for res in AccessRule.Resource}
    assert rules == everything
    assert stat.S_IMODE((tmp_path / credentials.CREDENTIALS_FILE).stat().st_mode) == 0o600


def test_later_starts_make_nothing(empty: str, tmp_path: Path) -> None:
    bootstrap.create_first_access(tmp_path)
    before = credentials.read(tmp_path)
    bootstrap.create_first_access(tmp_path)
    assert credentials.read(tmp_path) == before
    assert get_user_model().objects.count() == 1
    assert ApiToken.objects.count() == 1


def test_a_database_in_use_gets_no_second_admin(empty: str, tmp_path: Path) -> None:
    tokens.create_token("of an operator", tokens.ALL_RULES)
    bootstrap.create_first_access(tmp_path)
    assert not (tmp_path / credentials.CREDENTIALS_FILE).exists()
    assert get_user_model().objects.count() == 0


def test_nothing_is_made_whose_secret_cannot_be_stored(empty: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        bootstrap.create_first_access(tmp_path / "missing")
    assert get_user_model().objects.count() == 0
    assert ApiToken.objects.count() == 0


def test_a_file_with_secrets_replaces_one_that_all_may_read(tmp_path: Path) -> None:
    path = tmp_path / "secret_key"
    path.write_text("old")
    path.chmod(0o644)
    credentials.write_private(path, "new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / credentials.CREDENTIALS_FILE).write_text("admin_user=admin\n")
    with pytest.raises(ValueError, match="credentials is damaged"):
        credentials.read(tmp_path)


def test_nothing_is_migrated_where_nothing_is_missing(empty: str, capsys: pytest.CaptureFixture[str]) -> None:
    bootstrap.migrate()
    assert capsys.readouterr().out == ""


def test_a_database_of_a_newer_release_is_refused(empty: str) -> None:
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute(
            "insert into django_migrations (app, name, applied) values ('groups', '9999_of_the_future', now())"
        )
        try:
            with pytest.raises(StartProblem, match=r"newer release \(groups.9999_of_the_future"):
                bootstrap.migrate()
        finally:
            connection.execute("delete from django_migrations where name = '9999_of_the_future'")


@pytest.fixture
def unreleased(empty: str) -> Iterator[str]:
    """A database with what every one from before the first release has."""
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute(
            "insert into django_migrations (app, name, applied) values ('groups', '0002_cascades', now())"
        )
        yield empty
        connection.execute("delete from django_migrations where name = '0002_cascades'")


def test_a_database_from_before_the_first_release_is_refused(unreleased: str) -> None:
    with pytest.raises(StartProblem, match=r"before the first release .* new KCOORD_DATA_DIR"):
        bootstrap.migrate()
    with pytest.raises(StartProblem, match=r"before the first release"):
        bootstrap.refuse_too_old(unreleased)
    with pytest.raises(CommandError, match=r"before the first release"):
        call_command("migrate", verbosity=0)
    assert not is_prepared(unreleased, settings.INSTALLED_APPS)


async def test_a_server_of_such_a_database_is_not_ready(unreleased: str) -> None:
    runtime = Runtime(Config({}), unreleased, VirtualClock(1_000))
    await runtime.db.open()
    try:
        found = (await readiness(runtime))["migrations"]
    finally:
        await runtime.db.close()
    assert not found.ok
    assert "before the first release" in found.detail


def test_a_database_that_does_not_answer_or_is_new_is_not_refused(postgres: str) -> None:
    bootstrap.refuse_too_old(f"host=127.0.0.1 port={free_port()} dbname=kcoord user=kcoord")
    bootstrap.refuse_too_old(postgres)


def test_no_migration_has_a_name_that_means_before_the_first_release() -> None:
    assert UNRELEASED.isdisjoint(MigrationLoader(None).disk_migrations)


def test_only_one_stack_prepares_a_database_at_a_time(empty: str) -> None:
    held = "select count(*) from pg_locks where locktype = 'advisory' and granted"
    with psycopg.connect(empty, autocommit=True) as other, bootstrap.alone(empty):
        assert other.execute("select pg_try_advisory_lock(%s)", [bootstrap.LOCK_KEY]).fetchone() == (False,)
        row = other.execute(held).fetchone()
        assert row is not None
        assert row[0] >= 1


def test_a_database_that_does_not_come_up_is_not_waited_for_forever() -> None:
    nowhere = f"host=127.0.0.1 port={free_port()} dbname=kcoord user=kcoord"
    with pytest.raises(StartProblem, match=r"did not come up within 0\.05 s"):
        bootstrap.wait_for(nowhere, 0.05)


def test_settings_that_cannot_be_used_stop_the_start(empty: str) -> None:
    config = Config.from_env({"KCOORD_PORT": "0", "KCOORD_ADVERTISED_URL": "here"})
    with override_settings(KCOORD=config), pytest.raises(StartProblem) as caught:
        bootstrap.check()
    assert "KCOORD_PORT=0: must be at least 1 (port) (kcoord.E001)" in str(caught.value)
    assert "KCOORD_ADVERTISED_URL" in str(caught.value)


def test_doubtful_settings_are_said(empty: str, capsys: pytest.CaptureFixture[str]) -> None:
    config = Config.from_env({"KCOORD_HOST": "0.0.0.0"})
    with override_settings(KCOORD=config):
        bootstrap.check()
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2
    assert "KCOORD_SECURE_COOKIES=true" in said[0]
    assert "KCOORD_ALLOWED_HOSTS" in said[1]


def test_what_is_prepared_is_seen_without_django(empty: str, tmp_path: Path) -> None:
    assert not is_prepared(empty, settings.INSTALLED_APPS)  # nobody has access yet
    bootstrap.create_first_access(tmp_path)
    assert is_prepared(empty, settings.INSTALLED_APPS)


@pytest.mark.parametrize(
    ("change", "undo"),
    [
        (
            "update django_migrations set name = name || '_x' where app = 'groups' and name like '0001%'",
            "update django_migrations set name = replace(name, '_x', '') where app = 'groups'",
        ),
        (
            "insert into django_migrations (app, name, applied) values ('groups', '9999_of_the_future', now())",
            "delete from django_migrations where name = '9999_of_the_future'",
        ),
        ("alter table kcoord_apitoken rename to elsewhere", "alter table elsewhere rename to kcoord_apitoken"),
    ],
)
def test_what_is_missing_or_unknown_is_seen_without_django(empty: str, tmp_path: Path, change: str, undo: str) -> None:
    bootstrap.create_first_access(tmp_path)
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute(change)
        try:
            assert not is_prepared(empty, settings.INSTALLED_APPS)
        finally:
            connection.execute(undo)
    assert is_prepared(empty, settings.INSTALLED_APPS)


def test_the_migrations_on_disk_are_those_that_django_knows() -> None:
    assert set(migration_files(settings.INSTALLED_APPS)) == set(MigrationLoader(None).disk_migrations)
