"""After an outage retention waits, as Kafka's does: members that could not commit get the time to do it."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from offsets.commits.retention.sweep import MINUTE_MS, RetentionService
from tests.offsets.retention.test_retention import commit, config, topics  # noqa: F401 - fixtures

WAIT_MS = 600_000
LONG_MS = 2 * MINUTE_MS
PARTITION_OF_G = 3


@pytest.mark.parametrize(
    ("owned", "removed"),
    [
        (None, 1),
        ({"active_ms_ago": WAIT_MS}, 1),
        ({"active_ms_ago": WAIT_MS - 1}, 0),
        ({"active_ms_ago": WAIT_MS, "lease_ms": 0}, 0),
        ({"active_ms_ago": WAIT_MS, "state": "LOADING"}, 0),
        ({"active_ms_ago": 0, "partition": PARTITION_OF_G + 1}, 1),
    ],
)
async def test_a_partition_must_have_been_active_for_a_while(
    runtime: Runtime, clock: VirtualClock, database: str, owned: dict[str, Any] | None, removed: int
) -> None:
    await commit(runtime, "g", "orders", 0)
    clock.advance(LONG_MS)
    if owned is not None:
        own(database, clock.now_ms(), **owned)
    report = await runtime.get(RetentionService).run(WAIT_MS)
    assert (report.offsets, report.groups) == (removed, removed)


def own(
    database: str,
    now: int,
    *,
    active_ms_ago: int,
    lease_ms: int = 3_000,
    state: str = "ACTIVE",
    partition: int = PARTITION_OF_G,
) -> None:
    """A node owns the partition."""
    with psycopg.connect(database, autocommit=True) as connection:
        row = connection.execute(
            "insert into groups_coordinatornode (node_id, url, version, started_at, renewed_at, expires_at)"
            " values ('a', '', '', 0, 0, %s) returning id",
            [now + lease_ms],
        ).fetchone()
        assert row is not None
        connection.execute(
            "insert into groups_coordinatorpartition"
            " (partition, owner_id, epoch, gap, state, state_since, active_since)"
            " values (%s, %s, 1, 0, %s, 0, %s)",
            [partition, row[0], state, now - active_ms_ago],
        )
