"""Commands as people type them, wherever they are."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from kcoord import __version__
from tests.support.processes import ROOT, environment, free_port


def typed(directory: Path, *arguments: str, **env: object) -> subprocess.CompletedProcess[str]:
    """Run Python in a directory, with nothing of the project on its path."""
    clean = environment(None, directory / "data")
    del clean["PYTHONPATH"]
    clean.update({name: str(value) for name, value in env.items()})
    return subprocess.run(
        [sys.executable, *arguments], cwd=directory, env=clean, capture_output=True, text=True, timeout=60
    )


def test_up_works_from_another_directory(tmp_path: Path) -> None:
    # It gets as far as the checks before a start, and no further.
    url = f"postgresql://127.0.0.1:{free_port()}/kcoord"
    done = typed(tmp_path, str(ROOT / "manage.py"), "up", KCOORD_DATABASE_URL=url, KCOORD_PORT=str(free_port()))
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("kcoord: KCOORD_DATABASE_URL: Postgres cannot be reached")


@pytest.mark.parametrize("arguments", [["--version"], ["version"], ["kgroups", "--version"], ["up", "--version"]])
def test_the_version_is_that_of_kcoord(tmp_path: Path, arguments: list[str]) -> None:
    done = typed(tmp_path, str(ROOT / "manage.py"), *arguments)
    assert done.stdout == f"kcoord {__version__}\n"
    assert done.returncode == 0


def test_the_stack_has_the_same_version_and_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    done = typed(tmp_path, "-m", "kcoord.stack", "--version", PYTHONPATH=ROOT)
    assert done.stdout == f"kcoord {__version__}\n"
    assert typed(tmp_path, "-m", "kcoord.stack", "--port=1", PYTHONPATH=ROOT).returncode == 2
    assert not (tmp_path / "data").exists()


def test_the_package_has_the_same_version() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["version"]
    assert told == {"path": "kcoord/__init__.py"}
