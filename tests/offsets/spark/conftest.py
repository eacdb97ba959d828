"""One Spark for all of these tests: its start takes as long as many of them together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from offsets.spark.session import SparkSettings, start_spark
from tests.offsets.spark.support import Archive, for_few_rows
from tests.support.journal import drop_days


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All in one worker, so that Spark is started once."""
    for item in items:
        if item.nodeid.startswith("tests/offsets/spark/"):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Spark keeps its files."""
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="session")
def spark(spark_directory: Path, spark_classes: None) -> Iterator[SparkSession]:
    """Spark on two cores of this machine, for few rows."""
    session = for_few_rows(start_spark(SparkSettings("local[2]", spark_directory)))
    yield session
    session.stop()


@pytest.fixture
def journal(database: str) -> Iterator[str]:
    """Conninfo of a database with an empty journal without days."""
    drop_days(database)
    yield database
    drop_days(database)


@pytest.fixture
def archive(journal: str, spark: SparkSession, tmp_path: Path) -> Archive:
    """An archive of the journal, at a path where nothing is yet."""
    return Archive(journal, str(tmp_path / "archive"), lambda: spark)
