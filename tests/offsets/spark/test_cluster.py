"""The jobs with executors that are processes of their own, and do not find kcoord on their path.

Off by default, because it starts three Javas, which take minutes of CPU time: `TEST_SPARK_CLUSTER=1`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from tests.offsets.spark import elsewhere
from tests.offsets.spark.support import Archive, counted_days, journal_rows
from tests.support.database import ROOT

MASTER = "local-cluster[2,1,1024]"

pytestmark = [
    pytest.mark.skipif(not os.environ.get("TEST_SPARK_CLUSTER"), reason="TEST_SPARK_CLUSTER is not set"),
    pytest.mark.whole("starts three Javas"),
]


def never() -> SparkSession:
    """What was published is looked at without Spark."""
    raise AssertionError("Spark was started")


@pytest.fixture
def spark_home(tmp_path: Path) -> Path:
    """Spark's own files, in a folder in which executors may work; their path to Python modules leads nowhere."""
    home = tmp_path / "home"
    (home / "conf").mkdir(parents=True)
    (home / "conf" / "spark-defaults.conf").write_text("spark.executorEnv.PYTHONPATH /nowhere\n")
    for part in ("bin", "jars", "python"):
        place = Path(pyspark.__file__).parent / part
        if place.exists():
            (home / part).symlink_to(place)
    return home


def test_executors_of_their_own_get_our_code(journal: str, spark_home: Path, tmp_path: Path) -> None:
    path = str(tmp_path / "archive")
    command = [sys.executable, "-m", "tests.offsets.spark.elsewhere", journal, path, str(tmp_path / "spark"), MASTER]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")},
        "SPARK_HOME": str(spark_home),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1500, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["rows"] == [elsewhere.ROWS, 0, elsewhere.MORE]
    assert [origin for origin in told["origins"] if "/kcoord-spark.zip/" not in origin] == []
    assert len(list((spark_home / "work").glob("*/*/stderr"))) == 2
    archive = Archive(journal, path, never)
    assert archive.rows() == journal_rows(journal)
    assert counted_days(journal) == (elsewhere.ROWS + elsewhere.MORE, True)
