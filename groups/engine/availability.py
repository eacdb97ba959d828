"""Can this server coordinate groups at all? Not while the offset tables are missing: Kafka's offsets topic.

Source: offsets.md 8.1, rows 4 to 6.
"""

from __future__ import annotations

import asyncio
import time

from groups.engine.service import GroupService
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError

Q = queries("groups")

BELIEVED_SECONDS = 10.0
"""How long a process takes for granted that tables it has seen still exist."""


class CoordinatorAvailability:
    """Whether groups can be coordinated here, for one process."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._groups = runtime.get(GroupService)
        self._seen_until = 0.0
        self._looking = asyncio.Lock()

    @property
    def running(self) -> bool:
        """The groups service is not stopped."""
        return self._groups.active

    async def offsets_are_stored(self) -> bool:
        """The offset tables exist and the database answers. At most one query in BELIEVED_SECONDS.

        Differs from Kafka: they are not created on request; `manage.py migrate` creates them.
        """
        if time.monotonic() < self._seen_until:
            return True
        async with self._looking:  # callers that waited here find the previous caller's answer
            if time.monotonic() < self._seen_until:
                return True
            asked = time.monotonic()
            try:
                async with self._db.connection() as connection:
                    found = bool(await self._db.value(connection, Q.offsets_are_stored))
            except ProtocolError:
                return False  # the database is unavailable, which has been logged
            if found:
                self._seen_until = asked + BELIEVED_SECONDS
            return found
