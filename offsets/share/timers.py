"""The timers of locks. Celery calls them in every installation; who acquires ends the locks of its partitions itself.
As with sessions, nothing ends while nobody owns the coordinator partition of a group.

Source: share.md 7.4; architecture.md 6.
"""

from __future__ import annotations

import structlog

from groups.configs import GroupConfigs
from groups.engine.service import GroupService
from kcoord.database.pool import Connection
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError
from offsets.core.types import Millis
from offsets.share.store import composite, rules_of

log = structlog.get_logger(__name__)

Q = queries("offsets")

ENDED_AT_ONCE = 500
"""Locks that one transaction ends."""
MAX_BATCHES = 20
"""The most that one run takes of each group, so that it ends; the rest is left to the next run."""
REMEMBERED_MS: Millis = 600_000
"""How long it stays known what became of a lock."""
FORGOTTEN_AT_ONCE = 5_000


class LockTimers:
    """Ends locks whose time is over. Late or double runs are harmless."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._configs = runtime.get(GroupConfigs)
        self._groups = runtime.get(GroupService)

    async def end_overdue(self) -> int:
        """End overdue locks of all groups, and forget what became of old ones; returns how many locks ended.

        A group that fails is logged and left to the next run. Raises ProtocolError when the database is unavailable.
        """
        async with self._db.connection() as connection:
            now = await self._db.now_ms(connection)
            due = await self._db.rows(connection, Q.groups_with_overdue_locks, {"now": now})
        ended = 0
        for group_id, pk in due:
            try:
                ended += await self._end(group_id, pk, now)
            except ProtocolError as error:
                log.warning("locks_left_to_next_run", group_id=group_id, reason=error.detail)
        async with self._db.connection() as connection:
            parameters = {"before": now - REMEMBERED_MS, "most": FORGOTTEN_AT_ONCE}
            await connection.execute(Q.forget_ended_locks.encode(), parameters)
        return ended

    async def _end(self, group_id: str, pk: int, now: Millis) -> int:
        rules = composite(rules_of(await self._configs.resolved(group_id)))
        parameters = {"group": pk, "most": ENDED_AT_ONCE, "rules": rules, "now": now}

        async def work(connection: Connection) -> int:
            if not await self._groups.counts_time(connection, group_id):
                return 0
            return int(await self._db.value(connection, Q.expire_share_locks, parameters))

        total = 0
        for _ in range(MAX_BATCHES):
            ended = await self._db.transaction(work)
            total += ended
            if ended < ENDED_AT_ONCE:
                break
        return total
