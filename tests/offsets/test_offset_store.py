"""The store of offsets: the view and the journal are written together, and together say the same."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from groups.core.model.commands import CommitOffsets
from groups.engine.service import GroupService
from groups.store.locked import LockedGroup
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from offsets.commits.store import OffsetStore
from offsets.core.types import ChangeKind, OffsetRecord, Provenance, TopicPartition

BY_MEMBER = Provenance(
    ChangeKind.COMMIT, principal="billing", member_id="m1", generation_id=4, client_id="c1", transactional_id="t"
)
BY_OPERATOR = Provenance(ChangeKind.DELETE, principal="ops", plan_id="7f9c24e8-3b12-4fef-91e0-56a2d5a1f0b3")


class Offsets:
    """Writes and removes as the services do, and reads what came of it."""

    def __init__(self, runtime: Runtime, database: str) -> None:
        self._groups = runtime.get(GroupService)
        self._store = runtime.get(OffsetStore)
        self._database = database

    async def write(self, *records: OffsetRecord, provenance: Provenance = BY_MEMBER) -> None:
        async def work(locked: LockedGroup) -> None:
            await self._store.write(locked, records, provenance)

        await self._groups.execute(CommitOffsets("g", "", None, -1), work)

    async def remove(self, *partitions: TopicPartition, avoided: str | None = None) -> list[TopicPartition]:
        """`avoided`: the kind of plan that Postgres avoids meanwhile."""

        async def work(locked: LockedGroup) -> list[TopicPartition]:
            if avoided is not None:
                await locked.connection.execute("select set_config(%s, 'off', true)", [avoided])
            return await self._store.remove(locked, partitions, BY_OPERATOR)

        removed: list[TopicPartition] = await self._groups.execute(CommitOffsets("g", "", None, -1), work)
        return removed

    def rows(self, table: str) -> list[dict[str, Any]]:
        with psycopg.connect(self._database, row_factory=dict_row) as connection:
            order = "id" if table == "offset_commit_log" else "topic, partition"
            return connection.execute(f"select * from {table} order by {order}".encode()).fetchall()


@pytest.fixture
def offsets(runtime: Runtime, database: str) -> Offsets:
    return Offsets(runtime, database)


async def test_a_commit_is_a_row_and_a_line(offsets: Offsets, clock: VirtualClock) -> None:
    await offsets.write(OffsetRecord("orders", 1, 42, 3, "note", clock.now_ms() + 60_000))
    (row,), (line,) = offsets.rows("offsets_committedoffset"), offsets.rows("offset_commit_log")
    told = {
        "topic": "orders",
        "partition": 1,
        "committed_offset": 42,
        "leader_epoch": 3,
        "metadata": "note",
        "expire_timestamp": clock.now_ms() + 60_000,
        "member_id": "m1",
        "generation_id": 4,
    }
    assert {name: row[name] for name in told} == told
    assert {name: line[name] for name in told} == told
    assert (row["commit_timestamp"], line["at"], row["record_offset"]) == (clock.now_ms(), clock.now_ms(), line["id"])
    assert line["xact_id"] > 0
    provenance = ("kind", "group_name", "client_id", "principal", "transactional_id", "plan_id")
    assert [line[name] for name in provenance] == ["commit", "g", "c1", "billing", "t", None]


async def test_a_later_commit_replaces_the_row_and_adds_a_line(offsets: Offsets) -> None:
    await offsets.write(OffsetRecord("orders", 0, 1), OffsetRecord("orders", 1, 1))
    await offsets.write(OffsetRecord("orders", 1, 2))
    rows, lines = offsets.rows("offsets_committedoffset"), offsets.rows("offset_commit_log")
    assert [(row["partition"], row["committed_offset"]) for row in rows] == [(0, 1), (1, 2)]
    assert [(line["partition"], line["committed_offset"]) for line in lines] == [(0, 1), (1, 1), (1, 2)]
    assert rows[1]["record_offset"] == lines[2]["id"] > lines[1]["id"]


async def test_a_record_may_bring_its_own_commit_time(offsets: Offsets, clock: VirtualClock) -> None:
    await offsets.write(OffsetRecord("orders", 0, 1, commit_timestamp=123))
    (row,), (line,) = offsets.rows("offsets_committedoffset"), offsets.rows("offset_commit_log")
    assert (row["commit_timestamp"], line["at"]) == (123, clock.now_ms())


async def test_what_is_removed_leaves_a_line_and_what_was_not_there_none(offsets: Offsets) -> None:
    await offsets.write(OffsetRecord("orders", 0, 1), OffsetRecord("orders", 1, 1))
    assert await offsets.remove(("orders", 1), ("orders", 7)) == [("orders", 1)]
    assert [row["partition"] for row in offsets.rows("offsets_committedoffset")] == [0]
    line = offsets.rows("offset_commit_log")[-1]
    assert (line["kind"], line["partition"], line["committed_offset"], line["principal"]) == ("delete", 1, None, "ops")
    assert str(line["plan_id"]) == BY_OPERATOR.plan_id


async def test_a_tombstone_takes_pending_offsets_along(offsets: Offsets, database: str) -> None:
    await offsets.write(OffsetRecord("orders", 0, 1))
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "insert into offsets_pendingoffset (producer_id, group_id, topic, partition, committed_offset,"
            " leader_epoch, metadata, commit_timestamp, opened_at, record_offset, member_id, generation_id, client_id,"
            " principal) select p, g.id, 'orders', 1, 5, -1, '', 0, 0, 9, '', -1, '', ''"
            " from groups_group g, (values (1), (2)) v (p)"
        )
    assert await offsets.remove(("orders", 1)) == [("orders", 1)]
    assert offsets.rows("offsets_pendingoffset") == []
    assert [line["partition"] for line in offsets.rows("offset_commit_log")] == [0, 1]


async def test_a_deleted_group_leaves_a_line_for_each_offset(offsets: Offsets, runtime: Runtime) -> None:
    await offsets.write(OffsetRecord("orders", 0, 1), OffsetRecord("bills", 3, 1))
    await runtime.get(GroupService).delete("g", principal="ops")
    assert offsets.rows("offsets_committedoffset") == []
    lines = offsets.rows("offset_commit_log")[2:]
    assert {(line["kind"], line["topic"], line["partition"], line["principal"]) for line in lines} == {
        ("group_delete", "orders", 0, "ops"),
        ("group_delete", "bills", 3, "ops"),
    }
    assert {line["group_name"] for line in lines} == {"g"}


@pytest.mark.parametrize("avoided", ["enable_sort", "enable_hashagg"])
async def test_removals_are_in_the_journal_in_order_whatever_the_plan(offsets: Offsets, avoided: str) -> None:
    """Postgres chooses by its statistics how it finds each removed partition once, and one way has no order."""
    partitions = [("orders", partition) for partition in range(50)]
    await offsets.write(*(OffsetRecord(topic, partition, 1) for topic, partition in partitions))
    await offsets.remove(*reversed(partitions), avoided=avoided)
    lines = [line for line in offsets.rows("offset_commit_log") if line["kind"] == "delete"]
    assert [(line["topic"], line["partition"]) for line in lines] == partitions


async def test_nothing_to_write_or_remove_is_no_statement(offsets: Offsets) -> None:
    await offsets.write()
    assert await offsets.remove() == []
    assert offsets.rows("offset_commit_log") == []
