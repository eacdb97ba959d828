"""The embedded Postgres' files: what is made, what is refused, what is put right."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from kcoord.database.address import pgdata
from kcoord.stack import embedded
from kcoord.stack.preflight import StartProblem


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A directory whose name is short enough for a socket, unlike pytest's."""
    with tempfile.TemporaryDirectory(prefix="kcoord-") as name:
        yield Path(name)


@pytest.fixture
def no_initdb(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stands in for initdb, which costs a second, with the one file that is looked at."""

    def pretend(server: embedded.Embedded, say: Callable[[str], None]) -> None:
        server.data.mkdir(mode=0o700)
        (server.data / "PG_VERSION").write_text(f"{embedded._major(server.programs)}\n")
        if server.user is not None:
            os.chown(server.data, *server.user)

    monkeypatch.setattr(embedded, "_initialize", pretend)


@pytest.fixture
def data_dir(tmp_path: Path, no_initdb: None) -> Path:
    """A data directory in which the server was installed."""
    embedded.install(tmp_path, print)
    return tmp_path


def problem_of(data_dir: Path) -> str:
    """The one line with which installing is refused."""
    with pytest.raises(StartProblem) as caught:
        embedded.install(data_dir, print)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_the_address_is_left_for_the_other_processes(data_dir: Path) -> None:
    parts = conninfo_to_dict((data_dir / "conninfo").read_text())
    assert parts == {"host": str(pgdata(data_dir)), "port": "5432", "user": "kcoord_owner", "dbname": "kcoord"}


def test_a_directory_name_with_quotes_and_blanks_is_an_address_too(tmp_path: Path, no_initdb: None) -> None:
    odd = tmp_path / "it's a \\ place"
    odd.mkdir()
    server = embedded.install(odd, print)
    assert conninfo_to_dict(server.conninfo())["host"] == str(odd / "postgres")


def test_a_name_too_long_for_a_socket_gets_a_private_directory(tmp_path: Path, no_initdb: None) -> None:
    long = tmp_path / ("d" * 100)
    long.mkdir()
    server = embedded.install(long, print)
    found = server.socket_dir.lstat()
    try:
        assert len(f"{server.socket_dir}/.s.PGSQL.5432") < 107
        assert stat.S_IMODE(found.st_mode) == 0o700
        assert found.st_uid == (server.user[0] if server.user else os.geteuid())
        server.socket_dir.chmod(0o777)
        assert "belongs to another user" in problem_of(long)
    finally:
        server.socket_dir.rmdir()


def test_files_of_another_version_are_refused(data_dir: Path) -> None:
    (pgdata(data_dir) / "PG_VERSION").write_text("9\n")
    assert "created by PostgreSQL 9, this release includes 18; dump it" in problem_of(data_dir)


def test_a_pid_file_whose_number_belongs_to_another_program_is_removed(data_dir: Path) -> None:
    said: list[str] = []
    pid_file = pgdata(data_dir) / "postmaster.pid"
    pid_file.write_text(f"{os.getpid()}\n{pgdata(data_dir)}\n")
    embedded.install(data_dir, said.append)
    assert not pid_file.exists()
    assert said == [f"removing {pid_file}: process {os.getpid()} is not Postgres"]


def test_a_pid_file_of_nobody_is_left_to_postgres(data_dir: Path) -> None:
    pid_file = pgdata(data_dir) / "postmaster.pid"
    pid_file.write_text("4194305\n")  # one more than Linux gives out
    embedded.install(data_dir, print)
    assert pid_file.exists()


def test_an_interrupted_initdb_is_started_again(tmp_path: Path) -> None:
    half_made = tmp_path / "postgres.new"
    half_made.mkdir()
    (half_made / "PG_VERSION").write_text("18\n")
    server = embedded.install(tmp_path, print)
    assert (server.data / "global" / "pg_control").is_file()
    assert not half_made.exists()


def test_postgres_sees_no_settings_and_no_secrets() -> None:
    seen = embedded.environment({"PATH": "/bin", "KCOORD_DATABASE_URL": "secret", "PGPORT": "1", "PGDATA": "/x"})
    assert set(seen) == {"PATH", "HOME"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs Postgres as somebody else")
def test_root_runs_postgres_as_the_owner_of_its_files(data_dir: Path) -> None:
    os.chown(pgdata(data_dir), 1234, 1235)
    assert embedded.system_user(pgdata(data_dir)) == (1234, 1235)


@pytest.mark.skipif(os.geteuid() == 0, reason="root runs Postgres as their owner, whoever that is")
def test_an_ordinary_user_runs_postgres_as_itself(data_dir: Path) -> None:
    assert embedded.system_user(pgdata(data_dir)) is None
