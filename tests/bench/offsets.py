"""Measurements of committed offsets: commits of some partitions each, and what a commit leaves in the journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from groups.core.model.replies import JoinReply
from groups.topics import TopicService
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from offsets.commits.service import OffsetService
from offsets.journal.journal_days import JournalDays
from tests.bench.load import per_second
from tests.support.commits import OffsetCommit, PartitionCommit
from tests.support.offsets import reply_to

TOPIC = "inside"
PARTITIONS = (1, 5, 50)
COMMITS = 2_000

SIZE = """
select sum(pg_relation_size(relid)), sum(pg_indexes_size(relid))
from pg_partition_tree('offset_commit_log') where isleaf
"""


@dataclass(frozen=True, slots=True)
class Commits:
    """Commits of so many partitions each. `heap` and `indexes`: bytes of the journal for each commit."""

    partitions: int
    per_second: float
    heap: float
    indexes: float


async def commits(runtime: Runtime, members: Sequence[JoinReply]) -> list[Commits]:
    """Commits of 1, 5 and 50 partitions; the member at position n of `members` is the only one of group `g<n>`."""
    await runtime.get(TopicService).create(TOPIC, max(PARTITIONS))
    await runtime.get(JournalDays).keep()
    return [await _commits(runtime, members, partitions) for partitions in PARTITIONS]


async def _commits(runtime: Runtime, members: Sequence[JoinReply], partitions: int) -> Commits:
    service = runtime.get(OffsetService)

    async def job(number: int) -> None:
        group = number % len(members)
        member = members[group]
        entries = tuple(PartitionCommit(TOPIC, partition, number) for partition in range(partitions))
        commit = OffsetCommit(
            f"g{group}", member.member_id, None, member.generation_id, entries, principal="billing-service"
        )
        assert (await reply_to(service, commit)).error is Error.NONE

    async with runtime.db.connection() as connection:
        await connection.execute("truncate offset_commit_log")
    rate = await per_second(job, COMMITS)
    async with runtime.db.connection() as connection:
        row = await runtime.db.row(connection, SIZE)
    assert row is not None
    return Commits(partitions, rate, float(row[0]) / COMMITS, float(row[1]) / COMMITS)
