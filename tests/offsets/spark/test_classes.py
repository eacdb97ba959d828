"""The file of Spark's classes is used."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.offsets.spark.classes import OPTIONS

pytestmark = pytest.mark.whole("of what makes these tests fast")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process maps")
def test_java_maps_the_file(spark: SparkSession) -> None:
    """Otherwise nobody would notice that each start takes twice the time."""
    used = re.search(r"-XX:(?:AOTCache|SharedArchiveFile)=(\S+)", os.environ[OPTIONS])
    if used is None:
        pytest.skip("this Java cannot write down what it has loaded")
    java = spark.sparkContext._gateway.proc.pid
    assert used[1] in Path(f"/proc/{java}/maps").read_text()
