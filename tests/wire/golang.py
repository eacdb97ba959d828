"""Programs in Go, built once. Skips tests without Go, or where modules cannot be had."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from tests.support.processes import environment

GO_SECONDS = 600.0


@cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    """Where programs are built; it goes with this process."""
    return tempfile.TemporaryDirectory(prefix="go-")


def _run(*command: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """`go` and its arguments. Skips the test where that takes too long, as with a network that is slow."""
    if shutil.which("go") is None:
        pytest.skip("no go on the path")
    own = {**environment(None, cwd), "GOTOOLCHAIN": "local", "CGO_ENABLED": "0", **env}
    try:
        return subprocess.run(["go", *command], cwd=cwd, env=own, capture_output=True, text=True, timeout=GO_SECONDS)
    except subprocess.TimeoutExpired as late:
        pytest.skip(f"{late.cmd} took more than {GO_SECONDS:g} s")


@cache
def built(source: Path) -> str:
    """The path of the program in a directory that is a module."""
    fetched = _run("mod", "download", cwd=source)
    if fetched.returncode != 0 and "SECURITY ERROR" not in fetched.stderr:
        pytest.skip(f"the modules of {source.name} cannot be downloaded: {fetched.stderr[-300:]}")
    found = Path(_directory().name) / source.name
    done = _run("build", "-mod=readonly", "-o", str(found), ".", cwd=source)
    assert done.returncode == 0, done.stderr
    return str(found)


@cache
def installed(package: str, version: str) -> str:
    """A program from a module: the one on the path, else of this version. Skips the test where neither can be had."""
    name = package.rpartition("/")[2]
    found = shutil.which(name)
    if found is not None:
        return found
    directory = Path(_directory().name)
    done = _run("install", f"{package}@{version}", cwd=directory, GOBIN=str(directory))
    if done.returncode != 0:
        pytest.skip(f"{name} is not on the path and cannot be installed: {done.stderr[-300:]}")
    return str(directory / name)
