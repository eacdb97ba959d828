"""The fixture `database`: what an earlier test wrote is gone."""

from __future__ import annotations

import psycopg

from tests.conftest import EMPTIED, TABLES

REACHED = """
with recursive reached (id) as (
    select unnest(%(listed)s::regclass[])
    union
    select conrelid from pg_constraint join reached on confrelid = reached.id where contype = 'f'
)
select id::regclass::text from reached where id <> all(%(listed)s::regclass[]::oid[])
"""


def test_no_table_that_refers_to_an_emptied_one_keeps_its_rows(database: str) -> None:
    with psycopg.connect(database) as connection:
        assert connection.execute(REACHED, {"listed": list(TABLES)}).fetchall() == []


def test_small_and_large_tables_are_empty_and_ids_begin_at_1(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        for rows in (1, 2_000):
            connection.execute(
                "insert into offset_commit_log (at, kind, group_name, topic, partition)"
                " select 0, 'commit', repeat('g', 100), 't', n from generate_series(1, %s) n",
                [rows],
            )
            connection.execute(EMPTIED)
            assert connection.execute("select count(*) from offset_commit_log").fetchone() == (0,)
            assert connection.execute("select nextval('offset_commit_log_id_seq')").fetchone() == (1,)
