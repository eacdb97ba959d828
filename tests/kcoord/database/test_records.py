"""Rows as objects: by the names of the columns, which are those of the fields."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import NamedTuple

import pytest

from kcoord.config import Config
from kcoord.database.pool import Connection, Database


class Pair(NamedTuple):
    """Two columns."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Told:
    """The same as a dataclass."""

    name: str
    size: int


class Optional(NamedTuple):
    """A field that may be left out elsewhere, but not in a statement."""

    name: str
    size: int = 0


@pytest.fixture
async def db(database: str, config: Config) -> AsyncIterator[Database]:
    """The pools."""
    db = Database(database, config)
    await db.open()
    yield db
    await db.close()


@pytest.mark.parametrize("kind", [Pair, Told])
async def test_rows_become_objects(db: Database, kind: type) -> None:
    statement = "select n::text as name, n as size from generate_series(1, %(last)s) n"

    async def work(connection: Connection) -> None:  # in a pipeline, where a statement is sent before its rows come
        assert await db.records(connection, kind, statement, {"last": 2}) == [kind("1", 1), kind("2", 2)]
        assert await db.record(connection, kind, statement, {"last": 2}) == kind("1", 1)
        assert await db.record(connection, kind, statement, {"last": 0}) is None
        assert await db.one(connection, statement, {"last": 1}) == ("1", 1)

    await db.transaction(work)
    async with db.connection() as connection:
        assert await db.column(connection, statement, {"last": 2}) == ["1", "2"]


@pytest.mark.parametrize("kind", [Pair, Told])
async def test_the_order_of_columns_does_not_matter(db: Database, kind: type) -> None:
    async with db.connection() as connection:
        assert await db.records(connection, kind, "select 1 as size, 'a' as name") == [kind("a", 1)]


async def test_a_function_takes_columns_by_name(db: Database) -> None:
    def longest(*, size: int, **told: str) -> tuple[int, dict[str, str]]:
        return size, told

    async with db.connection() as connection:
        found = await db.records(connection, longest, "select 'a' as name, 'b' as word, 1 as size")
    assert found == [(1, {"name": "a", "word": "b"})]


@pytest.mark.parametrize("kind", [Pair, Told])
@pytest.mark.parametrize(
    "statement",
    ["select 'a' as name", "select 'a' as name, 1 as length", "select 'a' as name, 1 as size, 2 as more"],
)
async def test_columns_that_are_not_the_fields_are_refused(db: Database, kind: type, statement: str) -> None:
    async with db.connection() as connection:
        with pytest.raises(TypeError, match="has the fields"):
            await db.records(connection, kind, statement)


async def test_a_default_does_not_stand_in_for_a_column(db: Database) -> None:
    async with db.connection() as connection:
        with pytest.raises(TypeError, match=r"has the fields \('name', 'size'\), the rows have \['name'\]"):
            await db.record(connection, Optional, "select 'a' as name")
