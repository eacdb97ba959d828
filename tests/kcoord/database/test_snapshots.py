"""Statements of a snapshot are planned for their parameters, however often a connection has executed them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from kcoord.config import Config
from kcoord.database.pool import Database

EXECUTIONS = 40
"""psycopg prepares after five on a connection, of which there are two, and Postgres may keep a plan after five more."""
STATEMENT = "select count(*) from groups_group where id = %(pk)s"
"""By a unique key: a plan for any parameters costs the same as one of its own, whatever statistics say, and is kept."""
PREPARED = "select generic_plans, custom_plans from pg_prepared_statements where starts_with(statement, %(text)s)"


@pytest.fixture
async def db(database: str) -> AsyncIterator[Database]:
    """A small pool."""
    opened = Database(database, Config({"database.pool.size": 2}))
    await opened.open()
    yield opened
    await opened.close()


async def plans(db: Database, *, keep_plans: bool) -> tuple[int, int]:
    """How often the statement was carried out by a plan for any parameters, and by one of its own."""
    for pk in range(EXECUTIONS):
        async with db.snapshot(keep_plans=keep_plans) as connection:
            assert await db.value(connection, STATEMENT, {"pk": pk}) == 0
    text = {"text": STATEMENT.partition("%")[0]}
    async with db.connection() as one, db.connection() as other:
        found = [row for connection in (one, other) for row in await db.rows(connection, PREPARED, text)]
    return sum(kept for kept, _ in found), sum(own for _, own in found)


async def test_each_execution_has_a_plan_of_its_own(db: Database) -> None:
    kept, own = await plans(db, keep_plans=False)
    assert (kept, own > 10) == (0, True)


async def test_a_plan_is_kept_where_planning_counts(db: Database) -> None:
    kept, _ = await plans(db, keep_plans=True)
    assert kept > 0


async def test_the_snapshot_is_of_one_instant_and_only_read(db: Database) -> None:
    async with db.snapshot() as connection:
        assert await db.value(connection, "select current_setting('transaction_isolation')") == "repeatable read"
        assert await db.value(connection, "select current_setting('transaction_read_only')") == "on"
        assert await db.value(connection, "select current_setting('plan_cache_mode')") == "force_custom_plan"
    async with db.connection() as connection:
        assert await db.value(connection, "select current_setting('plan_cache_mode')") == "auto"
