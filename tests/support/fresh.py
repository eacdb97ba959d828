"""A virtual environment of the service's packages alone, as a new user starts with: nothing that only the tests bring.

Those of Spark jobs, nine tenths of what would be installed, are not imported before a job runs.

It is kept in `build/`, under a name with the hash of the requirements, so it is made once for each change of them.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kcoord.stack.install import uv_environment
from tests.support.database import ROOT

REQUIREMENTS = ROOT / "deploy" / "requirements-service.txt"
INSTALL_SECONDS = 900
UNREACHABLE = ("error sending request", "dns error", "tcp connect error", "Network connectivity is disabled")
"""What uv says if the package index cannot be reached."""


def fresh_python() -> Path:
    """Its interpreter. Skips the test if the packages cannot be downloaded; fails if they do not fit together."""
    version = "{}.{}".format(*sys.version_info)
    name = hashlib.sha256(REQUIREMENTS.read_bytes() + version.encode()).hexdigest()[:16]
    place = ROOT / "build" / f"requirements-{name}"
    place.parent.mkdir(exist_ok=True)
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "complete").exists():
            _make(place)
    return place / "bin" / "python"


def _make(place: Path) -> None:
    for older in place.parent.glob("requirements-*/"):
        shutil.rmtree(older)
    uv, env = [sys.executable, "-m", "uv"], uv_environment()
    subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, place], check=True, env=env, timeout=120)
    done = subprocess.run(
        [*uv, "pip", "install", "--quiet", "--python", place, "-r", REQUIREMENTS],
        capture_output=True,
        text=True,
        env=env,
        timeout=INSTALL_SECONDS,
    )
    if done.returncode != 0:
        shutil.rmtree(place)
        if any(sign in done.stderr for sign in UNREACHABLE):
            pytest.skip(f"{REQUIREMENTS.name} cannot be installed: {done.stderr.strip().splitlines()[-1]}")
        raise AssertionError(done.stderr)
    (place / "complete").touch()
