"""Rows of a table: none that commits late is skipped, and open transactions hold up nobody after they end."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence

import psycopg
import pytest

from kcoord.client import Record
from kcoord.client.sources import postgres
from kcoord.client.sources.postgres import PostgresTable

TABLE = """
create table job (id bigint generated always as identity primary key, shard int not null default 0, made_at bigint,
                  name text)
"""
INSERT = "insert into job (name, shard) values (%(name)s, %(shard)s) returning id"


@pytest.fixture
def bare(database: str) -> Iterator[str]:
    """A database whose tables of these tests are dropped at the end."""
    yield database
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("drop table if exists job, other")


@pytest.fixture
def conninfo(bare: str) -> str:
    """A database with the table."""
    with psycopg.connect(bare, autocommit=True) as connection:
        connection.execute(TABLE)
    return bare


@pytest.fixture
def source(conninfo: str) -> Iterator[PostgresTable]:
    """The table as a topic of one partition."""
    source = PostgresTable(lambda: psycopg.connect(conninfo, application_name="source"), "job", 1)
    yield source
    source.close()


def write(connection: psycopg.Connection, name: str, shard: int = 0) -> int:
    row = connection.execute(INSERT, {"name": name, "shard": shard}).fetchone()
    assert row is not None
    return int(row[0])


def names(source: PostgresTable, offset: int = 0, partition: int = 0, limit: int = 100) -> list[str]:
    return [record.value["name"] for record in source.fetch("jobs", partition, offset, limit)]


def test_a_row_that_commits_late_is_not_skipped(conninfo: str, source: PostgresTable) -> None:
    with psycopg.connect(conninfo) as late, psycopg.connect(conninfo, autocommit=True) as quick:
        write(quick, "first")
        assert names(source) == ["first"]
        write(late, "late")
        write(quick, "quick")
        for _ in range(3):
            assert names(source) == ["first"], "the smaller id of the open transaction would be skipped"
        late.commit()
        assert names(source) == ["first", "late", "quick"]
        assert names(source, offset=2, limit=1) == ["late"]


def test_a_row_that_is_rolled_back_is_waited_for_no_longer(conninfo: str, source: PostgresTable) -> None:
    with psycopg.connect(conninfo) as late, psycopg.connect(conninfo, autocommit=True) as quick:
        write(late, "never")
        write(quick, "quick")
        assert names(source) == []
        late.rollback()
        assert names(source) == ["quick"]


def test_transactions_that_begin_later_do_not_hold_up_the_horizon(conninfo: str, source: PostgresTable) -> None:
    """With traffic that never pauses some transaction is always open."""
    with psycopg.connect(conninfo) as one, psycopg.connect(conninfo) as other:
        write(one, "a")
        assert names(source) == []
        for name in "bcdef":
            write(other, name)
            one.commit()
            names(source)
            one, other = other, one
        assert names(source) == ["a", "b", "c", "d", "e"], "all but that of the transaction that is still open"


def test_readers_and_other_tables_hold_up_nothing(conninfo: str, source: PostgresTable) -> None:
    with psycopg.connect(conninfo) as reader, psycopg.connect(conninfo, autocommit=True) as quick:
        quick.execute("create table other (id int)")
        reader.execute("select * from job")
        reader.execute("insert into other values (1)")
        write(quick, "quick")
        assert names(source) == ["quick"]


def test_every_committed_row_is_read_once_in_order(conninfo: str, source: PostgresTable) -> None:
    committed: list[int] = []
    seed = random.Random(7)
    plans = [[(seed.randint(1, 3), seed.random() < 0.2) for _ in range(60)] for _ in range(4)]

    def writer(plan: list[tuple[int, bool]]) -> None:
        with psycopg.connect(conninfo) as connection:
            for rows, gives_up in plan:
                ids = [write(connection, "x") for _ in range(rows)]
                connection.execute("select pg_sleep(0.005)")  # others take ids and commit meanwhile
                if gives_up:
                    connection.rollback()
                else:
                    connection.commit()
                    committed.extend(ids)

    threads = [threading.Thread(target=writer, args=(plan,)) for plan in plans]
    for thread in threads:
        thread.start()
    read: list[int] = []
    records: Sequence[Record] = ()
    writing = True
    while writing or records:
        writing = any(thread.is_alive() for thread in threads)
        records = source.fetch("jobs", 0, read[-1] + 1 if read else 0, 7)
        read += [record.offset for record in records]
    assert read == sorted(committed)


def test_shards_are_a_column_or_the_id(conninfo: str, source: PostgresTable) -> None:
    by_column = PostgresTable(lambda: psycopg.connect(conninfo), "public.job", 2, shard="shard")
    by_id = PostgresTable(lambda: psycopg.connect(conninfo), "job", 2)
    with psycopg.connect(conninfo, autocommit=True) as quick:
        for name, shard in (("a", 1), ("b", 1), ("c", 0)):
            write(quick, name, shard)
    assert (names(by_column, partition=0), names(by_column, partition=1)) == (["c"], ["a", "b"])
    assert (names(by_id, partition=0), names(by_id, partition=1)) == (["b"], ["a", "c"])
    assert [(by_column.beginning_offset("t", n), by_column.end_offset("t", n)) for n in (0, 1)] == [(3, 4), (1, 3)]
    by_column.close()
    by_id.close()


def test_partitions_of_the_table_count(bare: str) -> None:
    with psycopg.connect(bare, autocommit=True) as quick, psycopg.connect(bare) as late:
        quick.execute("create table job (id bigint, name text) partition by range (id)")
        quick.execute("create table job_1 partition of job for values from (0) to (1000)")
        source = PostgresTable(lambda: psycopg.connect(bare), "job", 1)
        late.execute("insert into job_1 (id, name) values (1, 'straight into the partition')")
        quick.execute("insert into job (id, name) values (2, 'quick')")
        assert names(source) == []
        late.commit()
        assert len(names(source)) == 2
        source.close()


def test_the_end_is_that_of_settled_rows(conninfo: str, source: PostgresTable, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (source.beginning_offset("t", 0), source.end_offset("t", 0)) == (0, 0)
    fresh = PostgresTable(lambda: psycopg.connect(conninfo), "job", 1, timestamp_ms="made_at")
    monkeypatch.setattr(postgres, "WAIT_SECONDS", 0.1)
    with psycopg.connect(conninfo) as late, psycopg.connect(conninfo, autocommit=True) as quick:
        write(late, "late")
        quick.execute("insert into job (name, made_at) values ('quick', 5)")
        assert source.end_offset("t", 0) == 0, "known from before"
        with pytest.raises(TimeoutError, match="transactions that write to job"):
            fresh.end_offset("t", 0)
        late.rollback()
        assert fresh.end_offset("t", 0) == 3
        assert [record.timestamp_ms for record in fresh.fetch("t", 0, 0, 10)] == [5]
    fresh.close()


def settled(source: PostgresTable) -> tuple[int, int]:
    """Where the table ends, and below which offset nothing can appear any more."""
    return source.end_offset("jobs", 0), source.settled_offset("jobs", 0)


def test_nothing_is_settled_that_an_open_transaction_could_still_insert(conninfo: str, source: PostgresTable) -> None:
    with psycopg.connect(conninfo) as late, psycopg.connect(conninfo, autocommit=True) as quick:
        first = write(quick, "first")
        assert settled(source) == (first + 1, first + 1)
        taken = write(late, "late")
        last = write(quick, "quick")
        assert settled(source) == (first + 1, first + 1)
        assert [late.execute("savepoint s"), write(late, "undone"), late.execute("rollback to s")][1] == last + 1
        assert settled(source) == (first + 1, first + 1), "it may still insert, and what it inserted may still commit"
        late.commit()
        assert settled(source)[0] == last + 1
        assert [record.offset for record in source.fetch("jobs", 0, 0, 10)] == [first, taken, last]


def test_what_was_rolled_back_or_deleted_is_settled(conninfo: str, source: PostgresTable) -> None:
    """A source that is new knows it from the sequence: no row shows that these ids were taken."""
    with psycopg.connect(conninfo) as late, psycopg.connect(conninfo, autocommit=True) as quick:
        first = write(quick, "first")
        deleted = write(quick, "deleted")
        quick.execute("delete from job where id = %s", [deleted])
        undone = write(late, "never")
        fresh = PostgresTable(lambda: psycopg.connect(conninfo), "job", 1)
        assert fresh.settled_offset("jobs", 0) == 0, "nothing is known while it is open"
        late.rollback()
        assert settled(fresh) == (first + 1, undone + 1)
        quick.execute("delete from job")
        assert settled(fresh) == (0, undone + 1)
    fresh.close()


def test_each_of_several_tables_waits_for_its_own_writers(conninfo: str, source: PostgresTable) -> None:
    """Also with one sequence for both, where the ids of the one say nothing about the other."""
    with psycopg.connect(conninfo, autocommit=True) as quick, psycopg.connect(conninfo) as late:
        quick.execute("create table other (id bigint default nextval('job_id_seq'), name text)")
        other = PostgresTable(lambda: psycopg.connect(conninfo), "other", 1)
        first = write(quick, "quick")
        late.execute("insert into other (name) values ('late')")
        last = write(quick, "quick")
        assert settled(source) == (last + 1, last + 1)
        assert other.settled_offset("others", 0) == 0
        write(late, "both")
        assert settled(source)[0] == last + 1
        late.commit()
        assert settled(source) == (last + 2, last + 2)
        assert [(r.offset, r.value["name"]) for r in other.fetch("others", 0, 0, 9)] == [(first + 1, "late")]
        other.close()


def test_without_the_right_to_read_the_sequence_rows_show_what_was_taken(conninfo: str) -> None:
    with psycopg.connect(conninfo, autocommit=True) as quick:
        quick.execute("drop role if exists only_reads")
        quick.execute("create role only_reads")
        quick.execute("grant select on job to only_reads")
        first = write(quick, "first")
        last = write(quick, "deleted")
        reader = psycopg.connect(conninfo, autocommit=True)
        reader.execute("set role only_reads")
        source = PostgresTable(lambda: reader, "job", 1)
        assert settled(source) == (last + 1, last + 1)
        quick.execute("delete from job where id = %s", [last])
        assert settled(source) == (first + 1, last + 1), "it does not go back"
        source.close()
        quick.execute("drop owned by only_reads")
        quick.execute("drop role only_reads")


def test_tables_that_inherit_count(bare: str) -> None:
    with psycopg.connect(bare, autocommit=True) as quick, psycopg.connect(bare) as late:
        quick.execute(TABLE)
        quick.execute("create table other () inherits (job)")
        source = PostgresTable(lambda: psycopg.connect(bare), "job", 1)
        late.execute("insert into other (id, name) values (nextval('job_id_seq'), 'straight into the child')")
        write(quick, "quick")
        assert names(source) == []
        late.commit()
        assert names(source) == ["straight into the child", "quick"]
        source.close()
        quick.execute("drop table other, job")


def test_a_view_is_refused(conninfo: str) -> None:
    """Who writes to its table does not lock the view."""
    with psycopg.connect(conninfo, autocommit=True) as quick:
        quick.execute("create view open_job as select * from job")
        with pytest.raises(ValueError, match="name the table, not a view of it"):
            PostgresTable(lambda: psycopg.connect(conninfo), "open_job", 1).fetch("jobs", 0, 0, 1)
        quick.execute("drop view open_job")


def test_a_lost_connection_is_opened_again(conninfo: str, source: PostgresTable) -> None:
    with psycopg.connect(conninfo, autocommit=True) as quick:
        write(quick, "first")
        assert names(source) == ["first"]
        quick.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'source'")
        with pytest.raises(psycopg.OperationalError):
            names(source)
        write(quick, "second")
        assert names(source) == ["first", "second"]


def test_ids_kept_in_advance_are_refused(conninfo: str, source: PostgresTable) -> None:
    with psycopg.connect(conninfo, autocommit=True) as quick:
        quick.execute("alter sequence job_id_seq cache 20")
        with pytest.raises(ValueError, match=r"sessions keep 20 ids of job\.id in advance.*CACHE 1"):
            names(source)
        quick.execute("create table other (id bigint default nextval('job_id_seq'))")
        with pytest.raises(ValueError, match=r"sessions keep 20 ids of other\.id in advance"):
            names(PostgresTable(lambda: psycopg.connect(conninfo), "other", 1))
    with pytest.raises(ValueError, match="at least 1 shard"):
        PostgresTable(lambda: psycopg.connect(conninfo), "job", 0)
