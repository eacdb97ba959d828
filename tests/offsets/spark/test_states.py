"""The state of groups at an instant, computed by Spark and by pyarrow, against a plain computation."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from offsets.core.days import DAY_MS, EPOCH, written_day
from offsets.spark.archive.lookup import first_instant, group_at
from offsets.spark.archive.manifest import ArchivedFile
from offsets.spark.archive.schema import ARROW_SCHEMA, COLUMNS, SPARK_SCHEMA
from offsets.spark.archive.states import collected, newest, states_at
from offsets.spark.archive.storage import Storage
from offsets.spark.errors import ArchiveDamaged, JobError

FIRST_DAY, DAYS = 19_000, 6
Row = dict[str, Any]


def history(seed: int, count: int = 400) -> list[Row]:
    """Rows of three groups over some days: removals, several in one millisecond, ids that do not follow time."""
    chance = random.Random(seed)
    rows = []
    for number in range(count):
        at = chance.randrange(FIRST_DAY * DAY_MS, (FIRST_DAY + DAYS) * DAY_MS) // 3_600_000 * 3_600_000
        row: Row = dict.fromkeys(COLUMNS, "")
        row |= {"id": number, "at": at, "xact_id": 1, "kind": "commit", "leader_epoch": -1, "generation_id": -1}
        row |= {"group_name": chance.choice("abü"), "topic": chance.choice("tu"), "partition": chance.randrange(3)}
        row |= {"committed_offset": None if chance.random() < 0.2 else number, "expire_timestamp": None}
        row |= {"transactional_id": None, "plan_id": None}
        rows.append(row)
    return rows


def expected(rows: list[Row], group: str, at: int) -> dict[tuple[str, int], int | None]:
    """The last of each partition by time, and of those of one instant the one written last."""
    found: dict[tuple[str, int], int | None] = {}
    for row in sorted(rows, key=lambda row: (row["at"], row["id"])):
        if row["group_name"] == group and row["at"] <= at:
            found[row["topic"], row["partition"]] = row["committed_offset"]
    return found


def dated(row: Row) -> Row:
    """A row with its day, as the archive has it."""
    return {**row, "date": EPOCH.fromisoformat(written_day(row["at"] // DAY_MS))}


INSTANTS = [FIRST_DAY * DAY_MS - 1, FIRST_DAY * DAY_MS + 12 * 3_600_000, (FIRST_DAY + 3) * DAY_MS]
INSTANTS.append((FIRST_DAY + DAYS) * DAY_MS)


@pytest.mark.whole("test_round_trip has Spark archive, restore and reconcile")
def test_spark_computes_the_state_of_all_groups(spark: SparkSession) -> None:
    rows = history(1)
    table = pa.Table.from_pylist([dated(row) for row in rows], ARROW_SCHEMA)
    frame = spark.createDataFrame(table, SPARK_SCHEMA).cache()
    for at in INSTANTS:
        states = collected(states_at(frame, at))
        assert sorted(states.groups) == sorted({row["group_name"] for row in rows if row["at"] <= at})
        for group in "abüx":
            assert states.of(group) == expected(rows, group, at)
    assert newest(frame) == (len(rows) - 1, max(row["at"] for row in rows))
    frame.unpersist()


@pytest.fixture
def archived(tmp_path: Path) -> tuple[Storage, list[ArchivedFile], list[Row]]:
    """The same rows as files of an archive, two for each day."""
    rows, files = history(2), []
    parts: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in rows:
        parts[written_day(row["at"] // DAY_MS), row["id"] % 2].append(row)
    schema = pa.schema([field for field in ARROW_SCHEMA if field.name != "date"])
    for (date, number), some in parts.items():
        path = tmp_path / "journal" / f"date={date}" / f"{number}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(some, schema), path, row_group_size=20)
        files.append(ArchivedFile(f"date={date}/{number}.parquet", date, len(some), path.stat().st_size, ""))
    return Storage(str(tmp_path)), files, rows


@pytest.mark.parametrize("group", "abüx")
def test_pyarrow_finds_the_state_of_a_group(
    archived: tuple[Storage, list[ArchivedFile], list[Row]], group: str
) -> None:
    storage, files, rows = archived
    for at in INSTANTS:
        known = expected(rows, group, at)
        assert group_at(storage, files, group, at) == known, at
        some = set(list(known)[:2])
        found = group_at(storage, files, group, at, some)
        assert {key: found[key] for key in some} == {key: known[key] for key in some}, at
    assert first_instant(storage, files) == min(row["at"] for row in rows)


def test_files_of_later_days_are_not_opened(archived: tuple[Storage, list[ArchivedFile], list[Row]]) -> None:
    storage, files, rows = archived
    last = max(file.date for file in files)
    for file in files:
        if file.date == last:
            storage.remove(f"journal/{file.path}")
    at = (FIRST_DAY + DAYS - 1) * DAY_MS - 1
    assert group_at(storage, files, "a", at) == expected(rows, "a", at)
    with pytest.raises(ArchiveDamaged, match=r"journal/date=.* is missing"):
        group_at(storage, files, "a", at + DAY_MS)


def test_a_file_that_is_no_parquet(archived: tuple[Storage, list[ArchivedFile], list[Row]]) -> None:
    storage, files, _ = archived
    for file in files:
        storage.write(f"journal/{file.path}", b"x" * file.size)
    with pytest.raises(JobError, match="the archive cannot be used"):
        group_at(storage, files, "a", INSTANTS[-1])
