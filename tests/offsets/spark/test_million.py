"""Many rows: each day has several slices, and files of several runs."""

from __future__ import annotations

import psycopg
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from offsets.core.days import DAY_MS, day_of
from offsets.spark.archive.archiving import ArchiveOptions
from offsets.spark.archive.schema import COLUMNS
from tests.conftest import START_MS
from tests.offsets.spark.support import SEEN, Archive, as_in_service, counted_days, fill, make_day

pytestmark = pytest.mark.whole("large")

RUNS = (6_000, 5_000, 4_000)
DAYS = 3
BATCH = 5_000
SLICE_BLOCKS = 20
LARGE_DAYS = """
select count(*) from pg_inherits
where inhparent = 'offset_commit_log'::regclass and pg_relation_size(inhrelid) / 8192 > %s
"""


def test_many_rows_are_archived_compacted_and_equal_to_those_in_postgres(archive: Archive, spark: SparkSession) -> None:
    first = START_MS // DAY_MS * DAY_MS
    for day in range(DAYS):
        make_day(archive.conninfo, day_of(first) + day)
    options = ArchiveOptions(most_files=len(RUNS) - 1, slice_blocks=SLICE_BLOCKS)
    with as_in_service(spark):
        for rows in RUNS:
            fill(archive.conninfo, rows, first=first, step=DAYS * DAY_MS // rows - 1)
            assert archive.run(options).rows == rows
        assert archive.run(options).rows == 0
    with psycopg.connect(archive.conninfo) as connection:
        assert connection.execute(LARGE_DAYS, (SLICE_BLOCKS,)).fetchone() == (DAYS,), "several slices each"
    table = DeltaTable(f"{archive.path}/journal")
    assert {file.path.split("/")[0] for file in archive.table().files} == {
        f"date={day}" for day in table.to_pyarrow_dataset().to_table(["date"])["date"].unique().to_pylist()
    }
    assert len(table.file_uris()) == DAYS  # each day had a file of each run
    assert differences(archive.conninfo, table.to_pyarrow_dataset().to_table().sort_by("id")) == []
    assert counted_days(archive.conninfo) == (sum(RUNS), True)


def differences(conninfo: str, archived: pa.Table) -> list[object]:
    """The first rows of each batch that differ between the journal and the archive, and missing or surplus rows."""
    found: list[object] = []
    compared = 0
    with psycopg.connect(conninfo) as connection, connection.cursor("journal") as cursor:
        cursor.execute(SEEN.encode())
        while batch := cursor.fetchmany(BATCH):
            part = archived.slice(compared, len(batch)).select(list(COLUMNS))
            rows = list(zip(*(column.to_pylist() for column in part.columns), strict=True))
            found += [pair for pair in zip(batch, rows, strict=False) if pair[0] != pair[1]][:1]
            compared += len(batch)
    if compared != archived.num_rows:
        found.append(f"{compared} rows in the journal, {archived.num_rows} in the archive")
    return found
