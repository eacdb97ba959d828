"""Groups that are decided in one transaction: they are few transactions, and none of them suffers from another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from groups.core.model.replies import JoinReply
from groups.core.model.types import ClassicGroup, Protocol
from groups.engine import mailbox
from groups.engine.batches import Batch
from groups.engine.service import GroupService
from groups.store.store import GroupStore
from kcoord.database import sessions
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from tests.support.members import eventually, join, parked_join

WAITS = """
select exists (select from pg_stat_activity where query like '/* groups.lock_groups */%' and wait_event_type = 'Lock')
"""
CREATED = """
insert into groups_group (group_id, type, state, previous_state, state_since, generation_id, new_member_added, version,
                          created_at, updated_at)
values ('g3', 'classic', 'Empty', 'Empty', 0, 0, false, 1, 0, 0)
"""
GROUPS = [f"g{number}" for number in range(40)]


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The groups of each transaction of several groups, as they happen."""
    noticed: list[list[str]] = []
    transact = mailbox.Mailbox._transact_together

    async def noted(self: mailbox.Mailbox, batches: list[Batch], known: bool) -> list[Batch]:
        noticed.append([batch.group_id for batch in batches])
        return await transact(self, batches, known)

    monkeypatch.setattr(mailbox.Mailbox, "_transact_together", noted)
    return noticed


async def pending(service: GroupService, group_id: str) -> set[str]:
    group = (await service.describe(group_id)).group
    assert isinstance(group, ClassicGroup)
    return set(group.pending_join)


async def test_joins_of_many_groups_are_few_transactions(
    service: GroupService, together: list[list[str]], runtime: Runtime
) -> None:
    replies = await asyncio.gather(*(service.join(join(group_id)) for group_id in GROUPS))
    assert {reply.error for reply in replies} == {Error.MEMBER_ID_REQUIRED}
    assert together == [GROUPS]
    for group_id, reply in zip(GROUPS, replies, strict=True):
        assert await pending(service, group_id) == {reply.member_id}
    async with runtime.db.connection() as connection:
        rows = await runtime.db.rows(connection, "select count(distinct xmin::text) from groups_group")
    assert rows == [(1,)], "all rows are of one transaction"


async def test_groups_share_no_transaction_that_is_not_a_pipeline(
    service: GroupService, together: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers before 17: the attempt would be a transaction for nothing."""
    monkeypatch.setattr(sessions, "PIPELINED_FROM", 1_000_000)  # of connections that are opened from now on
    monkeypatch.setattr(service._db, "pipelines", False)
    replies = await asyncio.gather(*(service.join(join(group_id)) for group_id in GROUPS))
    assert {reply.error for reply in replies} == {Error.MEMBER_ID_REQUIRED}
    assert together == []


async def test_groups_whose_answers_wait_are_woken_each(service: GroupService, clock: Any, other: GroupService) -> None:
    """Requests that wait at another server are answered, group by group."""
    waiting = [await parked_join(service, group_id=group_id) for group_id in GROUPS[:8]]
    clock.advance(3_000)
    await asyncio.gather(*(other.tick(group_id) for group_id in GROUPS[:8]))
    replies: list[JoinReply] = await asyncio.wait_for(asyncio.gather(*waiting), 10)
    assert {reply.generation_id for reply in replies} == {1}


async def _waits(runtime: Runtime) -> bool:
    async with runtime.db.connection() as connection:
        return bool(await runtime.db.value(connection, WAITS))


async def test_a_group_that_is_locked_keeps_no_other_waiting(
    service: GroupService, runtime: Runtime, together: list[list[str]], database: str
) -> None:
    await asyncio.gather(*(service.join(join(group_id)) for group_id in GROUPS))
    async with await psycopg.AsyncConnection.connect(database) as locker:
        await locker.execute("select 1 from groups_group where group_id = 'g7' for update")
        joins = {group_id: asyncio.create_task(service.join(join(group_id))) for group_id in GROUPS}
        others = [task for group_id, task in joins.items() if group_id != "g7"]
        assert {reply.error for reply in await asyncio.gather(*others)} == {Error.MEMBER_ID_REQUIRED}
        await eventually(lambda: _waits(runtime), "it waits for its lock")
        assert not joins["g7"].done()
    assert (await joins["g7"]).error is Error.MEMBER_ID_REQUIRED
    assert len(await pending(service, "g7")) == 2
    assert together == [GROUPS, GROUPS], "it was tried with the others, and then alone"


async def test_a_group_that_another_process_creates_meanwhile_starts_over_alone(
    service: GroupService, other: GroupService, together: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it was decided on is no longer true; the others are stored."""
    persist, theirs = GroupStore.persist, []

    async def late(self: GroupStore, connection: Any, changed: Sequence[Any]) -> Any:
        monkeypatch.setattr(GroupStore, "persist", persist)
        theirs.append((await other.join(join("g3"))).member_id)
        return await persist(self, connection, changed)

    monkeypatch.setattr(GroupStore, "persist", late)
    replies = await asyncio.gather(*(service.join(join(group_id)) for group_id in GROUPS))
    assert together == [GROUPS]
    assert await pending(service, "g3") == {replies[3].member_id, *theirs}
    for group_id, reply in zip(GROUPS, replies, strict=True):
        assert reply.member_id in await pending(service, group_id)


async def test_a_group_that_another_process_is_creating_keeps_no_other_waiting(
    service: GroupService, together: list[list[str]], database: str
) -> None:
    """To insert its row waits for that transaction, which may belong to a frozen process."""
    async with await psycopg.AsyncConnection.connect(database) as creator:
        await creator.execute(CREATED)
        joins = {group_id: asyncio.create_task(service.join(join(group_id))) for group_id in GROUPS}
        others = [task for group_id, task in joins.items() if group_id != "g3"]
        assert {reply.error for reply in await asyncio.gather(*others)} == {Error.MEMBER_ID_REQUIRED}
        assert not joins["g3"].done()
        await creator.rollback()
    assert (await joins["g3"]).error is Error.MEMBER_ID_REQUIRED
    assert together == [GROUPS]


async def test_a_group_that_cannot_be_written_fails_alone(service: GroupService, together: list[list[str]]) -> None:
    """Postgres refuses what one of them holds, and with it the transaction of all: each has its own then."""
    joins = [service.join(join(group_id, client_id="\0" if group_id == "g5" else "c")) for group_id in GROUPS]
    replies = await asyncio.gather(*joins, return_exceptions=True)
    assert isinstance(replies.pop(5), psycopg.DataError)
    assert {reply.error for reply in replies} == {Error.MEMBER_ID_REQUIRED}  # type: ignore[union-attr]
    assert len(together) == 1
    assert (await service.describe("g5")).group is None
    assert len(await pending(service, "g6")) == 1, "nothing is stored twice"


@pytest.mark.parametrize(
    ("limit", "most", "sizes"),
    [("GROUPS_TOGETHER", 16, [16, 16, 8]), ("MEMBERS_TOGETHER", 10, [10] * 4), ("BYTES_TOGETHER", 450, [9] * 4 + [4])],
)
async def test_a_transaction_of_many_groups_is_bounded(
    service: GroupService,
    together: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    most: int,
    sizes: list[int],
) -> None:
    monkeypatch.setattr(mailbox, limit, most)
    protocols = (Protocol("range", bytes(50)),)
    await asyncio.gather(*(service.join(join(group_id, protocols=protocols)) for group_id in GROUPS))
    assert list(map(len, together)) == sizes
    assert [group_id for flight in together for group_id in flight] == GROUPS


async def test_a_large_group_has_a_transaction_of_its_own(
    service: GroupService, together: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    await asyncio.gather(*(service.join(join("g0")) for _ in range(3)))
    waiting = await parked_join(service, group_id="g0")
    monkeypatch.setattr(mailbox, "MEMBERS_TOGETHER", 1)
    await asyncio.gather(*(service.join(join(group_id)) for group_id in GROUPS))
    assert "g0" not in [group_id for flight in together for group_id in flight]
    waiting.cancel()
