"""Clients of Kafka from npm, kept in a cache beside Kafka's jars. Skips tests where they cannot be had."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.bench.kafka.broker import CACHE

INSTALL_SECONDS = 600.0
"""node-rdkafka is compiled, which took four minutes on two busy cores."""


@cache
def of_npm(name: str, version: str) -> Path:
    """A directory for NODE_PATH with a package and what it needs. Skips the test without Node and npm."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("no node and npm on the path")
    command = ["npm", "install", "--silent", "--no-save", "--no-audit", "--no-fund", f"{name}@{version}", "--prefix"]
    return _installed(f"node-{name.strip('@').replace('/', '-')}-{version}", command) / "node_modules"


def _installed(called: str, command: Sequence[str]) -> Path:
    """All or nothing: a directory that is complete is renamed."""
    into = CACHE.parent / called
    if into.exists():
        return into
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="download-", dir=into.parent) as directory:
        target = Path(directory) / "packages"
        target.mkdir()
        try:
            done = subprocess.run([*command, str(target)], capture_output=True, text=True, timeout=INSTALL_SECONDS)
        except subprocess.TimeoutExpired:
            pytest.skip(f"{called} did not come within {INSTALL_SECONDS:g} s")
        if done.returncode != 0:
            pytest.skip(f"{called} cannot be installed: {(done.stdout + done.stderr)[-500:]}")
        with contextlib.suppress(OSError):  # another run was faster
            target.rename(into)
    return into
