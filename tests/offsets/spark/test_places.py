"""Where an archive may be, and what is said when that goes wrong: no Spark, no Postgres."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from offsets.spark.archive.address import delta_options, spark_options
from offsets.spark.archive.archiving import check_complete
from offsets.spark.archive.publishing import publish
from offsets.spark.archive.storage import Storage
from offsets.spark.archive.table import open_table
from offsets.spark.command import SparkStart
from offsets.spark.errors import JobError, one_line
from offsets.spark.runs import Run
from offsets.spark.session import SparkSettings, explained
from tests.offsets.spark.test_versions import VERSIONS

OWN = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9000", "AWS_DEFAULT_REGION": "eu-central-1", "AWS_SECRET_ACCESS_KEY": "s"}


def test_all_clients_of_a_store_are_told_the_same() -> None:
    assert delta_options("s3a://bucket/path", OWN) == {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9000",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "eu-central-1",
    }
    assert spark_options(OWN) == {
        "spark.hadoop.fs.s3a.endpoint": "http://127.0.0.1:9000",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.endpoint.region": "eu-central-1",
    }


def test_amazon_itself_needs_no_settings() -> None:
    assert (delta_options("s3a://bucket/path", {}), delta_options("/folder", OWN), spark_options({})) == ({}, None, {})


def test_https_is_not_given_up() -> None:
    secure = {"AWS_ENDPOINT_URL": "http://ignored", "AWS_ENDPOINT_URL_S3": "https://store"}
    told = delta_options("s3a://bucket", secure)
    assert told == {"AWS_ENDPOINT_URL": "https://store", "AWS_ALLOW_HTTP": "false"}
    assert spark_options(secure)["spark.hadoop.fs.s3a.connection.ssl.enabled"] == "true"


def test_a_library_that_spark_lacks_is_named() -> None:
    lacks = "o1.parquet.\n: java.lang.RuntimeException: java.lang.ClassNotFoundException: "
    lacks += "Class org.apache.hadoop.fs.s3a.S3AFileSystem not found\n\tat org.apache"
    told = explained(Py4JError(lacks))
    assert told.startswith("Spark lacks the library for the archive's path")
    assert "S3AFileSystem" in told


def test_of_an_error_in_java_the_cause_is_said() -> None:
    said = "An error occurred while calling None.org.apache.spark.sql.SparkSession.\n: java.lang.X: stopped\n\tat y"
    assert explained(Py4JError(said)) == "java.lang.X: stopped"
    full = "\nCaused by: java.lang.Y: z\n\tat z\nCaused by: java.io.IOException: No space left on device\n\tat z"
    assert explained(Py4JError(said + full)) == "java.io.IOException: No space left on device (java.lang.X: stopped)"


def test_causes_of_deltalake_are_one_line() -> None:
    shown = "Generic S3 error\n  \x1b[31m↳\x1b[0m Error performing list request\n   \x1b[31m↳\x1b[0m refused\n"
    assert one_line(OSError(shown)) == "Generic S3 error: Error performing list request: refused"


def test_rows_on_disks_that_nobody_shares_are_missed(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    check_complete(storage, 5, 5)
    with pytest.raises(JobError, match=r"Spark wrote 5 rows, 3 of them are at .* nothing was published"):
        check_complete(storage, 5, 3)


def test_a_driver_without_its_lock_writes_no_manifest(tmp_path: Path) -> None:
    """The one that has the lock may have written one of the same number."""
    shutil.copytree(VERSIONS[-1] / "archive", tmp_path / "archive")
    storage = Storage(str(tmp_path / "archive"))
    table = open_table(storage)
    assert table.manifest is not None

    class Lost:
        def confirm(self) -> None:
            raise JobError("the session that held the run's lock was lost")

    before = sorted(file.path for file in storage.files(""))
    planned = table.manifest.renumbered(table.number + 1, uuid4())
    with pytest.raises(JobError, match="lock was lost"):
        publish(cast(Run, Lost()), table, [], planned, adds_rows=False)
    assert sorted(file.path for file in storage.files("")) == before


def test_a_java_that_is_gone_does_not_hide_why_a_run_ended(tmp_path: Path) -> None:
    class Gone:
        stopped = 0

        def stop(self) -> Any:
            self.stopped += 1
            raise Py4JError("SparkSession does not exist in the JVM")

    session = Gone()
    start = SparkStart(lambda: SparkSettings("local[1]", tmp_path))
    start._session = cast(SparkSession, session)
    start.stop()
    assert session.stopped == 1
