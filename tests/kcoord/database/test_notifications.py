"""Hints: each reaches those who asked for it, and pages only what they show."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from kcoord.database.notifications import CHANGED, CHANNELS, CONFIG, TOPICS, WAKE
from kcoord.process.runtime import Runtime


def notify(database: str, *hints: tuple[str, str]) -> None:
    """Send hints from outside."""
    with psycopg.connect(database, autocommit=True) as connection:
        for channel, payload in hints:
            connection.execute("select pg_notify(%s, %s)", (channel, payload))


@pytest.mark.parametrize("channel", CHANNELS)
async def test_a_hint_reaches_the_listeners_of_its_channel(runtime: Runtime, database: str, channel: str) -> None:
    heard: dict[str, list[str | None]] = {name: [] for name in CHANNELS}
    done = asyncio.Event()

    def listen(name: str, payload: str | None) -> None:
        heard[name].append(payload)
        if payload == "last":
            done.set()

    for name in CHANNELS:
        runtime.notifications.on(name, lambda payload, name=name: listen(name, payload))
    await asyncio.to_thread(notify, database, (channel, "g"), (channel, "last"))
    await asyncio.wait_for(done.wait(), 10)
    assert heard == {name: ["g", "last"] if name == channel else [] for name in CHANNELS}


async def test_pages_are_told_of_groups_and_not_of_the_catalogue(runtime: Runtime, database: str) -> None:
    async with runtime.notifications.subscribe() as subscription:
        hints = ((TOPICS, ""), (WAKE, "a"), (CONFIG, "b"), (CHANGED, "c"))
        await asyncio.to_thread(notify, database, *hints)
        told: set[str | None] = set()
        while "c" not in told:
            told |= (await asyncio.wait_for(subscription.get(), 10)).groups
        assert told == {"a", "b", "c"}


async def test_after_a_lost_connection_anything_may_have_changed(runtime: Runtime, database: str) -> None:
    again = {name: asyncio.Event() for name in CHANNELS}
    for name in CHANNELS:
        runtime.notifications.on(name, lambda payload, name=name: again[name].set() if payload is None else None)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name = 'kcoord-listener' and datname = current_database()"
        )
    for event in again.values():
        await asyncio.wait_for(event.wait(), 10)


async def test_a_listener_with_a_bug_does_not_make_the_process_deaf(runtime: Runtime, database: str) -> None:
    heard: list[str | None] = []
    done = asyncio.Event()

    def broken(payload: str | None) -> None:
        raise ZeroDivisionError

    def listen(payload: str | None) -> None:
        heard.append(payload)
        if payload == "last":
            done.set()

    runtime.notifications.on_wake(broken)
    runtime.notifications.on_wake(listen)
    await asyncio.to_thread(notify, database, (WAKE, "g"), (WAKE, "last"))
    await asyncio.wait_for(done.wait(), 10)
    assert heard == ["g", "last"]
    assert runtime.notifications.listening
