"""Many commands at once, or an answer for each of many members, do not keep the loop from others."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from typing import Any

import pytest

from groups.core.machine import decide
from groups.core.model.replies import JoinReply
from groups.core.model.turn import Decision
from groups.core.model.types import ClassicGroup
from groups.engine import batches
from groups.engine.parked_requests import Claim
from groups.engine.service import GroupService
from groups.store import classic
from kcoord.database.clock import VirtualClock
from kcoord.process import off_loop
from kcoord.process.runtime import Runtime
from tests.support.members import eventually, join, pending_id
from tests.support.rounds import Rounds, counted_rounds

MEMBERS = 60


async def parked(service: GroupService, count: int) -> list[asyncio.Task[JoinReply]]:
    """The joins of `count` members, all of which wait."""
    ids = [await pending_id(service) for _ in range(count)]
    joins = [asyncio.create_task(service.join(join(member_id=member_id))) for member_id in ids]

    async def all_wait() -> bool:
        group = (await service.describe("g")).group
        return group is not None and len(group.members) == count

    await eventually(all_wait, "all joins wait")
    return joins


async def test_decisions_of_one_batch_are_made_in_several_rounds(
    service: GroupService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(off_loop, "SLICE_SECONDS", 0.0)
    async with counted_rounds() as rounds:
        decided: list[int] = []

        def noted(*arguments: Any) -> Decision:
            decided.append(rounds.now)
            return decide(*arguments)

        monkeypatch.setattr(batches, "decide", noted)
        replies = await asyncio.gather(*(service.join(join()) for _ in range(MEMBERS)))
    assert len({reply.member_id for reply in replies}) == MEMBERS
    assert len(decided) == len(set(decided)) == MEMBERS


async def test_answers_of_one_decision_are_given_in_several_rounds(service: GroupService, clock: VirtualClock) -> None:
    joins = await parked(service, MEMBERS)
    answered: list[int] = []
    async with counted_rounds() as rounds:

        def note(_: asyncio.Task[JoinReply]) -> None:
            answered.append(rounds.now)

        for task in joins:
            task.add_done_callback(note)
        for _ in range(2):
            clock.advance(3_000)
            await service.tick("g")
        replies = await asyncio.gather(*joins)
    assert {reply.generation_id for reply in replies} == {1}
    assert max(Counter(answered).values()) <= batches.ANSWERS_AT_ONCE


async def test_the_waiters_of_one_decision_are_found_in_several_rounds(
    service: GroupService, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them gives up before its turn: it is not answered, and the others are."""
    monkeypatch.setattr(off_loop, "SLICE_SECONDS", 0.0)
    joins = await parked(service, MEMBERS)
    found: list[int] = []
    claim = service._parked.claim
    async with counted_rounds() as rounds:

        def noted(*arguments: Any) -> list[Claim]:
            found.append(rounds.now)
            joins[-1].cancel()
            return claim(*arguments)

        monkeypatch.setattr(service._parked, "claim", noted)
        for _ in range(2):
            clock.advance(3_000)
            await service.tick("g")
        replies = await asyncio.gather(*joins, return_exceptions=True)
    assert isinstance(replies[-1], asyncio.CancelledError)
    assert [reply.generation_id for reply in replies if isinstance(reply, JoinReply)] == [1] * (MEMBERS - 1)
    assert len(found) == len(set(found)) == MEMBERS


async def test_a_member_that_gives_up_between_the_answers_harms_nobody(
    service: GroupService, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "ANSWERS_AT_ONCE", 1)
    joins = await parked(service, 10)

    def give_up(_: asyncio.Task[JoinReply]) -> None:
        joins[-1].cancel()

    joins[0].add_done_callback(give_up)
    for _ in range(2):
        clock.advance(3_000)
        await service.tick("g")
    replies = await asyncio.gather(*joins, return_exceptions=True)
    assert isinstance(replies[-1], asyncio.CancelledError)
    assert [reply.generation_id for reply in replies if isinstance(reply, JoinReply)] == [1] * 9


async def test_a_look_at_a_group_answers_in_several_rounds(
    service: GroupService, other: GroupService, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process lets the barrier fall, so those that wait here are answered by a look. One gives up meanwhile."""
    monkeypatch.setattr(off_loop, "SLICE_SECONDS", 0.0)
    joins = await parked(service, MEMBERS)
    answered: list[int] = []
    async with counted_rounds() as rounds:

        def note(task: asyncio.Task[JoinReply]) -> None:
            if not task.cancelled():
                answered.append(rounds.now)
            joins[-1].cancel()

        for task in joins:
            task.add_done_callback(note)
        for _ in range(2):
            clock.advance(3_000)
            await other.tick("g")
        replies = await asyncio.gather(*joins, return_exceptions=True)
    assert isinstance(replies[-1], asyncio.CancelledError)
    assert [reply.generation_id for reply in replies if isinstance(reply, JoinReply)] == [1] * (MEMBERS - 1)
    assert max(Counter(answered).values()) == 1


async def steps(rounds: Rounds, count: int, seen: list[int]) -> None:
    def each() -> Any:
        for _ in range(count):
            seen.append(rounds.now)
            yield

    await off_loop.in_slices(each())


@pytest.mark.parametrize(("seconds", "several"), [(0.0, True), (1_000.0, False)])
async def test_slices_end_when_their_time_is_over(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, seconds: float, several: bool
) -> None:
    monkeypatch.setattr(off_loop, "SLICE_SECONDS", seconds)
    seen: list[int] = []
    async with counted_rounds() as rounds:
        await steps(rounds, 5, seen)
    assert len(set(seen)) == (5 if several else 1)


async def test_what_concerns_all_members_leaves_the_loop(
    service: GroupService, other: GroupService, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(off_loop, "PER_MEMBER", off_loop.ABOVE)
    joins = await parked(service, 3)
    threads: set[str] = set()

    def noted(name: str, work: Any) -> Any:
        def run(*arguments: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():
                threads.add(name)
            return work(*arguments)

        return run

    monkeypatch.setattr(batches, "decide", noted("decide", decide))
    monkeypatch.setattr(classic, "changes", noted("changes", classic.changes))
    monkeypatch.setattr(classic, "group_from_rows", noted("load", classic.group_from_rows))
    for _ in range(2):
        clock.advance(3_000)
        await service.tick("g")
    assert {reply.generation_id for reply in await asyncio.gather(*joins)} == {1}
    here, there = await service.describe("g"), await other.describe("g")
    assert here.group == there.group
    assert threads == {"decide", "changes", "load"}


async def test_members_are_written_in_parts(
    service: GroupService, other: GroupService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classic, "MEMBERS_AT_ONCE", 3)
    joins = await parked(service, 10)
    here, there = await service.describe("g"), await other.describe("g")
    assert isinstance(there.group, ClassicGroup)
    assert here.group == there.group
    assert list(there.group.members) == list(here.group.members)  # type: ignore[union-attr]
    for task in joins:
        task.cancel()
    await asyncio.gather(*joins, return_exceptions=True)
