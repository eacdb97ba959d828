"""Reports: their functions on small tables, and a run over an archive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from pyspark.sql import DataFrame, SparkSession

from offsets.core.days import DAY_MS
from offsets.spark.errors import JobError
from offsets.spark.report import jobs
from offsets.spark.report.reporting import ReportOptions, report
from offsets.spark.runs import RunRequest, running
from tests.spark.support import Archive, fill, runs_of

SCHEMA = (
    "id bigint, at bigint, kind string, group_name string, topic string, partition int, committed_offset bigint,"
    " generation_id int, member_id string"
)
LINES = [
    (1, 1_000, "commit", "g", "t", 0, 10, 1, "a"),
    (2, 2_000, "commit", "g", "t", 0, 30, 1, "a"),
    (3, 3_000, "commit", "g", "t", 0, 25, 2, "b"),
    (4, 4_000, "commit", "g", "t", 1, 100, 2, "b"),
    (5, DAY_MS + 1, "reset", "g", "t", 0, 0, -1, ""),
    (6, DAY_MS + 2, "commit", "g", "t", 0, 7, 3, "b"),
    (7, DAY_MS + 3, "delete", "g", "t", 0, None, -1, ""),
    (8, DAY_MS + 4, "txn_commit", "g", "t", 0, 9, 3, "b"),
    (9, DAY_MS + 5, "commit", "h", "t", 1, 5, -1, ""),
    (10, DAY_MS + 6, "commit", "h", "t", 1, 205, -1, ""),
]


@pytest.fixture(scope="module")
def moved(spark: SparkSession) -> DataFrame:
    """The commits of `LINES`."""
    return jobs.moves(spark.createDataFrame(LINES, SCHEMA)).persist()


def rows(frame: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """Rows, dates as texts, sorted."""
    found = frame.select(*columns).collect()
    return sorted(tuple(str(one) if name == "date" else one for name, one in row.asDict().items()) for row in found)


def test_consumption_counts_what_commits_moved_forward(moved: DataFrame) -> None:
    columns = ("group_name", "date", "commits", "consumed", "rewinds", "partitions")
    assert rows(jobs.consumption(moved), *columns) == [
        ("g", "1970-01-01", 4, 20, 1, 2),
        ("g", "1970-01-02", 2, 7, 0, 1),  # a reset is no rewind, and after a removal nothing is known
        ("h", "1970-01-02", 2, 200, 0, 1),
    ]
    (rate,) = [row[1] for row in rows(jobs.consumption(moved), "group_name", "records_per_second") if row[0] == "h"]
    assert rate == pytest.approx(200 / 86_400)
    assert rows(jobs.totals(jobs.consumption(moved)), "date", "groups", "commits", "consumed", "rewinds") == [
        ("1970-01-01", 1, 4, 20, 1),
        ("1970-01-02", 2, 4, 207, 0),
    ]


def test_the_busiest_partitions_come_first(moved: DataFrame) -> None:
    found = jobs.busiest_partitions(moved, 1).collect()
    assert [tuple(row) for row in found] == [("t", 1, 200, 3, 2)]


def test_groups_are_idle_from_their_last_commit_on(moved: DataFrame) -> None:
    last = DAY_MS + 4
    assert rows(jobs.idle_groups(moved, last + 1_000, 1_000), "group_name", "idle_ms") == [("g", 1_000)]
    assert rows(jobs.idle_groups(moved, last + 999, 1_000), "group_name") == []


def test_generations_and_members_that_come_and_go(moved: DataFrame) -> None:
    assert rows(jobs.generations(moved), "group_name", "date", "generations") == [
        ("g", "1970-01-01", 2),
        ("g", "1970-01-02", 1),
    ]
    seen = jobs.members(moved)
    assert rows(seen, "member_id", "first_commit_at", "last_commit_at", "generations", "commits") == [
        ("a", 1_000, 2_000, 1, 2),
        ("b", 3_000, DAY_MS + 4, 2, 4),
    ]
    assert rows(jobs.turnover(seen), "group_name", "date", "came", "went") == [
        ("g", "1970-01-01", 2, 1),
        ("g", "1970-01-02", 0, 1),
    ]


def test_a_run_keeps_its_tables_beside_the_archive(archive: Archive, spark: SparkSession) -> None:
    with (
        pytest.raises(JobError, match=r"run `manage\.py archive` first"),
        running(archive.conninfo, "report", RunRequest("test")) as run,
    ):
        report(run, lambda: spark, archive.storage(), ReportOptions())
    fill(archive.conninfo, 5_000)
    archive.run()
    with running(archive.conninfo, "report", RunRequest("test")) as run:
        made = report(run, lambda: spark, archive.storage(), ReportOptions())
        run.outcome = made.outcome()
    folder = Path(archive.path) / "reports" / f"run={run.id}"
    assert {path.name for path in folder.iterdir()} == set(made.tables)
    for name, count in made.tables.items():
        assert ds.dataset(folder / name).count_rows() == count, name
    assert not (Path(archive.path) / "reports" / "_unfinished").exists()
    commits = sum(day["commits"] for day in made.days)
    assert commits == made.rows == sum(1 for row in archive.rows() if row[3] in jobs.COMMITS)
    assert [state for _, state, _ in runs_of(archive.conninfo)] == ["failed", "succeeded", "succeeded"]
