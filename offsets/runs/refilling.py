"""An empty database filled from the archive alone: groups, their offsets, and the first lines of the journal.

Every offset gets a line of kind `restore`, written now, so journal and offsets agree, and reads of the past use the
archive. The archive has only the names of topics.

Source: architecture.md 7; docs/restore.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from groups.core.model.commands import ResetOffsets
from groups.core.model.events import EventKind
from groups.core.model.replies import Done
from groups.engine.service import GroupService
from groups.store.locked import LockedGroup
from groups.topics import TopicService
from kcoord.access.audit.recording import Act
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.commits.store import OffsetStore
from offsets.core.types import ChangeKind, OffsetRecord, Provenance
from offsets.journal.events import offsets_event
from offsets.plans.store import chunks

Q = queries("offsets")


class RefillService:
    """Fills an empty database. Methods may raise COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._groups = runtime.get(GroupService)
        self._topics = runtime.get(TopicService)
        self._offsets = runtime.get(OffsetStore)

    async def begin(self, newest: int, written: int) -> None:
        """Check that the database is empty, apart from an earlier attempt's writes, and start ids after the archive.

        `newest`: the largest record offset of the archive; `written`: when its last line was written (ms). Raises
        INVALID_REQUEST.
        """
        async with self._db.connection() as connection:
            if await self._db.value(connection, Q.not_empty):
                raise ProtocolError(
                    Error.INVALID_REQUEST,
                    "the database is not empty: it has offsets or a journal. Restore groups with --group "
                    "or --all-groups, or start with an empty database",
                )
            now = await self._db.now_ms(connection)
            if written > now:
                ahead = written - now
                raise ProtocolError(
                    Error.INVALID_REQUEST,
                    f"the last line of the archive is {ahead} ms ahead of the database's clock; correct the clock",
                )
            await connection.execute(Q.raise_record_offset.encode(), {"least": newest})

    async def missing_topics(self, names: Iterable[str]) -> list[str]:
        """The given topics that do not exist."""
        wanted = sorted(set(names))
        there = (await self._topics.current()).by_name
        return [name for name in wanted if name not in there]

    async def create_topics(self, partitions: Mapping[str, int]) -> None:
        """Create topics with the given number of partitions. Raises what `TopicService.create` raises."""
        for name, count in partitions.items():
            await self._topics.create(name, count)

    async def fill(self, group_id: str, records: list[OffsetRecord], principal: str) -> bool:
        """Create a group with these offsets, in one transaction; False: an earlier attempt has done it."""
        provenance = Provenance(ChangeKind.RESTORE, principal=principal)

        async def write(locked: LockedGroup) -> bool:
            parameters = {"group_id": group_id, "group": locked.pk}
            if await self._db.value(locked.connection, Q.has_history, parameters):
                return False
            for some in chunks(records):
                await self._offsets.write(locked, some, provenance)
            after = {"offsets": len(records)}
            act = Act("offsets.restore", "group", group_id, None, after, "from the archive", principal=principal)
            locked.acts.append(act)
            touched = [(record.topic, record.partition) for record in records]
            locked.events.append(
                offsets_event(
                    EventKind.OFFSETS_RESTORED, locked.group, touched, principal=principal, reason="from the archive"
                )
            )
            return True

        outcome: Any = await self._groups.execute(ResetOffsets(group_id, create=True), write)
        if isinstance(outcome, Done):
            raise ProtocolError(outcome.error, outcome.detail)
        return bool(outcome)
