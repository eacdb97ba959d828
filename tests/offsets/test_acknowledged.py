"""What of the acknowledged commits is looked for; tests/failover has the real losses."""

from __future__ import annotations

import psycopg
import pytest

from groups.topics import TopicService
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from offsets.commits import acknowledged
from offsets.commits.acknowledged import AcknowledgedCommits
from offsets.commits.service import OffsetService
from tests.support.commits import OffsetCommit, PartitionCommit
from tests.support.offsets import reply_to


async def commit(runtime: Runtime, group_id: str, offset: int) -> None:
    """As a simple consumer."""
    partitions = (PartitionCommit("orders", 0, offset),)
    reply = await reply_to(runtime.get(OffsetService), OffsetCommit(group_id, "", None, -1, partitions))
    assert reply.error.code == 0


async def test_commits_since_the_fail_over_do_not_end_the_search(
    runtime: Runtime, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acknowledged, "AT_ONCE", 1)
    await runtime.get(TopicService).create("orders", 1)
    await commit(runtime, "kept", 1)
    await commit(runtime, "lost", 2)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("delete from offset_commit_log where group_name = 'lost'")
        connection.execute("delete from offsets_committedoffset where committed_offset = 2")
    await commit(runtime, "later", 3)
    await runtime.get(AcknowledgedCommits).compare()
    with psycopg.connect(database) as connection:
        stored = connection.execute("select committed_offset from offsets_committedoffset order by 1").fetchall()
    assert stored == [(1,), (2,), (3,)]
    assert runtime.get(AcknowledgedCommits).loss.offsets == 1


def test_lines_that_are_missing_are_told_in_their_order(database: str) -> None:
    """The last one of a partition is stored again, however Postgres looks for them."""
    count = 500
    lines = {
        "group_name": [f"g{number % 7}" for number in range(count)],
        "topic": ["orders"] * count,
        "partition": [0] * count,
        "committed_offset": list(range(count)),
        "at": list(range(count)),
    }
    with psycopg.connect(database) as connection:
        for way in ("enable_nestloop", "enable_hashjoin", "enable_mergejoin"):
            connection.execute(f"set local {way} = off".encode())
            row = connection.execute(queries("offsets").missing_lines.encode(), lines).fetchone()
            assert row == (list(range(1, count + 1)),), way
