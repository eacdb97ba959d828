"""The embedded database belongs to a role that is no superuser."""

from __future__ import annotations

import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from kcoord.stack import embedded, owner
from kcoord.stack.bootstrap import wait_for
from kcoord.stack.preflight import StartProblem
from tests.kcoord.stack.test_stack import up
from tests.support.processes import ROOT

pytestmark = [
    pytest.mark.processes,
    pytest.mark.xdist_group("stack"),
    pytest.mark.whole("a whole stack on a directory of its own; the default has one"),
]


@pytest.fixture(scope="module")
def data_dir() -> Iterator[Path]:
    """A directory with a short name: the socket is in it."""
    with tempfile.TemporaryDirectory(prefix="kcoord-") as name:
        yield Path(name)


@contextmanager
def postgres_of(data_dir: Path) -> Iterator[str]:
    """The embedded Postgres alone; its address as the superuser."""
    server = embedded.install(data_dir, print)
    command = server.command(embedded.environment({}), 0, 50)
    uid, gid = server.user or (None, None)
    process = subprocess.Popen(
        command.argv, cwd="/", user=uid, group=gid, extra_groups=None if uid is None else [], stdin=subprocess.DEVNULL
    )
    try:
        admin = server.conninfo("postgres", embedded.SUPERUSER)
        wait_for(admin, 60)
        yield admin
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


OF_PEOPLE = """
create role billing_sink login;
create role bystander login;
grant usage on schema kcoord to billing_sink;
grant execute on function kcoord.commit_offsets to billing_sink;
create table theirs (id int);
alter table theirs owner to bystander;
insert into auth_group (name) values ('operators');
"""
"""What an administrator adds as the superuser."""


@pytest.fixture(scope="module")
def used(data_dir: Path) -> Iterator[Path]:
    """The directory of a running stack, whose database has things of people too."""
    with up(data_dir) as running:
        running.wait_ready(timers=True)
        with psycopg.connect(as_superuser(data_dir), autocommit=True, application_name="test") as connection:
            connection.execute(OF_PEOPLE)
        yield data_dir


def as_superuser(data_dir: Path) -> str:
    """The address of the service's database for its administrator."""
    return make_conninfo((data_dir / "conninfo").read_text(), user="postgres")


def test_nothing_that_runs_is_a_superuser(used: Path) -> None:
    with psycopg.connect(as_superuser(used), application_name="test") as connection:
        found = connection.execute(
            "select application_name, usename from pg_stat_activity"
            " where backend_type = 'client backend' and application_name <> 'test'"
        ).fetchall()  # sessions end after the call that closes them, so those of the tests may still be there
    assert len(found) > 3
    assert {user for _, user in found} == {owner.OWNER}, found


def test_the_owner_has_its_database_and_no_more(used: Path) -> None:
    with psycopg.connect((used / "conninfo").read_text(), autocommit=True) as connection:
        for forbidden in (
            "copy (select 1) to program 'true'",
            "copy auth_group from '/etc/passwd'",
            "select pg_read_file('PG_VERSION')",
            "create role another",
            "create database another",
            "alter role kcoord_owner superuser",
            "alter system set work_mem = '1GB'",
            "set session authorization postgres",
            "select * from pg_authid",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(forbidden)


def test_what_the_service_made_belongs_to_its_owner_and_is_closed_to_others(used: Path) -> None:
    with psycopg.connect(as_superuser(used)) as connection:
        owners = connection.execute(
            "select distinct relowner::regrole::text from pg_class where relkind in ('r', 'p', 'S')"
            " and relname <> 'theirs'"
            " and relnamespace in ('public'::regnamespace, 'kcoord'::regnamespace, 'pgmq'::regnamespace)"
        ).fetchall()
        rights = connection.execute(
            "select p.proowner::regrole::text, has_function_privilege('billing_sink', p.oid, 'execute'),"
            " has_function_privilege('bystander', p.oid, 'execute')"
            " from pg_proc p where oid::regproc::text = 'kcoord.commit_offsets'"
        ).fetchall()
    assert owners == [(owner.OWNER,)]
    assert rights == [(owner.OWNER, True, False)]


def test_the_owner_ends_its_own_stuck_sessions_and_counts_those_of_others(used: Path) -> None:
    conninfo = (used / "conninfo").read_text()
    with (
        psycopg.connect(conninfo, autocommit=True) as one,
        psycopg.connect(conninfo) as other,
        psycopg.connect(make_conninfo(conninfo, user="bystander")) as theirs,
    ):
        kind = "select backend_type from pg_stat_activity where pid = %s"
        assert one.execute(kind, [theirs.info.backend_pid]).fetchone() == ("client backend",)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            one.execute("select pg_terminate_backend(%s)", [theirs.info.backend_pid])
        assert one.execute("select pg_terminate_backend(%s)", [other.info.backend_pid]).fetchone() == (True,)


def test_a_role_that_became_a_superuser_is_limited_by_the_next_start(used: Path) -> None:
    admin = make_conninfo(as_superuser(used), dbname="postgres")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute("alter role kcoord_owner superuser")
        owner.prepare(admin, "kcoord")
        assert connection.execute("select rolsuper from pg_roles where rolname = 'kcoord_owner'").fetchone() == (False,)


def test_a_database_of_somebody_else_is_refused(used: Path) -> None:
    admin = make_conninfo(as_superuser(used), dbname="postgres")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute("create database foreign_one")
        with pytest.raises(StartProblem, match="foreign_one belongs to postgres, not kcoord_owner"):
            owner.prepare(admin, "foreign_one")
        with psycopg.connect(make_conninfo(admin, dbname="foreign_one"), autocommit=True) as foreign:
            foreign.execute("create table django_migrations (app text, name text)")
            foreign.execute("insert into django_migrations values ('groups', '0002_cascades')")
        with pytest.raises(StartProblem, match="before the first release"):
            owner.prepare(admin, "foreign_one")


def documented(heading: str, data_dir: Path) -> list[str]:
    """The shell commands of a section of docs/operations/backup.md, with another directory for `.kcoord`."""
    text = (ROOT / "docs" / "operations" / "backup.md").read_text()
    section = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    blocks = re.findall(r"```\n(.*?)```", section, re.DOTALL)
    return [block.replace(".kcoord", str(data_dir)).replace(".venv/bin/python", sys.executable) for block in blocks]


def test_the_documented_backup_is_private_and_can_be_restored(used: Path, tmp_path: Path) -> None:
    data_dir = used
    backup, restore = documented("Backup and restore", data_dir)[:2]
    keep = restore.replace("drop database kcoord with (force)", "select 1").replace(
        "alter database kcoord_restored rename to kcoord", "select 2"
    )
    assert keep.count("select ") == 2
    environ = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["sh", "-euc", f"umask 022\n{backup}\n{keep}"],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE((tmp_path / "kcoord.dump").stat().st_mode) == 0o600
    restored = make_conninfo((data_dir / "conninfo").read_text(), dbname="kcoord_restored")
    with psycopg.connect(restored) as connection:
        assert connection.execute("select name from auth_group").fetchall() == [("operators",)]
        connection.execute("create table of_the_owner (id int)")
        assert connection.execute(
            "select relowner::regrole::text from pg_class where relname = 'theirs'"
        ).fetchone() == ("bystander",)


def test_a_new_directory_begins_that_way() -> None:
    parent = Path(tempfile.mkdtemp(prefix="kcoord-"))
    try:
        with postgres_of(parent) as admin:
            owner.prepare(admin, "kcoord")
            with psycopg.connect((parent / "conninfo").read_text()) as connection:
                row = connection.execute("select current_user, rolsuper from pg_roles where rolname = current_user")
                assert row.fetchone() == ("kcoord_owner", False)
    finally:
        shutil.rmtree(parent, ignore_errors=True)
