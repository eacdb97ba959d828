"""The jobs in a process of their own: `python -m tests.offsets.spark.elsewhere CONNINFO PATH DIRECTORY MASTER`.

For archives and masters that need a Spark of their own: what it was started with decides about both. Prints one object.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

from pyspark.sql import SparkSession

from offsets.spark.archive.archiving import ArchiveOptions
from offsets.spark.archive.states import collected, states_at
from offsets.spark.archive.storage import Storage
from offsets.spark.archive.table import read_archive
from offsets.spark.report.reporting import ReportOptions, report
from offsets.spark.runs import RunRequest, running
from offsets.spark.session import SparkSettings, spark_session
from tests.conftest import START_MS
from tests.offsets.spark.support import Archive, Reconciler, fill

ROWS, MORE = 300, 100
STEP_MS = 1_000


def origins(spark: SparkSession) -> list[str]:
    """Where executors import the source from."""
    modules = spark.sparkContext.parallelize(range(2), 2).map(
        lambda _: str(import_module("offsets.spark.source").__file__)
    )
    return sorted(set(modules.collect()))


def jobs(spark: SparkSession, conninfo: str, path: str) -> dict[str, object]:
    """Archive three times, with a compaction, then reconcile, report and restore's states; what they found."""
    archive = Archive(conninfo, path, lambda: spark, ArchiveOptions(slice_blocks=2, most_files=1))
    fill(conninfo, ROWS, step=STEP_MS)
    runs = [archive.run(), archive.run()]
    fill(conninfo, MORE, first=START_MS + ROWS * STEP_MS, step=STEP_MS)
    runs.append(archive.run())
    reconciled = Reconciler(conninfo, lambda: spark)(path)
    with running(conninfo, "report", RunRequest("test")) as run:
        reported = report(run, lambda: spark, conninfo, Storage(path), ReportOptions())
    states = collected(states_at(read_archive(spark, archive.table()), START_MS + ROWS * STEP_MS))
    return {
        "rows": [one.rows for one in runs],
        "compacted": [one.compacted.replaced for one in runs],
        "missing": reconciled.by_kind["missing_in_view"],
        "exported": list(reconciled.exported),
        "tables": list(reported.tables),
        "written": list(reported.files),
        "states": ["{group_name} {topic}-{partition}".format(**row) for row in states.table.to_pylist()],
        "origins": origins(spark),
    }


def main(conninfo: str, path: str, directory: str, master: str) -> None:
    """Run and print."""
    with spark_session(SparkSettings(master, Path(directory))) as spark:
        print(json.dumps(jobs(spark, conninfo, path)))


if __name__ == "__main__":
    main(*sys.argv[1:])
