"""The stream of changes: prompt, folded, of the right group, and ended by whoever leaves first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from frontend import live
from kcoord.database.notifications import Notifications

EVENT = "event: group\ndata:\n\n"
EVENTS = "event: groups\ndata:\n\n"


@pytest.fixture
async def notifications(database: str) -> AsyncIterator[Notifications]:
    """The listener of a process."""
    listening = Notifications(database)
    await listening.start()
    await listening.wait_listening()
    yield listening
    await listening.stop()


async def following(stream: AsyncIterator[str], seconds: float = 10.0) -> str:
    """What the stream says next, keep-alives left out."""
    while True:
        said = await asyncio.wait_for(anext(stream), seconds)
        if not said.startswith(":"):
            return said


def notify(database: str, *group_ids: str, channel: str = "kcoord_changed") -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        for group_id in group_ids:
            connection.execute("select pg_notify(%s, %s)", [channel, group_id])


async def opened(notifications: Notifications, group_id: str | None) -> AsyncIterator[str]:
    stream = live.stream(notifications, group_id)
    assert await following(stream) == "retry: 2000\n\n"
    return stream


@pytest.mark.parametrize("channel", ["kcoord_changed", "kcoord_wake"])
async def test_a_change_is_told_on_either_channel(notifications: Notifications, database: str, channel: str) -> None:
    stream = await opened(notifications, "billing")
    notify(database, "billing", channel=channel)
    assert await following(stream) == EVENT


async def test_only_the_group_of_the_page_counts(notifications: Notifications, database: str) -> None:
    one, every = await opened(notifications, "billing"), await opened(notifications, None)
    waiting = asyncio.ensure_future(following(one))
    for _ in range(2):
        notify(database, "other")
        assert await following(every) == EVENTS
    assert not waiting.done()
    notify(database, "billing")
    assert await waiting == EVENT
    assert await following(every) == EVENTS


async def test_changes_in_quick_succession_are_one_event(
    notifications: Notifications, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused, go_on = asyncio.Event(), asyncio.Event()

    async def pause(seconds: float) -> None:
        assert seconds == live.DEBOUNCE_SECONDS
        paused.set()
        await go_on.wait()

    monkeypatch.setattr(live.asyncio, "sleep", pause)
    stream = await opened(notifications, "billing")
    notify(database, "billing")
    assert await following(stream) == EVENT
    told = asyncio.ensure_future(following(stream))
    await asyncio.wait_for(paused.wait(), 10)
    notify(database, *["billing"] * 50)
    async with notifications.subscribe() as other:  # when this has arrived, so have the fifty
        notify(database, "last")
        while "last" not in await other.get():
            pass
    go_on.set()
    assert await told == EVENT
    go_on.clear()
    paused.clear()
    rest = asyncio.ensure_future(following(stream))
    await asyncio.wait_for(paused.wait(), 10)
    go_on.set()
    notify(database, "billing")
    assert await rest == EVENT


async def test_after_a_lost_connection_anything_may_have_changed(notifications: Notifications, database: str) -> None:
    stream = await opened(notifications, "billing")
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name = 'kcoord-listener' and datname = current_database()"
        )
    assert await following(stream) == EVENT


async def test_the_stream_ends_with_the_process(notifications: Notifications) -> None:
    stream = await opened(notifications, None)
    waiting = asyncio.ensure_future(following(stream))
    await asyncio.sleep(0)
    notifications.end_subscriptions()
    with pytest.raises(StopAsyncIteration):
        await waiting


async def test_the_stream_ends_by_itself_so_that_its_session_is_looked_at_again(notifications: Notifications) -> None:
    said = [part async for part in live.stream(notifications, None, lifetime_seconds=0.05)]
    assert said[0] == "retry: 2000\n\n"


async def test_who_leaves_is_forgotten(notifications: Notifications) -> None:
    stream = await opened(notifications, None)
    assert len(notifications._subscriptions) == 1
    await stream.aclose()  # type: ignore[attr-defined]
    assert not notifications._subscriptions


async def test_a_quiet_stream_says_that_it_lives(notifications: Notifications, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "KEEP_ALIVE_SECONDS", 0.01)
    stream = await opened(notifications, None)
    assert await asyncio.wait_for(anext(stream), 10) == ": still here\n\n"


async def test_a_page_of_nodes_hears_of_owners_only(notifications: Notifications, database: str) -> None:
    nodes, groups = live.stream(notifications, None, nodes=True), await opened(notifications, None)
    assert await following(nodes) == "retry: 2000\n\n"
    waiting = asyncio.ensure_future(following(groups))
    notify(database, "", channel="kcoord_nodes")
    assert await following(nodes) == "event: nodes\ndata:\n\n"
    assert not waiting.done()
    hearing = asyncio.ensure_future(following(nodes))
    notify(database, "billing")
    assert await waiting == EVENTS
    assert not hearing.done()
    hearing.cancel()
