"""The jobs on DataFrames made by hand: no Postgres."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from offsets.spark.archive.compaction import crowded
from offsets.spark.archive.jobs import also_in, buckets_for, dated, day_totals, laid_out, not_in
from offsets.spark.archive.manifest import ArchivedFile
from offsets.spark.archive.schema import COLUMNS
from offsets.spark.tables import TABLES

pytestmark = pytest.mark.whole("test_round_trip has Spark archive, restore and reconcile")

DAY = 86_400_000
SCHEMA = ", ".join(f"`{name}` {kind}" for name, kind in TABLES["journal"].columns.items())


def line(number: int, **changed: Any) -> tuple[Any, ...]:
    """A line of the journal."""
    default = {
        **dict.fromkeys(COLUMNS, None),
        "id": number,
        "at": number,
        "xact_id": 1,
        "kind": "commit",
        "group_name": "g",
        "topic": "t",
        "partition": 0,
        "leader_epoch": -1,
        "metadata": "",
        "member_id": "",
        "generation_id": -1,
        "client_id": "",
        "principal": "",
    }
    return tuple({**default, **changed}[name] for name in COLUMNS)


def test_a_day_is_that_of_utc(spark: SparkSession) -> None:
    rows = dated(spark.createDataFrame([line(1, at=DAY - 1), line(2, at=DAY)], SCHEMA))
    assert [row["date"].isoformat() for row in rows.orderBy("id").collect()] == ["1970-01-01", "1970-01-02"]


def test_totals_tell_null_from_empty_and_do_not_depend_on_order(spark: SparkSession) -> None:
    def total(*lines: tuple[Any, ...]) -> tuple[int, int]:
        (row,) = day_totals(dated(spark.createDataFrame(list(lines), SCHEMA))).collect()
        return row["rows"], row["checksum"]

    one, other = line(1, transactional_id=None), line(2, transactional_id="")
    assert total(one, other) == total(other, one)
    assert total(line(1, transactional_id="")) != total(one)
    assert total(line(1, topic="a", metadata="bc")) != total(line(1, topic="ab", metadata="c"))


def test_a_group_and_day_lie_in_one_file(spark: SparkSession) -> None:
    lines = [line(n, at=n * DAY // 50, group_name=f"g{n % 10}") for n in range(200)]
    rows = laid_out(dated(spark.createDataFrame(lines, SCHEMA)), 4)
    places = rows.selectExpr("spark_partition_id() as place", "group_name", "date").distinct().collect()
    assert len(places) == len({(row["group_name"], row["date"]) for row in places})
    assert rows.count() == 200


def test_rows_are_compared_whole_and_null_equals_null(spark: SparkSession) -> None:
    journal = dated(spark.createDataFrame([line(1), line(2, metadata="now"), line(3)], SCHEMA))
    archived = dated(spark.createDataFrame([line(1), line(2, metadata="then"), line(4)], SCHEMA))
    assert [row["id"] for row in not_in(journal, archived).orderBy("id").collect()] == [2, 3]
    assert [row["id"] for row in also_in(archived, journal).collect()] == [1]


def test_files_grow_with_the_journal() -> None:
    assert [buckets_for(size) for size in (0, 1, 512 << 20, (512 << 20) + 1, 1 << 50)] == [1, 1, 1, 2, 256]


def test_days_with_many_small_files_are_crowded() -> None:
    small = [ArchivedFile(f"date=2026-01-01/{n}", "2026-01-01", 1, 10, "") for n in range(3)]
    large = ArchivedFile("date=2026-01-01/large", "2026-01-01", 1, 1 << 30, "")
    other = ArchivedFile("date=2026-01-02/0", "2026-01-02", 1, 10, "")
    assert crowded([*small, large, other], most=2) == small
    assert crowded([*small, large, other], most=3) == []
