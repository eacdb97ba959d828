"""Reports: their functions on small tables, and a run over an archive."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from psycopg.types.json import Jsonb
from pyspark.sql import DataFrame, SparkSession

from offsets.core.days import DAY_MS
from offsets.spark.errors import JobError
from offsets.spark.report import jobs
from offsets.spark.report.reporting import Rebalances, ReportOptions, read_rebalances, report, totals_by_day
from offsets.spark.runs import RunRequest, running
from tests.offsets.spark.support import Archive, fill, runs_of
from tests.support.spark_reports import SCHEMAS

pytestmark = pytest.mark.whole("test_round_trip has Spark archive, restore and reconcile")

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


def test_extreme_offsets_stay_within_64_bits(spark: SparkSession) -> None:
    """Of one commit, of a sum, and of a total over groups: clients choose offsets."""
    low, most = -(2**63), 2**63 - 1
    lines = [
        (10 * partition + number, 1_000, "commit", group, "t", partition, offset, 1, "a")
        for partition, group in enumerate(("g", "g", "h"))
        for number, offset in enumerate((low, most))
    ]
    moved = jobs.moves(spark.createDataFrame(lines, SCHEMA))
    consumed = jobs.consumption(moved)
    assert rows(consumed, "group_name", "consumed") == [("g", most), ("h", most)]
    assert rows(jobs.totals(consumed), "consumed") == [(most,)]
    assert rows(jobs.busiest_partitions(moved, 1), "consumed") == [(most,)]
    assert consumed.schema["consumed"].dataType == jobs.totals(consumed).schema["consumed"].dataType


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


EVENTS = [
    ("g", 1_000, "member_joined", {}),
    ("g", 1_001, "rebalance_started", {"cause": "member_joined"}),
    ("g", 1_002, "rebalance_completed", {"members": 1}),
    ("g", 2_000, "rebalance_started", {"cause": "member_joined"}),
    ("g", DAY_MS - 1, "rebalance_started", {"cause": "session_expired"}),
    ("g", DAY_MS, "rebalance_started", {}),
    ("h", 900, "group_created", {}),
    ("h", 901, "group_epoch_bumped", {"cause": "topics_changed"}),
    ("i", 5_000, "offsets_reset", {"partitions": 3}),
]


def put_events(conninfo: str) -> None:
    """Write `EVENTS`."""
    statement = "insert into groups_event (group_name, at, kind, generation_id, detail) values (%s, %s, %s, 1, %s)"
    with psycopg.connect(conninfo, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.executemany(statement, [(name, at, kind, Jsonb(detail)) for name, at, kind, detail in EVENTS])


def test_rebalances_are_counted_by_the_events_that_begin_them(journal: str, spark: SparkSession) -> None:
    put_events(journal)
    found = read_rebalances(spark, journal, ReportOptions())
    assert found.since == 900
    assert rows(found.table, "group_name", "date", "rebalances", "causes", "since") == [
        ("g", "1970-01-01", 3, {"member_joined": 2, "session_expired": 1}, 900),
        ("g", "1970-01-02", 1, {"unknown": 1}, 900),
        ("h", "1970-01-01", 1, {"topics_changed": 1}, 900),
        ("i", "1970-01-01", 0, {}, 900),
    ]


def test_a_group_with_as_many_events_as_are_kept_may_have_lost_some(journal: str, spark: SparkSession) -> None:
    put_events(journal)
    found = read_rebalances(spark, journal, ReportOptions(events_kept=6)).table
    assert {(row[0], row[1]) for row in rows(found, "group_name", "since")} == {("g", 1_000), ("h", 900), ("i", 900)}


def test_without_events_nothing_is_known_of_the_time_before(journal: str, spark: SparkSession) -> None:
    before = int(time.time() * 1000)
    found = read_rebalances(spark, journal, ReportOptions())
    assert before - 1_000 <= found.since <= int(time.time() * 1000) + 1_000
    assert rows(found.table, "group_name") == []


def test_days_before_the_events_have_no_number_of_rebalances(moved: DataFrame, spark: SparkSession) -> None:
    begun = spark.createDataFrame([("g", "1970-01-03", 2)], "group_name string, date string, rebalances bigint")
    by_day = begun.withColumn("date", begun["date"].cast("date"))
    found = totals_by_day(moved, Rebalances(by_day, DAY_MS + 5))
    assert [(day["date"], day["commits"], day["rebalances"]) for day in found] == [
        ("1970-01-01", 4, None),
        ("1970-01-02", 4, 0),
        ("1970-01-03", 0, 2),
    ]


def test_each_group_in_one_row(moved: DataFrame, journal: str, spark: SparkSession) -> None:
    put_events(journal)
    found = read_rebalances(spark, journal, ReportOptions())
    columns = ("group_name", "commits", "consumed", "rewinds", "members", "rebalances", "last_commit_at")
    by_group = jobs.groups(moved, found.table, found.since)
    assert rows(by_group, *columns) == [
        ("g", 6, 27, 1, 2, 4, DAY_MS + 4),
        ("h", 2, 200, 0, 0, 1, DAY_MS + 6),
        ("i", 0, 0, 0, 0, 0, None),
    ]
    nothing = jobs.groups(moved, found.table.where("group_name = 'i'"), 77)
    assert rows(nothing, "group_name", "rebalances", "rebalances_since") == [("g", 0, 77), ("h", 0, 77), ("i", 0, 900)]


def test_a_run_keeps_its_tables_beside_the_archive(archive: Archive, spark: SparkSession) -> None:
    with (
        pytest.raises(JobError, match=r"run `manage\.py archive` first"),
        running(archive.conninfo, "report", RunRequest("test")) as run,
    ):
        report(run, lambda: spark, archive.conninfo, archive.storage(), ReportOptions())
    fill(archive.conninfo, 500, step=DAY_MS // 100)
    put_events(archive.conninfo)
    archive.run()
    with running(archive.conninfo, "report", RunRequest("test")) as run:
        made = report(run, lambda: spark, archive.conninfo, archive.storage(), ReportOptions())
        run.outcome = made.outcome()
    folder = Path(archive.path) / "reports" / f"run={run.id}"
    assert {path.name for path in folder.iterdir()} == set(made.tables)
    for name, count in made.tables.items():
        assert ds.dataset(folder / name).count_rows() == count, name
    for name, schema in SCHEMAS.items():
        found = ds.dataset(folder / name).schema
        assert {one.name: one.type for one in found} == {one.name: one.type for one in schema}, name
    assert not (Path(archive.path) / "reports" / "_unfinished").exists()
    by_group = pq.read_table(folder / "consumption")
    assert by_group.column("group_name").to_pylist() == sorted(by_group.column("group_name").to_pylist())
    rebalances = {day["date"]: day["rebalances"] for day in made.days}
    assert (rebalances["1970-01-01"], rebalances["1970-01-02"]) == (4, 1)
    assert rebalances[made.days[-1]["date"]] == 0
    assert made.rebalances_since == 900
    commits = sum(day["commits"] for day in made.days)
    assert commits == made.rows == sum(1 for row in archive.rows() if row[3] in jobs.COMMITS)
    assert [state for _, state, _ in runs_of(archive.conninfo)] == ["failed", "succeeded", "succeeded"]
