"""What a process of a job does while Spark's packages are still being installed (`kcoord.packages`).

Nothing here imports pyspark.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from uuid import UUID

import psycopg

from kcoord.packages import SparkState, spark_packages, wait_for_spark
from offsets.spark.errors import JobError, first_line
from offsets.spark.postgres import Connection, Q, connect

CANNOT_RUN = 2
"""Exit status of a job that cannot run."""
STAGE = "waiting for Spark's packages"
SAID_EVERY_SECONDS = 10.0


class Withdrawn(Exception):
    """The requested run was cancelled while its process waited."""


def require_packages() -> None:
    """Raises JobError unless Spark's packages are installed: what reads the archive needs some of them."""
    found = spark_packages()
    if found.state is not SparkState.READY:
        raise JobError(found.why)


def wait_for_packages(conninfo: str, arguments: Sequence[str] = ()) -> None:
    """Return when jobs can run, at once if they can now. `arguments`: of the command, `--run-id` among them or not.

    Meanwhile the row of a requested run has heartbeats and says what it waits for, and standard error says so every ten
    seconds. Raises PackagesMissing if nobody installs them, Withdrawn, and JobError if Postgres cannot be reached.
    """
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--run-id", type=UUID)
    run_id = parser.parse_known_args(arguments)[0].run_id
    said = -SAID_EVERY_SECONDS
    with ExitStack() as stack:
        connection: Connection | None = None

        def waiting(why: str, seconds: float) -> bool:
            nonlocal connection, said
            if seconds - said >= SAID_EVERY_SECONDS:
                print(f"{why} ({seconds:.0f} s)", file=sys.stderr, flush=True)  # noqa: T201
                said = seconds
            if run_id is None:
                return True
            connection = connection or stack.enter_context(connect(conninfo, autocommit=True))
            try:
                return (
                    connection.execute(Q.wait_for_run.encode(), {"id": run_id, "stage": STAGE}).fetchone() is not None
                )
            except psycopg.Error as error:
                raise JobError(f"lost the database while waiting: {first_line(error)}; run it again") from error

        if not wait_for_spark(waiting):
            raise Withdrawn("the run was cancelled before it began")
