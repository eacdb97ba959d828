"""The data source: slices of one snapshot, filters and columns; failures that say what is wrong."""

from __future__ import annotations

import pickle
import time

import psycopg
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import datasource as api

from offsets.spark.errors import JobError
from offsets.spark.postgres import Q, connect, exported_snapshot, use_snapshot, without_secrets
from offsets.spark.session import explained
from offsets.spark.source import PostgresReader, Slice, read_table
from offsets.spark.tables import TABLES
from tests.offsets.spark.support import fill, journal_rows, rows_of

POSTGRES_NAMES = {"int8": "bigint", "int4": "int", "int2": "int", "bool": "boolean"}


def test_columns_are_those_of_the_statements(database: str) -> None:
    """One list for Spark and one in SQL: they must not drift apart."""
    with psycopg.connect(database) as connection:
        for name, table in TABLES.items():
            statement = getattr(Q, name).format(table=table.relation)
            found = connection.execute(f"select * from ({statement}) source limit 0".encode()).description
            assert found is not None
            types = {one.name: connection.adapters.types[one.type_code].name for one in found if one.name != "block"}
            assert {name: POSTGRES_NAMES.get(kind, "string") for name, kind in types.items()} == dict(table.columns)


def reader(**options: str) -> PostgresReader:
    """A reader of the journal."""
    given = {"table": "journal", "columns": "id,topic", "snapshot": "x", "conninfo": "", "slice_blocks": "10"}
    return PostgresReader({**given, **options}, ["id", "topic"])


def test_filters_that_postgres_decides_as_spark_does_are_pushed() -> None:
    taken = reader()
    back = list(
        taken.pushFilters(
            [
                api.EqualTo(("topic",), "t"),
                api.GreaterThan(("at",), 5),
                api.In(("partition",), (1, 2)),
                api.IsNotNull(("committed_offset",)),
                api.LessThan(("topic",), "t"),  # the database's collation is not Spark's
                api.Not(api.EqualTo(("topic",), "t")),
                api.EqualTo(("elsewhere",), 1),
            ]
        )
    )
    assert [type(one) for one in back] == [api.LessThan, api.Not, api.EqualTo]
    with_leaf = taken._statement(Slice("public", "leaf", 1, 0, 10), psycopg.sql.Identifier("leaf")).as_string(None)
    assert """"topic" = 't' and "at" > 5 and "partition" in (1, 2) and "committed_offset" is not null""" in with_leaf


@pytest.mark.whole("test_round_trip has Spark archive, restore and reconcile")
def test_columns_filters_and_slices_lose_nothing(journal: str, spark: SparkSession) -> None:
    fill(journal, 1_500)
    with exported_snapshot(journal) as snapshot:
        rows = read_table(spark, "journal", journal, snapshot.id, slice_blocks=3)
        assert rows_of(rows.toArrow()) == journal_rows(journal)
        found = rows.where(
            "partition in (1, 3) and committed_offset is not null and metadata = '' and topic > 'topic-2'"
        )
        with psycopg.connect(journal) as connection:
            expected = connection.execute(
                "select count(*) from offset_commit_log where partition in (1, 3) and committed_offset is not null"
                " and metadata = '' and topic > 'topic-2'"
            ).fetchone()
        assert (found.count(),) == expected
        fill(journal, 10)  # after the snapshot
        assert read_table(spark, "journal", journal, snapshot.id, columns=["partition"]).count() == 1_500
        lone = read_table(spark, "journal", journal, snapshot.id, columns=["expire_timestamp"])
        assert lone.where("expire_timestamp is null").count() == 1_200  # each an empty line of the COPY


@pytest.mark.whole("test_round_trip has Spark archive, restore and reconcile")
def test_every_table_is_read(journal: str, spark: SparkSession) -> None:
    """Those that are not partitioned as well: a topic and its watermark, and tables that are empty."""
    topic = "insert into groups_topic (name, topic_id, partitions, labels, created_at)"
    topic += " values ('orders', '7b1c1bd0-0000-4000-8000-000000000001', 3, '{}', 5) returning id"
    with psycopg.connect(journal, autocommit=True) as connection:
        row = connection.execute(topic.encode()).fetchone()
        assert row is not None
        connection.execute(
            "insert into groups_watermark (topic_id, partition, log_start_offset, log_end_offset, sampled_at)"
            " values (%s, 1, 10, 20, 6)",
            row,
        )
    expected = {
        "topics": [(row[0], "orders", "7b1c1bd0-0000-4000-8000-000000000001", 3, 5)],
        "watermarks": [("orders", row[0], 1, 10, 20, 6)],
    }
    with exported_snapshot(journal) as snapshot:
        for name in TABLES:
            found = read_table(spark, name, journal, snapshot.id).collect()
            assert [tuple(one) for one in found] == expected.get(name, []), name


@pytest.mark.whole("test_round_trip has Spark archive, restore and reconcile")
def test_a_snapshot_that_ended_is_named(journal: str, spark: SparkSession) -> None:
    with exported_snapshot(journal) as snapshot:
        rows = read_table(spark, "journal", journal, snapshot.id)
    with pytest.raises(PySparkException) as told:
        rows.count()
    assert "the snapshot of the run has expired" in explained(told.value)
    assert "KCOORD_ARCHIVE_SNAPSHOT_TIMEOUT_MS" in explained(told.value)


def test_a_snapshot_does_not_outlive_its_deadline(journal: str) -> None:
    with exported_snapshot(journal, deadline_ms=200) as snapshot:
        with psycopg.connect(journal, autocommit=True) as connection:
            gone = "select count(*) = 0 from pg_stat_activity where application_name = 'kcoord-spark'"
            gone += " and datname = current_database()"
            while connection.execute(gone).fetchone() != (True,):
                time.sleep(0.05)
        with connect(journal) as late, pytest.raises(psycopg.Error, match="does not exist"):
            use_snapshot(late, snapshot.id)


@pytest.mark.whole("test_round_trip has Spark archive, restore and reconcile")
def test_a_password_is_neither_in_the_plan_nor_pickled(
    journal: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PGPASSWORD", "")
    conninfo = f"{journal} password=hunter2"
    with exported_snapshot(journal) as snapshot:
        rows = read_table(spark, "journal", conninfo, snapshot.id)
        rows.explain(extended=True)
    assert "hunter2" not in capsys.readouterr().out
    with pytest.raises(PySparkException) as told:
        rows.count()
    assert "hunter2" not in str(told.value)
    reads = PostgresReader({"table": "journal", "conninfo": without_secrets(conninfo)}, ["id"])
    assert b"hunter2" not in pickle.dumps(reads)


def test_an_address_that_does_not_answer_is_told_without_the_password() -> None:
    with pytest.raises(JobError) as told:
        connect("host=/nowhere dbname=x password=hunter2")
    assert "cannot be reached" in str(told.value)
    assert "hunter2" not in str(told.value)
