"""The embedded database belongs to a role that is no superuser, also in a directory that an older release made."""

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

import httpx
import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from kcoord.stack import credentials, embedded, owner
from kcoord.stack.bootstrap import wait_for
from tests.kcoord.stack.test_stack import up
from tests.support.processes import ROOT, environment

pytestmark = [
    pytest.mark.processes,
    pytest.mark.xdist_group("stack"),
    pytest.mark.whole("a whole stack on a directory of its own; the default has one"),
]

GROUP = "billing"


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


def make_like_an_older_release(data_dir: Path) -> None:
    """Everything belongs to the superuser, and people have added things of their own."""
    with postgres_of(data_dir) as admin:
        conninfo = make_conninfo(admin, dbname="kcoord")
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute("create database kcoord")
        subprocess.run(
            [sys.executable, "-m", "kcoord.stack.bootstrap"],
            cwd=ROOT,
            env=environment(conninfo, data_dir),
            check=True,
            timeout=120,
        )
        with psycopg.connect(conninfo, autocommit=True) as connection:
            connection.execute("""
                create role billing_sink login;
                create role bystander login;
                grant usage on schema kcoord to billing_sink;
                grant execute on function kcoord.commit_offsets to billing_sink;
                create schema shop;
                create type shop.state as enum ('paid', 'open');
                create domain shop.cents as bigint check (value >= 0);
                create type shop.line as (name text, cents bigint);
                create table shop.invoices (id serial primary key, state shop.state, cents shop.cents);
                create view shop.open as select id from shop.invoices where state = 'open';
                create materialized view shop.total as select count(*) from shop.invoices;
                create function shop.twice(n bigint) returns bigint language sql as 'select n * 2';
                create aggregate shop.product(bigint) (sfunc = int8mul, stype = bigint);
                create table "Odd ""name" (id int);
                create table theirs (id int);
                alter table theirs owner to bystander;
                insert into shop.invoices (state, cents) values ('open', 700);
                insert into auth_group (name) values ('operators');
            """)


@pytest.fixture(scope="module")
def upgraded(data_dir: Path) -> Iterator[tuple[str, Path]]:
    """The stack, started in such a directory: its address, and the directory."""
    make_like_an_older_release(data_dir)
    assert "kcoord_owner" in (data_dir / "conninfo").read_text()
    (data_dir / "conninfo").write_text((data_dir / "conninfo").read_text().replace("kcoord_owner", "postgres"))
    with up(data_dir) as running:
        running.wait_ready(timers=True)
        assert re.search(r"gave \d+ tables and functions of the superuser to kcoord_owner", running.output)
        yield running.url, data_dir


def as_superuser(data_dir: Path) -> str:
    """The address of the service's database for its administrator."""
    return make_conninfo((data_dir / "conninfo").read_text(), user="postgres")


def test_what_an_older_release_stored_is_kept_and_used(upgraded: tuple[str, Path]) -> None:
    url, data_dir = upgraded
    token = {"Authorization": f"Bearer {credentials.read(data_dir).api_token}"}
    topic = httpx.post(f"{url}/v1/topics", headers=token, json={"name": "clicks", "partitions": 1}, timeout=60)
    assert topic.status_code == 201, topic.text
    offsets = [{"name": "clicks", "partitions": [{"partition": 0, "committed_offset": 5}]}]
    body = {"member_id": "", "generation_id_or_member_epoch": -1, "topics": offsets}
    answer = httpx.post(f"{url}/v1/groups/{GROUP}/offsets/commit", headers=token, json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    with psycopg.connect((data_dir / "conninfo").read_text()) as connection:
        assert connection.execute("select name from auth_group").fetchall() == [("operators",)]
        assert connection.execute("select id, cents from shop.invoices join shop.open using (id)").fetchall() == [
            (1, 700)
        ]
        connection.execute("insert into shop.invoices (state) values ('paid')")
        connection.execute("select shop.twice(2), shop.product(id) from shop.invoices").fetchall()


def test_nothing_that_runs_is_a_superuser(upgraded: tuple[str, Path]) -> None:
    with psycopg.connect(as_superuser(upgraded[1])) as connection:
        found = connection.execute(
            "select application_name, usename from pg_stat_activity"
            " where backend_type = 'client backend' and pid <> pg_backend_pid()"
        ).fetchall()
    assert len(found) > 3
    assert {user for _, user in found} == {owner.OWNER}, found


def test_the_owner_has_its_database_and_no_more(upgraded: tuple[str, Path]) -> None:
    with psycopg.connect((upgraded[1] / "conninfo").read_text(), autocommit=True) as connection:
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


def test_all_but_what_belongs_to_others_is_its(upgraded: tuple[str, Path]) -> None:
    with psycopg.connect(as_superuser(upgraded[1])) as connection:
        assert connection.execute(owner.LEFT).fetchall() == []
        owners = connection.execute(
            "select relname, relowner::regrole::text from pg_class where relname in ('theirs', 'Odd \"name')"
        ).fetchall()
        granted = (
            "select has_function_privilege('billing_sink', p.oid, 'execute'), p.proowner::regrole::text from pg_proc p"
        )
        rights = connection.execute(f"{granted} where oid::regproc::text = 'kcoord.commit_offsets'").fetchall()
        everybody = connection.execute(
            "select has_function_privilege('bystander', p.oid, 'execute') from pg_proc p"
            " where oid::regproc::text = 'kcoord.commit_offsets'"
        ).fetchone()
    assert dict(owners) == {"theirs": "bystander", 'Odd "name': owner.OWNER}
    assert rights == [(True, owner.OWNER)]
    assert everybody == (False,)


def test_the_owner_ends_its_own_stuck_sessions_and_counts_those_of_others(upgraded: tuple[str, Path]) -> None:
    conninfo = (upgraded[1] / "conninfo").read_text()
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


def test_a_second_start_gives_nothing_and_a_superuser_role_is_limited(upgraded: tuple[str, Path]) -> None:
    admin = make_conninfo(as_superuser(upgraded[1]), dbname="postgres")
    assert owner.prepare(admin, "kcoord") == 0
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute("alter role kcoord_owner superuser")
        assert owner.prepare(admin, "kcoord") == 0
        assert connection.execute("select rolsuper from pg_roles where rolname = 'kcoord_owner'").fetchone() == (False,)


def documented(heading: str, data_dir: Path) -> list[str]:
    """The shell commands of a section of docs/operations.md, with another directory for `.kcoord`."""
    text = (ROOT / "docs" / "operations.md").read_text()
    section = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    blocks = re.findall(r"```\n(.*?)```", section, re.DOTALL)
    return [block.replace(".kcoord", str(data_dir)).replace(".venv/bin/python", sys.executable) for block in blocks]


def test_the_documented_backup_is_private_and_can_be_restored(upgraded: tuple[str, Path], tmp_path: Path) -> None:
    _, data_dir = upgraded
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
        assert connection.execute(owner.LEFT).fetchall() == []
        assert connection.execute(
            "select relowner::regrole::text from pg_class where relname = 'theirs'"
        ).fetchone() == ("bystander",)


def test_a_new_directory_begins_that_way() -> None:
    parent = Path(tempfile.mkdtemp(prefix="kcoord-"))
    try:
        with postgres_of(parent) as admin:
            assert owner.prepare(admin, "kcoord") == 0
            with psycopg.connect((parent / "conninfo").read_text()) as connection:
                row = connection.execute("select current_user, rolsuper from pg_roles where rolname = current_user")
                assert row.fetchone() == ("kcoord_owner", False)
    finally:
        shutil.rmtree(parent, ignore_errors=True)
