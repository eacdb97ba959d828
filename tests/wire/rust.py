"""Programs in Rust, built once and kept in a cache. Skips tests without cargo, or where crates cannot be had."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.bench.kafka.broker import CACHE

BUILD_SECONDS = 900.0
"""librdkafka is compiled with them, which took five minutes on two busy cores."""


@cache
def built(source: Path) -> str:
    """The path of the program in a directory that is a package."""
    if shutil.which("cargo") is None:
        pytest.skip("no cargo on the path")
    target = CACHE.parent / f"rust-{source.name}"
    arguments = ["--locked", "--manifest-path", str(source / "Cargo.toml")]
    try:
        fetched = subprocess.run(["cargo", "fetch", *arguments], capture_output=True, text=True, timeout=BUILD_SECONDS)
        if fetched.returncode != 0:
            pytest.skip(f"the crates of {source.name} cannot be downloaded: {fetched.stderr[-300:]}")
        command = ["cargo", "build", "--quiet", "--target-dir", str(target), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS)
    except subprocess.TimeoutExpired as late:
        pytest.skip(f"{late.cmd} took more than {BUILD_SECONDS:g} s")
    assert done.returncode == 0, done.stderr[-2_000:]
    return str(target / "debug" / source.name)
