"""Repair of what reconcile found: only of what still is as the run saw it, journalled, under the group's lock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kcoord.door.http.local_transport import local_operator
from kcoord.process.runtime import Runtime
from offsets.runs.repair import MENDED, Mend, RepairService
from tests.support.journal import journal_lines
from tests.support.ledger import Ledger

FIND = """
select distinct on (l.partition) l.partition, o.record_offset, o.committed_offset as seen, l.id, l.at,
       l.committed_offset, l.leader_epoch, l.metadata, l.expire_timestamp
from offset_commit_log l
left join groups_group g on g.group_id = l.group_name
left join offsets_committedoffset o on o.group_id = g.id and o.topic = l.topic and o.partition = l.partition
order by l.partition, l.id desc
"""


@pytest.fixture
def ledger(database: str) -> Iterator[Ledger]:
    """The group `billing` with commits on four partitions of `orders`; all but the last were tampered with."""
    made = Ledger(database)
    made.topic("orders", partitions=4)
    made.group("billing")
    for partition in range(4):
        made.commit(partition, 20)
    made.execute("delete from offsets_committedoffset where partition = 0")
    made.execute("update offsets_committedoffset set committed_offset = 99, metadata = 'x' where partition = 1")
    made.execute(
        "insert into offset_commit_log (at, kind, group_name, topic, partition)"
        " values (%(at)s, 'delete', 'billing', 'orders', 2)",
        at=made.now,
    )
    yield made
    made.connection.close()


def mends(ledger: Ledger) -> list[Mend]:
    """What a run would propose."""
    return [
        Mend(
            *("other_offset", "billing", "orders", row["partition"], row["record_offset"], row["seen"]),
            *(row["id"], row["at"], row["committed_offset"], row["leader_epoch"], row["metadata"]),
            row["expire_timestamp"],
        )
        for row in ledger.execute(FIND)
        if row["partition"] < 3
    ]


async def test_the_view_becomes_what_the_journal_says(ledger: Ledger, runtime: Runtime, database: str) -> None:
    done = await runtime.get(RepairService).repair(mends(ledger), "a run", local_operator())
    assert [one.outcome for one in done] == [MENDED] * 3
    rows = ledger.execute("select partition, committed_offset, metadata from offsets_committedoffset order by 1")
    assert [tuple(row.values()) for row in rows] == [(0, 20, "note"), (1, 20, "note"), (3, 20, "note")]
    lines = journal_lines(database, where="principal <> ''")
    assert [(line["kind"], line["partition"], line["committed_offset"]) for line in lines] == [
        ("restore", 0, 20),
        ("restore", 1, 20),
        ("delete", 2, None),
    ]
    events = ledger.execute("select kind, detail ->> 'reason' as reason from groups_event order by id")
    told = [("offsets_restored", "repair of reconcile a run"), ("offsets_deleted", "repair of reconcile a run")]
    assert [tuple(event.values()) for event in events] == told


async def test_what_moved_since_the_run_is_left_alone(ledger: Ledger, runtime: Runtime) -> None:
    planned = mends(ledger)
    ledger.commit(0, 30)
    ledger.commit(1, 40)
    ledger.execute("update offsets_committedoffset set committed_offset = 98 where partition = 2")
    done = await runtime.get(RepairService).repair(planned, "a run", local_operator())
    assert {one.outcome for one in done} == {"committed or removed since the run: run reconcile again"}
    rows = ledger.execute("select committed_offset from offsets_committedoffset order by partition")
    assert [row["committed_offset"] for row in rows] == [30, 40, 98, 20]


async def test_open_transactions_and_missing_partitions_are_left_alone(ledger: Ledger, runtime: Runtime) -> None:
    ledger.execute("update groups_topic set name = 'other'")
    ledger.execute(
        "insert into offsets_pendingoffset (producer_id, group_id, topic, partition, committed_offset, leader_epoch,"
        " metadata, commit_timestamp, opened_at, record_offset, member_id, generation_id, client_id, principal)"
        " select 1, id, 'orders', 1, 30, -1, '', 0, 0, 1000, '', -1, '', '' from groups_group"
    )
    done = await runtime.get(RepairService).repair(mends(ledger)[:2], "a run", local_operator())
    assert [one.outcome.split(":")[0] for one in done] == [
        "no such partition",
        "a transaction is open on it",
    ]


async def test_a_group_that_is_gone_is_made_again(ledger: Ledger, runtime: Runtime) -> None:
    ledger.execute("delete from groups_group")
    done = await runtime.get(RepairService).repair(mends(ledger)[:2], "a run", local_operator())
    assert [one.outcome for one in done] == [MENDED] * 2
    rows = ledger.execute(
        "select g.group_id, o.partition, o.committed_offset"
        " from offsets_committedoffset o join groups_group g on g.id = o.group_id order by 2"
    )
    assert [tuple(row.values()) for row in rows] == [("billing", 0, 20), ("billing", 1, 20)]
