"""Who may call the functions of schema `kcoord`, and what else such a role can do, also by tricks: nothing."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import errors as pg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tests.support.commit_function import Refusal, commit
from tests.support.commits import PartitionCommit
from tests.support.database import ROOT, migrate
from tests.support.journal import journal_lines

PAGE = ROOT / "docs" / "sinks.md"
ENTRANCES = {"commit_offsets", "fetch_offsets", "acquire", "settle"}
"""What other roles may be granted."""
ORDERS_0 = [PartitionCommit("orders", 0, 42)]

Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def role(database: str) -> Iterator[str]:
    """A role that may log in, and nothing else yet."""
    name = f"sink_{secrets.token_hex(4)}"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "insert into groups_topic (name, topic_id, partitions, labels, created_at)"
            " values ('orders', gen_random_uuid(), 4, '{}', 0)"
        )
        connection.execute(sql.SQL("create role {} login").format(sql.Identifier(name)))
        yield name
        connection.execute(sql.SQL("drop owned by {} cascade").format(sql.Identifier(name)))
        connection.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


def grants_of_the_page() -> list[str]:
    """The grants that docs/sinks.md tells operators to make, for the role `billing_sink`."""
    found: list[str] = re.findall(r"^grant .*?;$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(found) == 3
    return found


@pytest.fixture
def sink(database: str, role: str) -> Iterator[Connection]:
    """A connection of that role, with the grants of the documentation."""
    with psycopg.connect(database, autocommit=True) as connection:
        for grant in grants_of_the_page():
            connection.execute(grant.replace("billing_sink", role).encode())
    with as_role(database, role) as connection:
        yield connection


def as_role(database: str, role: str) -> Connection:
    """A session of the role, as if it had logged in."""
    connection = psycopg.connect(database, autocommit=True)
    connection.execute(sql.SQL("set session authorization {}").format(sql.Identifier(role)))
    return connection


def test_nobody_may_call_them_without_a_grant(database: str, role: str) -> None:
    with as_role(database, role) as connection:
        for call in ("kcoord.commit_offsets('g', '', -1, '[]')", "kcoord.fetch_offsets('g')", "kcoord.lock_group('g')"):
            with pytest.raises(pg.InsufficientPrivilege):
                connection.execute(f"select {call}".encode())


def test_the_grants_of_the_page_are_enough(sink: Connection, role: str, database: str) -> None:
    assert commit(sink, ORDERS_0) == 1
    assert sink.execute("select partition, committed_offset from kcoord.fetch_offsets('g')").fetchall() == [(0, 42)]
    (line,) = journal_lines(database)
    assert line["principal"] == role


def test_the_grants_of_the_page_allow_nothing_else(sink: Connection) -> None:
    tables = sink.execute(
        "select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace"
        " where n.nspname !~ '^pg_|^information_schema$' and c.relkind in ('r', 'p', 'v', 'S')"
        " and (c.relkind = 'S' and has_sequence_privilege(c.oid, 'USAGE, SELECT, UPDATE') or c.relkind <> 'S'"
        "      and has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE, REFERENCES'))"
    ).fetchall()
    assert [name for (name,) in tables if not name.startswith("pgmq.")] == []
    callable_ = sink.execute(
        "select p.proname from pg_proc p where p.pronamespace = 'kcoord'::regnamespace"
        " and has_function_privilege(p.oid, 'EXECUTE') order by 1"
    ).fetchall()
    assert {name for (name,) in callable_} == ENTRANCES
    for statement in (
        "select * from groups_group",
        "select * from offset_commit_log",
        "delete from offsets_committedoffset",
        "select kcoord.write_offsets(1, 'g', '', -1, '', null, -1, 0)",
        "select kcoord.make_group('h')",
        "create function kcoord.mine() returns int language sql as 'select 1'",
        "create or replace function kcoord.offset_metadata_max_bytes() returns int language sql as 'select 9'",
        "drop function kcoord.lock_group",
    ):
        with pytest.raises(pg.InsufficientPrivilege):
            sink.execute(statement.encode())


def test_every_function_has_a_pinned_search_path_and_only_entrances_have_the_owners_rights(database: str) -> None:
    with psycopg.connect(database) as connection:
        functions = connection.execute(
            "select proname, prosecdef, proconfig, prosrc from pg_proc where pronamespace = 'kcoord'::regnamespace"
        ).fetchall()
    assert len(functions) == 55
    assert {config[0] for _, _, config, _ in functions} == {"search_path=pg_catalog, pg_temp"}
    assert {name for name, definer, _, _ in functions if definer} == ENTRANCES
    assert not [name for name, _, _, source in functions if re.search(r"\bexecute\b", source, re.IGNORECASE)]


TRAPS = """
create schema {schema} authorization {role};
grant usage on schema {schema} to public;
create function {schema}.springs() returns text language plpgsql as
    $$ begin raise exception 'the trap was stepped into by %', current_user; end $$;
create function {schema}.length(text) returns integer language sql as 'select length({schema}.springs())';
create function {schema}.lpad(text, integer, text) returns text language sql as 'select {schema}.springs()';
create function {schema}.format(text, variadic "any") returns text language internal immutable as 'text_format';
create function {schema}.clock_timestamp() returns timestamptz language sql as 'select {schema}.springs()::timestamptz';
create function {schema}.jsonb_typeof(jsonb) returns text language sql as 'select {schema}.springs()';
create function {schema}.same(text, text) returns boolean language sql as 'select {schema}.springs() = ''''';
create operator {schema}.= (leftarg = text, rightarg = text, function = {schema}.same);
create table {schema}.groups_group (id bigint, group_id text, type text);
create table {schema}.groups_topic (name text, partitions integer);
"""


def test_names_of_the_callers_own_are_never_found(sink: Connection, role: str, database: str) -> None:
    schema = sql.Identifier(f"trap_{role}")
    with psycopg.connect(database, autocommit=True) as owner:
        owner.execute(sql.SQL(TRAPS).format(schema=schema, role=sql.Identifier(role)))
        for name in ("groups_group", "groups_topic"):
            owner.execute(
                sql.SQL("alter table {}.{} owner to {}").format(schema, sql.Identifier(name), sql.Identifier(role))
            )
    sink.execute(sql.SQL("set search_path = {}, pg_temp, pg_catalog, public").format(schema))
    with pytest.raises(pg.RaiseException, match="trap"):
        sink.execute("select length('x'::text)")
    sink.execute("create temporary table offset_commit_log (id integer)")
    sink.execute("create temporary table offsets_committedoffset (id integer)")
    assert commit(sink, ORDERS_0) == 1
    assert sink.execute("select committed_offset from kcoord.fetch_offsets('g')").fetchall() == [(42,)]
    refused = commit(sink, ORDERS_0, member_id="m", generation_id=3)
    assert isinstance(refused, Refusal)
    assert len(journal_lines(database)) == 1


@pytest.mark.whole("migrates a database of its own")
def test_a_role_that_is_called_kcoord_keeps_its_tables_together(postgres: str) -> None:
    """Its own schema, the first in the default search_path, did not exist when it made the first ones."""
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute("create role kcoord login")
        try:
            admin.execute("create database of_kcoord owner kcoord")
            conninfo = make_conninfo(postgres, user="kcoord", dbname="of_kcoord")
            migrate(conninfo)
            with psycopg.connect(conninfo) as connection:
                assert connection.execute("select current_schema()").fetchone() == ("public",)
                assert connection.execute(
                    "select count(*) from pg_class where relnamespace = 'kcoord'::regnamespace and relkind = 'r'"
                ).fetchone() == (0,)
                assert isinstance(commit(connection, ORDERS_0), Refusal)
        finally:
            admin.execute("drop database if exists of_kcoord with (force)")
            admin.execute("drop role kcoord")


HOSTILE = ("'; drop table groups_group; --", "$$; select 1; $$", "%s %I {0} \\", '"', "\u202e", "g' or '1'='1")


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_are_data(sink: Connection, database: str, text: str) -> None:
    assert commit(sink, [PartitionCommit("orders", 0, 1, metadata=text)], group_id=text.replace("/", "")) == 1
    assert isinstance(commit(sink, [PartitionCommit(text, 0, 1)]), Refusal)
    assert isinstance(commit(sink, ORDERS_0, group_id=text, member_id=text, generation_id=1), Refusal)
    assert isinstance(
        commit(sink, ORDERS_0, group_id=text, member_id=text, group_instance_id=text, generation_id=1), Refusal
    )
    (line,) = journal_lines(database)
    assert (line["group_name"], line["metadata"]) == (text, text)
    fetched = sink.execute(
        "select committed_metadata from kcoord.fetch_offsets(%s, array['orders'])", (text,)
    ).fetchall()
    assert fetched == [(text,)]
