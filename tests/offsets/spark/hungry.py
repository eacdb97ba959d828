"""A run that needs more memory than it has: `python -m tests.offsets.spark.hungry CONNINFO DIRECTORY`.

Prints the error of the run.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql.functions import col, length, lit, repeat

from offsets.spark.errors import JobError
from offsets.spark.runs import RunRequest, running
from offsets.spark.session import SparkSettings, guarded, start_spark

TEXT_BYTES = 2_000_000_000
HEAP_MB = 512
"""About the least that Spark starts with."""


def main(conninfo: str, directory: str) -> None:
    """Build a text that does not fit into the heap."""
    try:
        with running(conninfo, "reconcile", RunRequest("hungry")) as run:
            spark = start_spark(SparkSettings("local[2]", Path(directory), HEAP_MB))
            with guarded(run, spark):
                # Of a column: Spark would compute a constant while it plans, which is another way to fail.
                spark.range(1).select(length(repeat(lit("x"), (col("id") + TEXT_BYTES).cast("int")))).collect()
    except JobError as error:
        print(error)


if __name__ == "__main__":
    main(*sys.argv[1:])
