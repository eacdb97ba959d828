"""The stream of changes: prompt, folded, of the right group, and ended by whoever leaves first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import psycopg
import pytest

from frontend import live
from frontend.live import _event
from kcoord.database.notifications import Notifications
from kcoord.database.paging import EVERYTHING, Visible

RETRY = "retry: 2000\n\n"
BEAT = 'event: beat\ndata: {"listening":true}\n\n'
DEAF = 'event: beat\ndata: {"listening":false}\n\n'


def changed(*group_ids: str, nodes: bool = False) -> str:
    return _event("changed", {"groups": list(group_ids), "nodes": nodes})


ANY = _event("changed", {"groups": None, "nodes": True})


@pytest.fixture
async def notifications(database: str) -> AsyncIterator[Notifications]:
    """The listener of a process."""
    listening = Notifications(database)
    await listening.start()
    await listening.wait_listening()
    yield listening
    await listening.stop()


async def following(stream: AsyncIterator[str], seconds: float = 10.0) -> str:
    """What the stream says next, beats left out."""
    while True:
        said = await asyncio.wait_for(anext(stream), seconds)
        if said != BEAT:
            return said


def notify(database: str, *group_ids: str, channel: str = "kcoord_changed") -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        for group_id in group_ids:
            connection.execute("select pg_notify(%s, %s)", [channel, group_id])


async def everything() -> Visible:
    return EVERYTHING


async def opened(notifications: Notifications) -> AsyncIterator[str]:
    """A stream that has begun."""
    stream = live.stream(notifications, everything)
    assert await anext(stream) == RETRY
    assert await anext(stream) == BEAT
    return stream


@pytest.mark.parametrize("channel", ["kcoord_changed", "kcoord_wake"])
async def test_a_change_is_told_on_either_channel(notifications: Notifications, database: str, channel: str) -> None:
    stream = await opened(notifications)
    notify(database, "billing", channel=channel)
    assert await following(stream) == changed("billing")


async def test_changes_in_quick_succession_are_one_event(
    notifications: Notifications, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused, go_on = asyncio.Event(), asyncio.Event()

    async def pause(seconds: float) -> None:
        assert seconds == live.DEBOUNCE_SECONDS
        paused.set()
        await go_on.wait()

    monkeypatch.setattr(live.asyncio, "sleep", pause)
    stream = await opened(notifications)
    notify(database, "billing")
    assert await following(stream) == changed("billing")
    told = asyncio.ensure_future(following(stream))
    await asyncio.wait_for(paused.wait(), 10)
    notify(database, *["billing"] * 50, "audit")
    async with notifications.subscribe() as other:  # when this has arrived, so have the fifty
        notify(database, "last")
        while "last" not in (await other.get()).groups:
            pass
    go_on.set()
    assert await told == changed("audit", "billing", "last")
    go_on.clear()
    paused.clear()
    rest = asyncio.ensure_future(following(stream))
    await asyncio.wait_for(paused.wait(), 10)
    go_on.set()
    notify(database, "billing")
    assert await rest == changed("billing")


async def test_more_groups_than_are_named_are_all_of_them(
    notifications: Notifications, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MOST_NAMED", 2)
    stream = await opened(notifications)
    for number in range(3):
        notifications._dispatch("kcoord_changed", f"g{number}")
    assert await following(stream) == _event("changed", {"groups": None, "nodes": False})


async def test_a_lost_connection_is_told_and_afterwards_anything_may_have_changed(
    notifications: Notifications, database: str
) -> None:
    stream = await opened(notifications)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name = 'kcoord-listener' and datname = current_database()"
        )
    assert await following(stream) == DEAF
    assert await asyncio.wait_for(anext(stream), 10) == BEAT
    assert await following(stream) == ANY


async def test_the_stream_ends_with_the_process(notifications: Notifications) -> None:
    stream = await opened(notifications)
    waiting = asyncio.ensure_future(following(stream))
    await asyncio.sleep(0)
    notifications.end_subscriptions()
    with pytest.raises(StopAsyncIteration):
        await waiting


async def test_the_stream_ends_by_itself_so_that_its_session_is_looked_at_again(notifications: Notifications) -> None:
    assert [part async for part in live.stream(notifications, everything, lifetime_seconds=0.05)] == [RETRY, BEAT]


async def test_who_leaves_is_forgotten(notifications: Notifications) -> None:
    stream = await opened(notifications)
    assert len(notifications._subscriptions) == 1
    await stream.aclose()  # type: ignore[attr-defined]
    assert not notifications._subscriptions


async def test_a_quiet_stream_says_that_it_lives(notifications: Notifications, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "BEAT_SECONDS", 0.01)
    stream = await opened(notifications)
    assert [await asyncio.wait_for(anext(stream), 10) for _ in range(2)] == [BEAT, BEAT]


async def test_a_busy_stream_says_so_as_well(notifications: Notifications, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(live, "DEBOUNCE_SECONDS", 0.02)
    stream = await opened(notifications)
    said = []
    for _ in range(4):
        notifications._dispatch("kcoord_changed", "billing")
        said.append(await asyncio.wait_for(anext(stream), 10))
    assert {BEAT, changed("billing")} == set(said)


async def test_new_owners_of_coordinator_partitions_are_told(notifications: Notifications, database: str) -> None:
    stream = await opened(notifications)
    notify(database, "", channel="kcoord_nodes")
    assert await following(stream) == changed(nodes=True)


async def test_a_stream_tells_of_groups_that_its_reader_sees(
    notifications: Notifications, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two people, and one of them may see other groups later."""
    monkeypatch.setattr(live, "CHECKED_SECONDS", 0)
    seen = {"billing": Visible(prefixes=("billing",)), "ledger": Visible(names=("ledger",))}

    def reader(name: str) -> Callable[[], Awaitable[Visible]]:
        async def visible() -> Visible:
            return seen[name]

        return visible

    streams = {name: live.stream(notifications, reader(name)) for name in seen}
    for stream in streams.values():
        assert [await anext(stream), await anext(stream)] == [RETRY, BEAT]
    notify(database, "ledger")
    assert await following(streams["ledger"]) == changed("ledger")
    notify(database, "billing-eu", "ledger", "hidden-7f3a")
    assert await following(streams["billing"]) == changed("billing-eu"), "nothing was said of ledger before"
    assert await following(streams["ledger"]) == changed("ledger")
    seen["ledger"] = Visible(names=("billing-us",))
    notify(database, "ledger", "billing-us")
    assert await following(streams["ledger"]) == changed("billing-us")
