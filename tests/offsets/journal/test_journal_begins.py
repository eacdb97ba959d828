"""The journal of a database that had offsets before it had a journal."""

from __future__ import annotations

from importlib import import_module

import psycopg
from psycopg.rows import dict_row

from tests.frontend.seed import Seed

BEGIN = import_module("offsets.migrations.0003_journal").BEGIN


def test_it_begins_with_what_was_committed_before(database: str) -> None:
    with psycopg.connect(database, autocommit=True, row_factory=dict_row) as connection:
        seed = Seed(connection)  # type: ignore[arg-type]
        keys = [
            connection.execute(
                "insert into groups_group (group_id, type, state, previous_state, state_since, generation_id,"
                " new_member_added, version, created_at, updated_at)"
                " values (%s, 'classic', 'Empty', 'Empty', 0, 0, false, 1, 0, 0) returning id",
                [name],
            ).fetchone()
            for name in ("a", "b")
        ]
        for key in keys:
            assert key is not None
            seed.commit(key["id"], {("orders", 0): 42, ("orders", 1): 7}, metadata="note", ms_ago=60_000)
        connection.execute(BEGIN)
        rows = connection.execute(
            "select g.group_id, o.* from offsets_committedoffset o join groups_group g on g.id = o.group_id"
            " order by record_offset"
        ).fetchall()
        lines = connection.execute("select * from offset_commit_log order by id").fetchall()
    assert [line["id"] for line in lines] == [row["record_offset"] for row in rows]
    assert {line["kind"] for line in lines} == {"commit"}
    same = ("topic", "partition", "committed_offset", "leader_epoch", "metadata", "member_id", "generation_id")
    assert [[line[name] for name in same] for line in lines] == [[row[name] for name in same] for row in rows]
    assert [line["at"] for line in lines] == [row["commit_timestamp"] for row in rows]
    assert sorted(line["group_name"] for line in lines) == ["a", "a", "b", "b"]
