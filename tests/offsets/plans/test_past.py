"""What a plan takes from the journal, and what from the archive."""

from __future__ import annotations

import psycopg

from groups.topics import TopicService
from kcoord.database.clock import VirtualClock
from kcoord.door.http.local_transport import local_operator
from kcoord.process.runtime import Runtime
from kcoord.resets.strategies import Reset, Strategy
from offsets.commits.service import OffsetService
from offsets.journal.archived_offsets import ArchivedOffsets, ReadAhead
from offsets.plans.service import PlanService
from tests.support.commits import OffsetCommit, PartitionCommit
from tests.support.offsets import reply_to


async def test_the_journal_is_asked_before_the_archive(runtime: Runtime, clock: VirtualClock) -> None:
    topics, offsets, plans = runtime.get(TopicService), runtime.get(OffsetService), runtime.get(PlanService)
    await topics.create("orders", 4)
    await topics.create("payments", 1)
    await reply_to(offsets, OffsetCommit("g", "", None, -1, (PartitionCommit("orders", 0, 10),)))
    at = clock.now_ms()
    archive = {("orders", 0): 5, ("orders", 1): 6, ("orders", 2): None, ("payments", 0): 7, ("gone", 0): 8}
    runtime.get(ArchivedOffsets).read_ahead = ReadAhead(at, lambda group: archive if group == "g" else {})
    clock.advance(1)
    entries = (PartitionCommit("orders", 1, 20), PartitionCommit("orders", 2, 20), PartitionCommit("orders", 3, 20))
    await reply_to(offsets, OffsetCommit("g", "", None, -1, entries))
    made = await plans.create("g", Reset(Strategy.TO_COMMITTED_AT, at=at), local_operator())
    assert {line.key: (line.new, line.note) for line in (await plans.lines(made)).items} == {
        ("orders", 0): (10, ""),
        ("orders", 1): (6, "from the archive"),
        ("orders", 2): (None, "no offset was committed then"),
        ("orders", 3): (None, "not in the journal up to then"),
        ("payments", 0): (7, "from the archive"),
    }
    named = Reset(Strategy.TO_COMMITTED_AT, (("orders", (0, 1)),), at=at)
    made = await plans.create("g", named, local_operator())
    assert [line.new for line in (await plans.lines(made)).items] == [10, 6]


async def test_what_a_share_group_of_the_same_name_did_is_no_commit(
    runtime: Runtime, clock: VirtualClock, database: str
) -> None:
    topics, offsets, plans = runtime.get(TopicService), runtime.get(OffsetService), runtime.get(PlanService)
    await topics.create("orders", 1)
    at = clock.now_ms()
    with psycopg.connect(database) as connection:
        connection.execute(
            "insert into offset_commit_log (at, kind, group_name, topic, partition, metadata)"
            """ values (%s, 'items_done', 'g', 'orders', 0, '{"accept":[[0,9]]}')""",
            [at],
        )
    clock.advance(1)
    await reply_to(offsets, OffsetCommit("g", "", None, -1, (PartitionCommit("orders", 0, 20),)))
    made = await plans.create("g", Reset(Strategy.TO_COMMITTED_AT, at=at), local_operator())
    assert [(line.new, line.note) for line in (await plans.lines(made)).items] == [
        (None, "no offset was committed then")
    ]
