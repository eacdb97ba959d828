"""A standby is promoted while the primary lives: who has seen the new one decides nothing at the old one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from groups.engine.agent import NodeAgent
from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.config import Config
from kcoord.database import liveness
from kcoord.database.django_backend.base import _connect, limited_statements
from kcoord.door.http.health import readiness
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from tests.failover.pair import Pair, asynchronous
from tests.support.members import join

pytestmark = pytest.mark.whole("two primaries; the default promotes a standby that lags")

SECONDS = 60
"""More than anything here takes."""


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """Both alive, the standby promoted, and it has what the primary had."""
    with asynchronous() as both:
        both.catch_up()
        both.promote()
        yield both


@asynccontextmanager
async def service(conninfo: str) -> AsyncIterator[Runtime]:
    running = Runtime(Config({"group.initial.rebalance.delay.ms": 0}), conninfo)
    await running.start()
    try:
        yield running
    finally:
        await running.stop()


@pytest.fixture
async def first_old(pair: Pair) -> AsyncIterator[Runtime]:
    """A service whose address names the old primary before the new one."""
    async with service(pair.both) as running:
        yield running


async def test_who_can_see_the_new_one_decides_nothing_at_the_old_one(first_old: Runtime) -> None:
    with pytest.raises(ProtocolError, match="was promoted to timeline 2") as refusal:
        await first_old.get(GroupService).join(join("group", session_timeout_ms=45_000))
    assert refusal.value.error is Error.COORDINATOR_NOT_AVAILABLE
    with pytest.raises(psycopg.OperationalError, match="promoted"):
        await first_old.get(NodeAgent).beat()
    assert not first_old.get(NodeAgent).holds_lease
    database = (await readiness(first_old))["database"]
    assert (database.ok, "fence" in database.detail) == (False, True)
    assert not first_old.notifications.listening


async def test_pages_are_refused_at_the_old_one_too(pair: Pair, first_old: Runtime) -> None:
    """Django connects by itself, for each request."""

    def connect(conninfo: str) -> str:
        with limited_statements(3_000), _connect(conninfo=conninfo) as connection:
            return str(connection.execute("select pg_is_in_recovery()").fetchone())

    with pytest.raises(psycopg.OperationalError, match="was promoted to timeline 2"):
        await asyncio.to_thread(connect, pair.conninfo)
    assert await asyncio.to_thread(connect, pair.standby_conninfo) == "(False,)"
    await first_old.stop()
    assert await asyncio.to_thread(connect, pair.conninfo) == "(False,)", "nobody here knows of the other one"


async def test_a_page_that_meets_the_new_one_tells_the_pools(pair: Pair) -> None:
    async with service(pair.conninfo) as running:
        await running.get(TopicService).create("before", 1)
        connection = await asyncio.to_thread(_connect, conninfo=pair.standby_conninfo)
        connection.close()
        with pytest.raises(ProtocolError, match="was promoted"):
            await running.get(TopicService).create("after", 1)


async def test_who_is_at_the_new_one_serves_and_says_that_there_are_two(pair: Pair) -> None:
    async with service(pair.new_first) as running:
        await running.get(TopicService).create("orders", 1)
        await running.get(NodeAgent).beat()
        database = (await readiness(running))["database"]
        assert (database.ok, "still accepts writes" in database.detail) == (True, True)


async def test_who_was_at_the_old_one_already_stops_when_it_sees_the_new_one(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(liveness.Origins, "start", _without_the_first_look)
    async with service(pair.both) as running:
        assert not running.db.origins.problem
        await running.get(TopicService).create("early", 1)
        async with asyncio.timeout(SECONDS):
            while True:
                try:
                    await running.get(TopicService).create("late", 1)
                    await running.get(TopicService).delete("late")
                except ProtocolError as error:
                    assert "was promoted" in error.detail  # noqa: PT017
                    break
                await asyncio.sleep(0.05)


async def _without_the_first_look(self: liveness.Origins) -> None:
    """As if there had been one server when the process began."""
    self._looking = asyncio.create_task(self._keep_looking())


async def test_another_cluster_is_refused_until_the_process_is_started_again(pair: Pair, database: str) -> None:
    origins = liveness.Origins(pair.conninfo)
    async with await psycopg.AsyncConnection.connect(pair.conninfo, autocommit=True) as connection:
        assert await origins.check(connection) == 1
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as connection:
        with pytest.raises(psycopg.OperationalError, match="another cluster"):
            await origins.check(connection)


async def test_a_role_without_rights_may_ask(pair: Pair) -> None:
    with psycopg.connect(pair.conninfo, autocommit=True) as connection:
        connection.execute("create role plain login")
    async with await psycopg.AsyncConnection.connect(make_conninfo(pair.conninfo, user="plain")) as connection:
        assert await liveness.Origins(pair.conninfo).check(connection) == 1
