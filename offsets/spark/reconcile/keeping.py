"""Where findings go: a bounded number into Postgres, all of them to Parquet beside the archive, a count to /metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb
from pyspark.sql import DataFrame

from kcoord.database.sql import queries
from offsets.spark.archive.storage import Storage
from offsets.spark.errors import JobError, first_line
from offsets.spark.postgres import Q, connect

FOLDER = "findings"
UNFINISHED = f"{FOLDER}/_unfinished"
"""Readers of Parquet ignore names that begin with `_`."""

COUNTER = "reconcile_findings"
"""The name that `kcoord.database.counters.Counted` uses."""

RUNS_KEPT = 50
"""The number of runs whose findings stay in Postgres."""


def export(found: DataFrame, storage: Storage, run_id: str) -> list[str]:
    """Write all findings of a run to `findings/run=<id>/`; returns the paths of the files. Raises JobError.

    Leftovers of a killed run are removed first: only one run exists at a time.
    """
    storage.remove_folder(UNFINISHED)
    found.coalesce(1).write.parquet(storage.spark_path(UNFINISHED))
    exported = []
    for number, file in enumerate(sorted(file.path for file in storage.files(UNFINISHED))):
        if file.endswith(".parquet"):
            path = f"{FOLDER}/run={run_id}/{number:05}.parquet"
            storage.move(file, path)
            exported.append(path)
    storage.remove_folder(UNFINISHED)
    return exported


def store(conninfo: str, run_id: UUID, listed: Sequence[Mapping[str, Any]], total: int) -> None:
    """Store findings with their run, delete those of old runs, and count them, in one transaction. Raises JobError."""
    rows = [
        {**one, "run": run_id, "number": number, "evidence": Jsonb(one["evidence"])}
        for number, one in enumerate(listed, start=1)
    ]
    try:
        with connect(conninfo) as connection, connection.cursor() as cursor:
            cursor.executemany(Q.store_finding.encode(), rows)
            cursor.execute(Q.forget_findings.encode(), {"runs": RUNS_KEPT})
            if total:
                cursor.execute(queries("kcoord").count.encode(), {"name": COUNTER, "by": total})
    except psycopg.Error as error:
        raise JobError(f"the findings cannot be stored: {first_line(error)}") from error
