"""One Spark for all of these tests: its start takes as long as many of them together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from offsets.spark.session import SparkSettings, start_spark
from tests.spark.support import Archive
from tests.support.journal import drop_days

HERE = Path(__file__).parent

UNPROVEN = {
    "test_a_killed_run_neither_loses_nor_doubles_a_row[writing",
    "test_a_killed_run_neither_loses_nor_doubles_a_row[staged",
    "test_a_killed_run_neither_loses_nor_doubles_a_row[moved",
    "test_a_killed_run_neither_loses_nor_doubles_a_row[compacted",
    "test_the_same_without_django_on_the_java_of_the_wheel",
    "test_what_cannot_run_is_one_line_and_status_2",
    "test_reconcile_says_what_it_found_by_its_status",
    "test_the_history_is_archive_and_journal",
    "test_what_was_dropped_without_archive_is_not_missing",
    "test_an_archive_that_is_gone_is_named",
    "test_commits_that_go_on_are_no_findings",
    "test_nothing_is_found_in_clean_histories",
    "test_what_is_older_than_the_events_is_not_judged",
    "test_ten_moments_of_an_archive_whose_days_were_dropped",
    "test_an_empty_database_is_filled_from_the_archive_alone",
    "test_a_filling_that_was_cut_short_goes_on",
}
"""Tests of work that is not finished: nobody has seen them pass as they stand. Each leaves this list by being run."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All in one worker, so that Spark is started once."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("spark"))
            if any(item.name.startswith(name) for name in UNPROVEN):
                item.add_marker(pytest.mark.skip(reason="unfinished work: UNPROVEN in tests/spark/conftest.py"))


@pytest.fixture(scope="session")
def spark_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Spark keeps its files."""
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="session")
def spark(spark_directory: Path) -> Iterator[SparkSession]:
    """Spark on two cores of this machine."""
    session = start_spark(SparkSettings("local[2]", spark_directory))
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
