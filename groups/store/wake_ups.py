"""Wake-ups of groups in which nothing is overdue, moved ahead for many groups at once.

Sessions that are extended do not move the wake-up of their group, so it comes once in a session, finds nothing, and
would cost a transaction of the group. No rules: a group is due at the earliest of its deadlines, as in `wake_at`.
"""

from __future__ import annotations

from groups.core.model.types import Millis
from kcoord.database.pool import Connection, Database
from kcoord.process.runtime import Runtime
from kcoord.sql import queries

Q = queries("groups")


class WakeUps:
    """Moves wake-ups."""

    def __init__(self, runtime: Runtime) -> None:
        self._db: Database = runtime.db

    async def move(self, limit: int) -> int:
        """Let due groups be due at their earliest deadline, if that is still to come; returns how many were looked at.

        At most `limit` groups. Those that other transactions hold are skipped: they set it themselves. Raises
        ProtocolError COORDINATOR_NOT_AVAILABLE.
        """

        async def work(connection: Connection) -> int:
            now: Millis = await self._db.now_ms(connection)
            ids = await self._db.column(connection, Q.lock_due_groups, {"now": now, "limit": limit})
            if ids:
                # In a statement of its own: what is read with the lock may be older than the lock.
                await connection.execute(Q.move_wake_ups.encode(), {"id": ids, "now": now})
            return len(ids)

        return await self._db.transaction(work, receipt=lambda: None)
