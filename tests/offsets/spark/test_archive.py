"""The archive: rows as they were in the journal, each once, whatever went on meanwhile."""

from __future__ import annotations

import threading

import duckdb
import psycopg
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from offsets.core.days import DAY_MS, day_of
from offsets.spark.archive.archiving import ArchiveOptions
from offsets.spark.archive.schema import COLUMNS
from offsets.spark.archive.table import read_archive
from tests.conftest import START_MS
from tests.offsets.spark.support import Archive, fill, journal_rows, make_day, rows_of, runs_of

pytestmark = pytest.mark.whole("test_round_trip has Spark archive, restore and reconcile")

INSERT = "insert into offset_commit_log (at, kind, group_name, topic, partition, committed_offset) values "
INSERT += f"({START_MS}, 'commit', 'open', 't', 0, 1)"


def test_every_row_is_archived_as_it_is(archive: Archive, spark: SparkSession) -> None:
    for day in range(day_of(START_MS), day_of(START_MS) + 2):
        make_day(archive.conninfo, day)  # what comes later lies in the default partition
    fill(archive.conninfo, 3_000)
    report = archive.run()
    expected = journal_rows(archive.conninfo)
    assert (report.rows, len(expected)) == (3_000, 3_000)
    assert archive.rows() == expected
    assert rows_of(read_archive(spark, archive.table()).toArrow()) == expected
    assert [day.rows for day in report.days] == [
        len([row for row in expected if row[1] // DAY_MS == day_of(START_MS) + n]) for n in range(4)
    ]
    assert runs_of(archive.conninfo) == [("archive", "succeeded", "")]


def test_a_second_run_adds_what_is_new_and_nothing_else(archive: Archive) -> None:
    fill(archive.conninfo, 500)
    archive.run()
    again = archive.run()
    assert (again.rows, again.files, again.manifest) == (0, (), 1)
    fill(archive.conninfo, 200, first=START_MS + DAY_MS)
    assert archive.run().rows == 200
    assert archive.rows() == journal_rows(archive.conninfo)


def test_a_transaction_that_is_open_during_a_run_is_in_the_next_one(archive: Archive) -> None:
    fill(archive.conninfo, 100)
    with psycopg.connect(archive.conninfo) as holder:
        holder.execute(INSERT)
        fill(archive.conninfo, 50, first=START_MS + DAY_MS)  # later ids and a later transaction, committed already
        assert archive.run().rows == 100
    assert archive.run().rows == 51
    assert archive.rows() == journal_rows(archive.conninfo)


def test_the_archive_is_read_without_spark(archive: Archive) -> None:
    """As docs/archive.md says: by the list of files, and by deltalake's own dataset, filters and all."""
    fill(archive.conninfo, 400)
    archive.run()
    table = DeltaTable(f"{archive.path}/journal")
    quoted = ", ".join(f'"{name}"' for name in COLUMNS)  # `at` is a word of DuckDB's
    query = f"select {quoted} from read_parquet(?, hive_partitioning=true) order by id"
    assert duckdb.execute(query, [table.file_uris()]).fetchall() == journal_rows(archive.conninfo)
    dataset = table.to_pyarrow_dataset()
    assert dataset.to_table(filter=pc.field("topic") == "topic-1").num_rows == 80
    assert sum(pq.read_metadata(path).num_rows for path in table.file_uris()) == 400


def test_small_files_are_compacted_in_one_entry(archive: Archive) -> None:
    options = ArchiveOptions(most_files=1)
    fill(archive.conninfo, 50, step=1)
    assert archive.run(options).compacted.replaced == 0
    fill(archive.conninfo, 50, step=1)
    before = archive.table().number
    report = archive.run(options)
    assert (report.compacted.replaced, report.compacted.by) == (2, 1)
    assert archive.table().number == before + 2
    assert archive.rows() == journal_rows(archive.conninfo)
    assert len(DeltaTable(f"{archive.path}/journal").file_uris()) == 1
    fill(archive.conninfo, 10)
    archive.run(options)
    assert archive.rows() == journal_rows(archive.conninfo)


def test_commits_go_on_during_runs(archive: Archive) -> None:
    """Transactions of several lines that end in another order than they began, before, during and after each run."""
    over = threading.Event()

    def commit(pause: float) -> None:
        with psycopg.connect(archive.conninfo) as connection:
            while not over.is_set():
                for _ in range(3):
                    connection.execute(INSERT)
                over.wait(pause)
                connection.commit()

    writers = [threading.Thread(target=commit, args=(pause,)) for pause in (0.01, 0.2, 1.5)]
    for writer in writers:
        writer.start()
    seen = [set(archive.rows()) for _ in range(3) if archive.run()]
    over.set()
    for writer in writers:
        writer.join()
    archive.run()
    assert archive.rows() == journal_rows(archive.conninfo)
    assert seen[0] <= seen[1] <= seen[2] <= set(archive.rows())
