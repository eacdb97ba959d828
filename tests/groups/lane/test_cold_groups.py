"""Heartbeats of groups that are not in memory: loaded together, and not answered from what changed meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import psycopg
import pytest

from groups.core.model.commands import Heartbeat
from groups.core.model.group import Group
from groups.core.model.replies import HeartbeatReply
from groups.core.model.types import ClassicGroup
from groups.lane import heartbeats
from groups.store import bulk, classic
from groups.store.bulk import BulkLoad, Sized, parts
from groups.store.rows import GroupRow
from groups.store.store import GroupStore
from kcoord.database.clock import VirtualClock
from kcoord.metrics import TRANSACTIONS
from kcoord.process.off_loop import settled
from kcoord.protocol.errors import Error
from tests.bench.populate import Population, Template, copies
from tests.groups.lane.conftest import Beat
from tests.groups.lane.support import Process, from_memory, joined_consumer, query
from tests.groups.lane.test_heartbeats import remove
from tests.support.members import eventually, stable_member


async def populated(
    process: Process, clock: VirtualClock, groups: int, members: int, prefix: str = "cold"
) -> Population:
    """Groups that no process has in memory."""
    joined = await stable_member(process.groups, clock, "template")
    template = Template("template", [joined.member_id], joined.generation_id)
    return copies(process.database, template, prefix, groups, members)


async def beats(process: Process, people: Population) -> list[HeartbeatReply]:
    """A heartbeat of every member of every group, all at once."""
    commands = [
        Heartbeat(people.group(number), member, None, people.generation)
        for number in range(people.groups)
        for member in people.members
    ]
    return await asyncio.gather(*map(process.groups.heartbeat, commands))


def transactions() -> float:
    found: float = TRANSACTIONS.labels("committed")._value.get()
    return found


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy with other work changes nothing."""
    monkeypatch.setattr(heartbeats, "LOAD_SECONDS", 60.0)
    monkeypatch.setattr(heartbeats, "STALE_SECONDS", 60.0)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The statements of all processes from the beginning of the test."""
    found: list[bytes] = []
    execute = psycopg.AsyncCursor.execute

    async def noted(cursor: Any, statement: Any, *arguments: Any, **named: Any) -> Any:
        found.append(statement if isinstance(statement, bytes) else str(statement).encode())
        return await execute(cursor, statement, *arguments, **named)

    monkeypatch.setattr(psycopg.AsyncCursor, "execute", noted)
    return found


async def test_thousands_of_cold_groups_take_few_statements(
    one: Process, two: Process, clock: VirtualClock, sent: list[bytes]
) -> None:
    people = await populated(two, clock, 2_000, 2)
    sent.clear()
    committed, answered = transactions(), from_memory()
    replies = await beats(one, people)
    assert {reply.error for reply in replies} == {Error.NONE}
    assert (from_memory() - answered, transactions() - committed) == (4_000, 0)
    loading = [statement for statement in sent if b"/* groups." in statement]
    assert len(loading) <= 2_000 / heartbeats.LOADED_AT_ONCE * 6
    await one.flusher.flush()
    assert query(two.database, "select count(*) from groups_member where last_heartbeat_at = %s", clock.now_ms()) == [
        (4_000,)
    ]


async def test_both_protocols_are_loaded_together(one: Process, two: Process, clock: VirtualClock) -> None:
    consumers = [await joined_consumer(two, "a", f"consumer-{number}") for number in range(3)]
    people = await populated(two, clock, 3, 1)
    await one.notified()
    answered, committed = from_memory(), transactions()
    replies = await asyncio.gather(beats(one, people), *map(one.groups.consumer_heartbeat, consumers))
    assert {reply.error for reply in replies[0]} == {Error.NONE}
    assert {reply.error for reply in replies[1:]} == {Error.NONE}
    assert (from_memory() - answered, transactions() - committed) == (6, 0)


async def test_group_that_changes_while_it_is_loaded_is_not_answered_from_the_old_copy(
    beat: Beat, one: Process, two: Process, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Process two loads it, and process one changes it after the snapshot was taken."""
    read, changed = asyncio.Event(), asyncio.Event()
    groups = BulkLoad.groups

    async def slowly(self: BulkLoad, *arguments: Any) -> AsyncIterator[tuple[str, GroupRow, Group]]:
        found = [one async for one in groups(self, *arguments)]
        read.set()
        await changed.wait()
        for group in found:
            yield group

    monkeypatch.setattr(BulkLoad, "groups", slowly)
    answered = from_memory()
    beating = asyncio.create_task(beat(two))
    await asyncio.wait_for(read.wait(), 10)
    await remove(one.groups, protocol)
    await two.notified()
    changed.set()
    assert (await beating).error is Error.UNKNOWN_MEMBER_ID
    assert from_memory() == answered


async def test_group_that_cannot_be_loaded_fails_alone(
    one: Process, two: Process, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = await populated(two, clock, 20, 1)
    fold = classic.group_from_rows

    def broken(group_id: str, *arguments: Any) -> ClassicGroup:
        if group_id == people.group(7):
            raise RuntimeError("a row that cannot be read")
        return fold(group_id, *arguments)

    monkeypatch.setattr(classic, "group_from_rows", broken)
    answered = from_memory()
    commands = [Heartbeat(people.group(number), people.members[0], None, people.generation) for number in range(20)]
    found = await asyncio.gather(*map(one.groups.heartbeat, commands), return_exceptions=True)
    assert isinstance(found[7], RuntimeError), "as it fails in a transaction of its own"
    assert from_memory() == answered + 19


async def test_failed_load_leaves_all_to_the_store(
    one: Process, two: Process, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = await populated(two, clock, 5, 1)

    async def failing(self: GroupStore, group_ids: Sequence[str]) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(one.runtime.get(heartbeats.HeartbeatLane)._loading, "_work", failing)
    answered = from_memory()
    assert {reply.error for reply in await beats(one, people)} == {Error.NONE}
    assert from_memory() == answered


async def test_heartbeat_waits_for_a_load_no_longer_than_its_bound(
    one: Process, two: Process, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = await populated(two, clock, 5, 1)

    async def hanging(group_ids: Sequence[str]) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(heartbeats, "LOAD_SECONDS", 0.05)
    monkeypatch.setattr(one.runtime.get(heartbeats.HeartbeatLane)._loading, "_work", hanging)
    replies = await asyncio.wait_for(beats(one, people), 10)
    assert {reply.error for reply in replies} == {Error.NONE}


async def test_groups_of_all_sizes_are_loaded_in_bounded_parts(
    one: Process, two: Process, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "ROWS_AT_ONCE", 5)
    small = await populated(two, clock, 7, 2)
    template = Template("template", small.members[:1], small.generation)
    large = copies(two.database, template, "large", 2, 9)
    answered, committed = from_memory(), transactions()
    replies = [*await beats(one, small), *await beats(one, large)]
    assert {reply.error for reply in replies} == {Error.NONE}
    assert (from_memory() - answered, transactions() - committed) == (7 * 2 + 2 * 9, 0)


def test_parts_are_bounded_by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "ROWS_AT_ONCE", 10)
    sizes = [4, 6, 1, 20, 9, 2]
    found = parts(Sized(number, f"g{number}", size) for number, size in enumerate(sizes))
    assert [[one.size for one in part] for part in found] == [[4, 6], [1], [20], [9], [2]]
    assert list(parts([])) == []


async def test_cold_group_with_somebody_overdue_is_decided_in_the_store(
    one: Process, two: Process, clock: VirtualClock
) -> None:
    people = await populated(two, clock, 1, 2)
    clock.advance(10_000)
    for process in (one, two):
        await process.flusher.flush()
    answered, committed = from_memory(), transactions()
    assert {reply.error for reply in await beats(one, people)} == {Error.UNKNOWN_MEMBER_ID}
    assert from_memory() == answered
    assert transactions() > committed


async def test_group_that_does_not_exist_is_unknown(one: Process) -> None:
    reply = await settled(one.groups.heartbeat(Heartbeat("nowhere", "m", None, 1)))
    assert reply.error is Error.UNKNOWN_MEMBER_ID


async def test_all_groups_are_loaded_again_after_a_lost_connection(
    one: Process, two: Process, clock: VirtualClock, sent: list[bytes]
) -> None:
    people = await populated(two, clock, 30, 1)
    await beats(one, people)
    for dropper in one.runtime.db._droppers:
        dropper()
    sent.clear()
    answered, committed = from_memory(), transactions()
    assert {reply.error for reply in await beats(one, people)} == {Error.NONE}
    assert (from_memory() - answered, transactions() - committed) == (30, 0)
    assert sum(b"groups.load_members" in statement for statement in sent) == 1


async def test_memory_of_sessions_does_not_grow_with_groups_that_the_store_forgot(
    one: Process, two: Process, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeats, "LEAST_ENTRIES", 4)
    lane, store = one.runtime.get(heartbeats.HeartbeatLane), one.runtime.get(GroupStore)
    lane._room = 4
    people = await populated(two, clock, 40, 1)
    monkeypatch.setattr(store._copies, "_capacity", 3)
    for number in range(people.groups):
        assert (
            await settled(one.groups.heartbeat(Heartbeat(people.group(number), people.members[0], None, 1)))
        ).error is Error.NONE
        await one.flusher.flush()
    assert len(lane._entries) <= 8
    await eventually(lambda: len(one.flusher._known) <= 10, "they are freed")
