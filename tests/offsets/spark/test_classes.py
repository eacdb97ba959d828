"""The file of Spark's classes is used, and where it does not fit, Java goes without it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from offsets.spark.java import find_java
from tests.offsets.spark.classes import OPTIONS, TOLERANT


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process maps")
def test_java_maps_the_file(spark: SparkSession) -> None:
    """Otherwise nobody would notice that each start takes twice the time."""
    used = re.search(r"-XX:(?:AOTCache|SharedArchiveFile)=(\S+)", os.environ[OPTIONS])
    if used is None:
        pytest.skip("this Java cannot write down what it has loaded")
    java = spark.sparkContext._gateway.proc.pid
    assert used[1] in Path(f"/proc/{java}/maps").read_text()


@pytest.mark.parametrize("option", ["AOTCache", "SharedArchiveFile"])
@pytest.mark.parametrize("content", [None, b"", b"of another Java"])
def test_java_starts_with_a_file_that_does_not_fit(tmp_path: Path, option: str, content: bytes | None) -> None:
    place = tmp_path / "classes.jsa"
    if content is not None:
        place.write_bytes(content)
    command = [find_java(os.environ).executable, f"-XX:{option}={place}", *TOLERANT.split(), "-version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert (done.stdout, "warning" in done.stderr.lower()) == ("", False)
