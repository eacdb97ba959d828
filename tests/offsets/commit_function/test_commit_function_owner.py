"""`kcoord.commit_offsets` and coordinator nodes: who is overdue is gone only where somebody counted the session."""

from __future__ import annotations

from typing import Any

import pytest

from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from tests.offsets.commit_function.test_commit_function import (
    BY_M1,
    HOUR_MS,
    ORDERS_0,
    Connection,
    member,
    now_ms,
    put,
)
from tests.support.commit_function import Refusal, commit


class TestOwnerOfThePartition:
    """An overdue member is gone only where somebody counted its session."""

    OVERDUE = -1
    FIRST = "insert into groups_coordinatornode (node_id, url, version, started_at, renewed_at, expires_at, ended_at)"
    PARTITION = "insert into groups_coordinatorpartition (partition, owner_id, epoch, gap, state, state_since)"

    def own(
        self,
        connection: Connection,
        *,
        lease_ms: int,
        gap: int = 0,
        state: str = "ACTIVE",
        stored_ms: int | None = None,
    ) -> None:
        """Somebody owns the partition of group g, with that much left of the lease.

        `stored_ms`: until when, from now, it has stored the sessions that it renewed.
        """
        row = connection.execute(
            f"{self.FIRST} values ('a', '', '', 0, 0, %s, null) returning id", [now_ms() + lease_ms]
        ).fetchone()
        assert row is not None
        if stored_ms is not None:
            connection.execute("update groups_coordinatornode set flushed_until = %s", [now_ms() + stored_ms])
        connection.execute(f"{self.PARTITION} values (3, %s, 1, %s, %s, 0)", [row[0], gap, state])

    @pytest.mark.parametrize(
        ("owned", "error"),
        [
            ({"lease_ms": HOUR_MS}, Error.UNKNOWN_MEMBER_ID),
            ({"lease_ms": -1}, Error.COORDINATOR_LOAD_IN_PROGRESS),
            ({"lease_ms": HOUR_MS, "state": "LOADING"}, Error.COORDINATOR_LOAD_IN_PROGRESS),
            ({"lease_ms": HOUR_MS, "gap": 1}, Error.COORDINATOR_LOAD_IN_PROGRESS),
            ({"lease_ms": HOUR_MS, "stored_ms": -HOUR_MS}, Error.COORDINATOR_LOAD_IN_PROGRESS),
            ({"lease_ms": HOUR_MS, "stored_ms": HOUR_MS}, Error.UNKNOWN_MEMBER_ID),
            (None, Error.UNKNOWN_MEMBER_ID),
        ],
    )
    async def test_of_a_classic_group(
        self, runtime: Runtime, connection: Connection, owned: dict[str, Any] | None, error: Error
    ) -> None:
        await put(runtime, member("m1", session_in_ms=self.OVERDUE))
        if owned is not None:
            self.own(connection, **owned)
        refused = commit(connection, ORDERS_0, **BY_M1)
        assert isinstance(refused, Refusal)
        assert refused.name == error.name
