"""The mailbox: many commands in few transactions, and one that fails does not take the others along."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import psycopg
import pytest

from groups.core.machine import decide
from groups.core.model.commands import CommitOffsets, Heartbeat
from groups.core.model.replies import HeartbeatReply
from groups.core.model.turn import Decision
from groups.core.model.types import ClassicGroup, Env
from groups.engine import batches
from groups.engine.service import GroupService
from groups.store.locked import LockedGroup
from groups.topics import TopicService
from kcoord.database.clock import VirtualClock
from kcoord.metrics import TRANSACTIONS
from kcoord.process.off_loop import settled
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.requests import current
from kcoord.requests.current import Receipt
from kcoord.requests.turnstile import Places
from tests.support.members import eventually, heartbeat, join, leave, parked_join, pending_id, stable_member
from tests.support.rounds import bounded

T = TypeVar("T")


async def test_a_storm_of_joins_takes_few_transactions(service: GroupService, clock: VirtualClock) -> None:
    ids = [await pending_id(service) for _ in range(100)]
    before = TRANSACTIONS.labels("committed")._value.get()
    tasks = [asyncio.create_task(service.join(join(member_id=member_id))) for member_id in ids]

    async def all_parked() -> bool:
        group = (await service.describe("g")).group
        return group is not None and len(group.members) == len(ids)

    await eventually(all_parked, "all are parked")
    assert TRANSACTIONS.labels("committed")._value.get() - before <= 10
    for _ in range(12):
        clock.advance(3_000)
        await service.tick("g")
    replies = await asyncio.gather(*tasks)
    assert {reply.generation_id for reply in replies} == {1}
    assert sum(bool(reply.members) for reply in replies) == 1


@pytest.mark.parametrize("is_known", [True, False])
async def test_what_comes_while_a_batch_waits_for_a_connection_is_decided_with_it(
    service: GroupService, topics: TopicService, monkeypatch: pytest.MonkeyPatch, *, is_known: bool
) -> None:
    """Unless the topics have changed since its own were read, which those that come later may depend on."""
    places = Places(0)
    monkeypatch.setattr(service._db, "_for_keys", places)
    before = TRANSACTIONS.labels("committed")._value.get()
    first = asyncio.create_task(service.join(join()))
    await eventually(lambda: places.waiting == 1, "its batch waits")
    later = [asyncio.create_task(service.join(join())) for _ in range(2)]
    await eventually(lambda: len(service._mailbox._queues["g"]) == 2, "the others wait behind it")
    if not is_known:
        monkeypatch.setattr(topics, "known", lambda: None)
    places.give()
    replies = await asyncio.gather(first, *later)
    assert {reply.error for reply in replies} == {Error.MEMBER_ID_REQUIRED}
    assert len({reply.member_id for reply in replies}) == 3
    assert TRANSACTIONS.labels("committed")._value.get() - before == (1 if is_known else 2)


async def test_two_processes_create_one_group(service: GroupService, other: GroupService) -> None:
    replies = await asyncio.gather(*(side.join(join()) for _ in range(10) for side in (service, other)))
    assert {reply.error for reply in replies} == {Error.MEMBER_ID_REQUIRED}
    group = (await service.describe("g")).group
    assert group is not None
    assert set(group.pending_join) == {reply.member_id for reply in replies}


async def test_cache_of_one_process_never_hides_what_another_did(
    service: GroupService, other: GroupService, clock: VirtualClock
) -> None:
    member = await stable_member(service, clock)
    assert (await settled(other.heartbeat(heartbeat(member)))).error is Error.NONE
    assert (await service.leave(leave(member.member_id))).members[0].error is Error.NONE
    assert (await settled(other.heartbeat(heartbeat(member)))).error is Error.UNKNOWN_MEMBER_ID
    again = await stable_member(other, clock)
    assert again.generation_id > member.generation_id
    assert (await settled(service.heartbeat(heartbeat(again)))).error is Error.NONE


async def test_a_bug_in_one_command_spares_the_rest_of_its_batch(
    service: GroupService, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = await stable_member(service, clock)

    def broken(group: ClassicGroup | None, command: object, env: Env) -> Decision:
        if isinstance(command, Heartbeat) and command.member_id == "poison":
            raise ZeroDivisionError
        return decide(group, command, env)  # type: ignore[arg-type]

    monkeypatch.setattr(batches, "decide", broken)
    good, bad, also_good = await asyncio.gather(
        settled(service.heartbeat(heartbeat(member))),
        settled(service.heartbeat(Heartbeat("g", "poison", None, 1))),
        settled(service.heartbeat(heartbeat(member))),
        return_exceptions=True,
    )
    assert isinstance(bad, ZeroDivisionError)
    assert good.error is also_good.error is Error.NONE  # type: ignore[union-attr]


async def test_failed_transaction_leaves_waiters_waiting(
    service: GroupService, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = await parked_join(service)
    clock.advance(3_000)

    async def fail(*args: object, **kwargs: object) -> None:
        raise psycopg.OperationalError("the connection was lost")

    with monkeypatch.context() as patch:
        patch.setattr(service._store, "append_events", fail)
        with pytest.raises(ProtocolError) as raised:
            await service.tick("g")
    assert raised.value.error is Error.COORDINATOR_NOT_AVAILABLE
    assert not waiting.done()
    await service.tick("g")
    assert (await waiting).generation_id == 1


async def test_what_follows_a_deletion_in_a_batch_concerns_a_new_group(
    service: GroupService, clock: VirtualClock
) -> None:
    member = await stable_member(service, clock)
    await service.leave(leave(member.member_id))
    before = await service.describe("g")
    deleted, joined = await asyncio.gather(service.delete("g"), service.join(join()))
    after = await service.describe("g")
    assert deleted.error is Error.NONE
    assert joined.error is Error.MEMBER_ID_REQUIRED
    assert after.group is not None
    assert (after.pk != before.pk, after.group.generation_id) == (True, 0)


async def test_a_caller_that_gives_up_early_leaves_no_waiter_behind(service: GroupService) -> None:
    member_id = await pending_id(service)
    task = asyncio.create_task(service.join(join(member_id=member_id)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: not service.busy and not service._parked._waiters, "the abandoned command is done")


async def test_a_commit_decided_before_a_deletion_is_written_before_it(service: GroupService) -> None:
    written: list[int] = []

    async def write(locked: LockedGroup) -> str:
        written.append(locked.pk)
        return "written"

    simple = CommitOffsets("g", "", None, -1)
    assert await service.execute(simple, write) == "written"
    row = (await service.describe("g")).pk
    committed, deleted, again = await asyncio.gather(
        service.execute(simple, write), service.delete("g"), service.execute(simple, write)
    )
    assert (committed, deleted.error, again) == ("written", Error.NONE, "written")
    assert written[:2] == [row, row]
    assert written[2] == (await service.describe("g")).pk != row


async def test_a_command_whose_rows_cannot_be_written_spares_the_rest_of_its_batch(
    service: GroupService, clock: VirtualClock
) -> None:
    member = await stable_member(service, clock)

    async def refused_by_postgres(locked: LockedGroup) -> None:
        await locked.connection.execute("insert into groups_group (group_id) values (null)")

    async def write(_: LockedGroup) -> str:
        return "written"

    mine = CommitOffsets("g", member.member_id, None, member.generation_id)
    alive, bad, good = await asyncio.gather(
        settled(service.heartbeat(heartbeat(member))),
        service.execute(mine, refused_by_postgres),
        service.execute(mine, write),
        return_exceptions=True,
    )
    assert isinstance(bad, psycopg.errors.NotNullViolation)
    assert isinstance(alive, HeartbeatReply)
    assert (alive.error, good) == (Error.NONE, "written")


async def test_a_bug_after_the_commit_does_not_leave_the_group_unattended(
    service: GroupService, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = await stable_member(service, clock)

    def broken(*args: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(service._mailbox, "_follow_up", broken)
        await asyncio.wait_for(settled(service.heartbeat(heartbeat(member))), 10)
    reply = await asyncio.wait_for(settled(service.heartbeat(heartbeat(member))), 10)
    assert reply.error is Error.NONE


async def test_an_old_request_is_refused_and_the_others_of_its_batch_go_on(
    service: GroupService, clock: VirtualClock
) -> None:
    member = await stable_member(service, clock)

    def sent(seconds_ago: float | None, request: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        receipt = None if seconds_ago is None else Receipt(time.monotonic() - seconds_ago)
        token = current.enter_receipt(receipt)
        try:
            return asyncio.create_task(request)
        finally:
            current.leave_receipt(token)

    late = sent(60, service.leave(leave(member.member_id)))
    beat = sent(0, settled(service.heartbeat(heartbeat(member))))
    tick = sent(60, service.tick("g"))  # the service's own work is never too late
    with pytest.raises(ProtocolError, match=r"request\.max\.age\.ms") as caught:
        await late
    assert caught.value.error is Error.COORDINATOR_NOT_AVAILABLE
    assert ((await beat).error, (await tick).error) == (Error.NONE, Error.NONE)
    assert (await sent(0, service.leave(leave(member.member_id)))).members[0].error is Error.NONE


async def test_closing_when_a_task_has_just_ended_ends(service: GroupService) -> None:
    """Its callback has not run then; with Python 3.12 and later, gather does not let it."""

    async def work() -> None:
        return

    tasks = service._mailbox._background
    service._mailbox._spawn(work(), tasks)
    with bounded(5.0, AssertionError("it goes round in close()")):
        await asyncio.create_task(service._mailbox.close())
    assert not tasks
