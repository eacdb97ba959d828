"""Every named statement is valid against the migrated schema, and the hot ones use their indexes."""

from __future__ import annotations

import re

import psycopg
import pytest
from psycopg import _queries

from kcoord.database.sql import parse, queries

PACKAGES = ("kcoord", "groups", "offsets", "frontend")
PARAMETER = re.compile(r"%\((\w+)\)s")


def numbered(statement: str) -> str:
    """The statement with `$1`, `$2` … for its named parameters, as PREPARE wants them."""
    positions: dict[str, int] = {}

    def position(match: re.Match[str]) -> str:
        return f"${positions.setdefault(match[1], len(positions) + 1)}"

    return PARAMETER.sub(position, statement).replace("%%", "%")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_statement_can_be_prepared(worker_database: str, package: str) -> None:
    wrong: dict[str, str] = {}
    with psycopg.connect(worker_database, autocommit=True, prepare_threshold=None) as session:
        for name, statement in queries(package).items():
            session.execute("deallocate all")
            try:
                session.execute(f"prepare it as {numbered(statement)}".encode())
            except psycopg.Error as error:
                wrong[name] = str(error)
                continue
            (prepared,) = session.execute("select statement from pg_prepared_statements")
            assert f"/* {package}.{name} */" in prepared[0]
    assert wrong == {}


HOT: list[tuple[str, dict[str, object], str]] = [
    ("groups.lock_groups", {"group_id": ["g1"]}, "groups_group_group_id"),
    ("groups.due_groups", {"now": 5, "limit": 10, "owner": 1, "margin_ms": 1}, "groups_group_due"),
    ("groups.load_members", {"ids": [1]}, "groups_member"),
    ("groups.load_members", {"ids": list(range(1, 251))}, "groups_member"),
    (
        "groups.group_sizes",
        {"group_id": [f"g{n}" for n in range(250)], "most": 1_000},
        "Index Cond: ((group_id)::text = ANY",
    ),
    ("offsets.fetch_named", {"group_id": "g1", "topic": ["t"], "partition": [1]}, "offsets_committedoffset_pkey"),
]


def test_hot_statement_uses_its_index(database: str, subtests: pytest.Subtests) -> None:
    with psycopg.connect(database) as connection:
        fill(connection)
        for statement, parameters, index in HOT:
            with subtests.test(f"{statement} {parameters}"):
                package, name = statement.split(".")
                text = f"explain {getattr(queries(package), name)}"
                plan = "\n".join(row[0] for row in connection.execute(text.encode(), parameters))
                assert index in plan, plan
                # Coordinator partitions are fifty, and nodes a few.
                assert not re.search("Seq Scan on groups_(?!coordinator)", plan), plan
                assert "Seq Scan on offsets_" not in plan, plan


def fill(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """Enough rows that reading all of them is not the cheapest way, also by statistics that autovacuum wrote before."""
    connection.execute("truncate groups_group cascade")
    connection.execute(
        "insert into groups_group (group_id, type, state, previous_state, state_since, generation_id,"
        " new_member_added, wake_at, version, created_at, updated_at)"
        " select 'g' || n, 'classic', 'Stable', 'Empty', 0, 1, false, 1000000 + n, 1, 0, 0"
        " from generate_series(1, 5000) n"
    )
    connection.execute(
        "insert into groups_member (group_id, member_id, client_id, client_host, session_timeout_ms,"
        " rebalance_timeout_ms, protocol_type, protocol_names, protocol_metadata, assignment, is_new, pending_sync)"
        " select g.id, 'm' || n, 'c', 'h', 1, 1, 'consumer', '{}', '{}', '', false, false"
        " from groups_group g, generate_series(1, 3) n"
    )
    connection.execute(
        "insert into offsets_committedoffset (group_id, topic, partition, committed_offset, leader_epoch, metadata,"
        " commit_timestamp, member_id, generation_id)"
        " select g.id, 't', n, 0, -1, '', 0, '', -1 from groups_group g, generate_series(1, 5) n"
    )
    connection.execute(
        "insert into groups_assignment (group_id, topic_id, topic, partition, member_id, generation_id)"
        " select g.id, 't', 't', n, 'm1', 1 from groups_group g, generate_series(1, 3) n"
    )
    for table in ("groups_group", "groups_member", "groups_assignment", "offsets_committedoffset"):
        connection.execute(f"analyze {table}".encode())


def test_parser_refuses_what_it_cannot_name() -> None:
    assert parse({"f": "-- name: one\n-- why\nselect 1;\n\n-- name: two\nselect 2"}) == {
        "one": "select 1",
        "two": "select 2",
    }
    with pytest.raises(ValueError, match="before the first"):
        parse({"f": "select 1"})
    with pytest.raises(ValueError, match="twice"):
        parse({"f": "-- name: one\nselect 1\n-- name: one\nselect 2"})
    with pytest.raises(ValueError, match="no statement"):
        parse({"f": "-- name: one\n-- only a comment\n"})


def test_statements_of_commits_are_short_enough_for_the_cache_of_psycopg() -> None:
    """A longer one would be parsed for every batch."""
    found = queries("offsets")
    assert max(len(found.write_batch), len(found.write_offsets)) <= _queries.MAX_CACHED_STATEMENT_LENGTH


def test_fragment_is_written_once_and_stands_in_each_statement_that_includes_it() -> None:
    matching = "-- fragment: matching\n-- why\nand a = 1\nand (b = 2\n     or c = 3)\n\n"
    one = "-- name: one\nselect 1\n  -- include: matching\nlimit 1\n"
    two = "-- name: two\nselect 2\n-- include: matching"
    assert parse({"f": matching + one + two}) == {
        "one": "select 1\nand a = 1\nand (b = 2\nor c = 3)\nlimit 1",
        "two": "select 2\nand a = 1\nand (b = 2\nor c = 3)",
    }
    with pytest.raises(ValueError, match="no fragment named other"):
        parse({"f": "-- name: one\nselect 1\n-- include: other"})
    with pytest.raises(ValueError, match="no statement includes matching"):
        parse({"f": matching + "-- name: one\nselect 1"})
    with pytest.raises(ValueError, match="the fragment more includes another"):
        parse({"f": matching + "-- fragment: more\n  -- include: matching\n-- name: one\nselect 1\n-- include: more"})
    with pytest.raises(ValueError, match="matching is defined twice"):
        parse({"f": matching * 2})
    assert parse({"f": one, "g": matching, "h": two}) == parse({"f": matching + one + two})
    with pytest.raises(ValueError, match="h: matching is defined in f too"):
        parse({"f": matching + one, "h": matching})
    with pytest.raises(ValueError, match="h: two is defined in g too"):
        parse({"f": matching, "g": two, "h": two})
    with pytest.raises(ValueError, match="matching has no statement"):
        parse({"f": "-- fragment: matching\n-- why\n-- name: one\nselect 1\n-- include: matching"})
