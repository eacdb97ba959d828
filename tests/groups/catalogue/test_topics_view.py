"""The copy of the catalogue that the coordinator reads: without a query, and never older than what it was told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from groups import topics as module
from groups.core.model.types import TopicView
from groups.topics import TopicService
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.database.pool import Connection, Database
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from tests.support.members import eventually


@pytest.fixture
def config() -> Config:
    """No process looks by itself while a test runs."""
    return Config({"notifications.repair.interval.ms": 60_000})


@pytest.fixture
def here(runtime: Runtime) -> TopicService:
    """The topics of this process."""
    return runtime.get(TopicService)


@pytest.fixture
async def other(database: str, clock: VirtualClock, config: Config) -> AsyncIterator[Runtime]:
    """Another process on the same database."""
    running = Runtime(config, database, clock)
    await running.start()
    await running.notifications.wait_listening()
    yield running
    await running.stop()


@pytest.fixture
def there(other: Runtime) -> TopicService:
    """The topics of the other process."""
    return other.get(TopicService)


@pytest.fixture
def snapshots(monkeypatch: pytest.MonkeyPatch) -> list[Database]:
    """Grows by one whenever a process reads the catalogue or its revision."""
    taken: list[Database] = []
    plain = Database.snapshot

    def counted(self: Database) -> object:
        taken.append(self)
        return plain(self)

    monkeypatch.setattr(Database, "snapshot", counted)
    return taken


def sizes(view: TopicView) -> dict[str, int]:
    """Partitions by topic; both ways to find a topic agree."""
    assert {topic.topic_id: topic for topic in view.by_name.values()} == dict(view.by_id)
    return {name: topic.partitions for name, topic in view.by_name.items()}


async def test_every_change_is_seen_at_once_by_the_process_that_made_it(here: TopicService) -> None:
    empty = await here.view()
    assert sizes(empty) == {}
    made = await here.create("orders", 3)
    created = await here.view()
    assert sizes(created) == {"orders": 3}
    assert created.by_name["orders"].topic_id == str(made.topic_id)
    await here.update("orders", partitions=5)
    raised = await here.view()
    assert sizes(raised) == {"orders": 5}
    await here.delete("orders")
    deleted = await here.view()
    assert sizes(deleted) == {}
    await here.create("orders", 1)
    again = await here.view()
    assert again.by_name["orders"].topic_id != created.by_name["orders"].topic_id
    versions = [view.version for view in (empty, created, raised, deleted, again)]
    assert versions == sorted(set(versions)), "the catalogue has a higher version after each change"
    assert sizes(created) == {"orders": 3}


async def test_a_change_is_seen_by_the_other_process(here: TopicService, there: TopicService) -> None:
    before = await there.view()
    for change, expected in (
        (lambda: here.create("orders", 3), {"orders": 3}),
        (lambda: here.update("orders", partitions=4), {"orders": 4}),
        (lambda: here.delete("orders"), {}),
    ):
        await change()
        wanted = (await here.view()).version

        async def seen(wanted: int = wanted) -> bool:
            return (await there.view()).version == wanted

        await eventually(seen, "the other process has seen the change")
        after = await there.view()
        assert sizes(after) == expected
        assert after.version > before.version
        before = after


async def test_who_asks_after_the_hint_gets_what_it_was_about(
    here: TopicService, other: Runtime, there: TopicService
) -> None:
    told = asyncio.Event()
    await there.view()
    other.notifications.on("kcoord_topics", lambda payload: told.set())
    await here.create("orders", 3)
    await asyncio.wait_for(told.wait(), 10)
    assert sizes(await there.view()) == {"orders": 3}


async def test_reading_the_view_costs_no_query(here: TopicService, snapshots: list[Database]) -> None:
    await here.create("orders", 3)
    first = await asyncio.gather(*(here.view() for _ in range(50)))
    taken = len(snapshots)
    assert taken <= 2
    assert all(view is first[0] for view in first)
    for _ in range(50):
        assert await here.view() is first[0]
    assert len(snapshots) == taken


async def test_what_is_no_change_of_the_catalogue_changes_no_version(here: TopicService) -> None:
    await here.create("orders", 3)
    before = await here.view()
    await here.update("orders", labels={"team": "billing"})
    for refused in (here.create("orders", 9), here.update("orders", partitions=2), here.delete("nope")):
        with pytest.raises(ProtocolError):
            await refused
    assert await here.view() is before


async def test_a_change_that_is_rolled_back_changes_no_version(
    here: TopicService, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await here.view()
    counted = module.revisions.lock

    async def fail_after(connection: Connection, subject: module.Subject) -> None:
        await counted(connection, subject)
        raise psycopg.OperationalError("the connection was lost")

    with monkeypatch.context() as patch:
        patch.setattr(module.revisions, "lock", fail_after)
        with pytest.raises(ProtocolError):
            await here.create("orders", 3)
    after = await here.view()
    assert (after.version, sizes(after)) == (before.version, {})


async def test_changes_at_the_same_time_are_all_counted(here: TopicService, there: TopicService) -> None:
    before = (await here.view()).version
    names = [f"t{number}" for number in range(20)]
    await asyncio.gather(*((here, there)[n % 2].create(name, 1) for n, name in enumerate(names)))

    async def complete() -> bool:
        views = [await side.view() for side in (here, there)]
        return all(sorted(view.by_name) == sorted(names) for view in views)

    await eventually(complete, "both processes know all topics")
    assert (await here.view()).version == (await there.view()).version > before


@pytest.mark.parametrize("config", [Config({"notifications.repair.interval.ms": 100})])
async def test_a_lost_hint_is_made_good(
    here: TopicService, there: TopicService, monkeypatch: pytest.MonkeyPatch
) -> None:
    await there.view()

    async def silence(*args: object) -> None:
        return None

    monkeypatch.setattr(module.revisions, "tell", silence)
    await here.create("orders", 3)

    async def seen() -> bool:
        return "orders" in (await there.view()).by_name

    await eventually(seen, "the other process has looked by itself")


async def test_an_old_view_is_served_while_the_database_is_away_but_not_after_a_hint(
    runtime: Runtime, here: TopicService, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = await here.view()

    def away(self: Database) -> object:
        raise self.unavailable(psycopg.OperationalError("no connection"))

    with monkeypatch.context() as patch:
        patch.setattr(Database, "snapshot", away)
        assert await here.view() is known
        runtime.notifications._everything_may_have_changed()
        with pytest.raises(ProtocolError) as raised:
            await here.view()
        assert raised.value.error is Error.COORDINATOR_NOT_AVAILABLE
    assert sizes(await here.view()) == {}


async def test_a_caller_that_goes_away_takes_the_reading_from_nobody(here: TopicService) -> None:
    await here.create("orders", 3)
    gone = asyncio.create_task(here.view())
    staying = asyncio.create_task(here.view())
    await asyncio.sleep(0)
    gone.cancel()
    assert sizes(await staying) == {"orders": 3}


async def test_topics_are_in_the_order_of_their_names(here: TopicService) -> None:
    for name in ("b", "B", "a", "a-b", "a.b", "_"):
        await here.create(name, 1)
    assert list((await here.view()).by_name) == sorted(("b", "B", "a", "a-b", "a.b", "_"))
