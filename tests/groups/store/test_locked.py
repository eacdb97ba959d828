"""Work in the transaction of a decision: what it is given, what it may add, and what a guard or a hook may do."""

from __future__ import annotations

import asyncio

import pytest

from groups.core.model.commands import CommitOffsets, Tick
from groups.core.model.events import EventKind, GroupEvent
from groups.core.model.replies import Done, Reply
from groups.core.model.types import ClassicGroup
from groups.engine.service import GroupService
from groups.readmodel import GroupReads
from groups.store import locked as joining
from groups.store.locked import Deletion, LockedGroup
from kcoord.database.clock import VirtualClock
from kcoord.database.pool import Connection
from kcoord.process.off_loop import settled
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from tests.support.members import heartbeat, leave, stable_member

SIMPLE = CommitOffsets("g", "", None, -1)


async def test_work_is_told_the_group_as_its_own_decision_left_it(service: GroupService, clock: VirtualClock) -> None:
    seen: list[LockedGroup] = []

    async def look(locked: LockedGroup) -> str:
        seen.append(locked)
        return "seen"

    member = await stable_member(service, clock)
    # Both are decided in one transaction: the tick before the member leaves, the commit after it.
    before, _, after = await asyncio.gather(
        service.execute(Tick("g"), look), service.leave(leave(member.member_id)), service.execute(SIMPLE, look)
    )
    assert (before, after) == ("seen", "seen")
    assert [len(locked.group.members) for locked in seen] == [1, 0]
    row = await service.describe("g")
    assert {locked.pk for locked in seen} == {row.pk}
    assert {locked.now for locked in seen} == {clock.now_ms()}


async def test_events_that_work_adds_are_on_the_timeline(service: GroupService, runtime: Runtime) -> None:
    async def tell(locked: LockedGroup) -> None:
        locked.events.append(GroupEvent(EventKind.OFFSETS_DELETED, 0, detail={"partitions": 3, "principal": "ops"}))

    await service.execute(SIMPLE, tell)
    page = await runtime.get(GroupReads).events("g", kinds=None, since=None, cursor=None, limit=10)
    told = [(event.kind, event.detail) for event in page.items]
    assert told == [
        ("offsets_deleted", {"partitions": 3, "principal": "ops"}),
        ("group_created", {}),
    ]


async def test_work_does_not_run_for_a_refusal(service: GroupService) -> None:
    async def never(locked: LockedGroup) -> str:
        raise AssertionError("a refused commit writes nothing")

    reply = await service.execute(CommitOffsets("g", "stranger", None, 1), never)
    assert reply.error is Error.GROUP_ID_NOT_FOUND


async def test_a_guard_answers_in_place_of_the_decision_and_spares_the_others(
    service: GroupService, clock: VirtualClock
) -> None:
    member = await stable_member(service, clock)
    await service.leave(leave(member.member_id))
    asked: list[int] = []

    async def refuse(connection: Connection, pk: int, now: int) -> Reply | None:
        asked.append(pk)
        return Done(Error.NON_EMPTY_GROUP, "it is pinned")

    async def allow(connection: Connection, pk: int, now: int) -> Reply | None:
        return None

    before = await service.describe("g")
    done, beat = await asyncio.gather(service.delete("g", guard=refuse), settled(service.heartbeat(heartbeat(member))))
    assert (done, beat.error) == (Done(Error.NON_EMPTY_GROUP, "it is pinned"), Error.UNKNOWN_MEMBER_ID)
    assert asked == [before.pk]
    assert isinstance((await service.describe("g")).group, ClassicGroup)
    assert (await service.delete("g", guard=allow)).error is Error.NONE
    assert (await service.describe("g")).group is None


async def test_a_guard_is_not_asked_about_a_group_that_is_not_there(service: GroupService) -> None:
    async def never(connection: Connection, pk: int, now: int) -> Reply | None:
        raise AssertionError("there is nothing to guard")

    assert (await service.delete("g", guard=never)).error is Error.GROUP_ID_NOT_FOUND


async def test_hooks_of_a_deletion_see_the_rows_and_who_wanted_it(
    service: GroupService, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[tuple[str, str, int]] = []

    async def hook(deletion: Deletion) -> None:
        rows = await runtime.db.value(
            deletion.connection, "select count(*) from groups_group where id = %(id)s", {"id": deletion.pk}
        )
        found.append((deletion.group_id, deletion.principal, rows))

    monkeypatch.setattr(joining, "_deletion_hooks", [hook])
    await service.execute(SIMPLE)
    await service.delete("g", principal="ops")
    assert found == [("g", "ops", 1)]


async def test_a_hook_that_fails_keeps_the_group(service: GroupService, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hook(deletion: Deletion) -> None:
        raise RuntimeError("the journal cannot be written")

    monkeypatch.setattr(joining, "_deletion_hooks", [hook])
    await service.execute(SIMPLE)
    with pytest.raises(RuntimeError, match="the journal cannot be written"):
        await service.delete("g")
    assert (await service.describe("g")).group is not None
