"""OffsetDelete: removing committed offsets from a group that does not read their topics.

Source: offsets.md 6; http-api.md 4.
"""

from __future__ import annotations

from typing import Any

from groups.core.model.commands import DeleteOffsets
from groups.core.model.events import EventKind
from groups.core.model.replies import DeleteOffsetsReply
from groups.engine.service import GroupService
from groups.store.locked import LockedGroup
from groups.topics import TopicService, partition_counts
from kcoord.access.audit.recording import Act
from kcoord.metrics import OFFSETS_DELETED
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from offsets.commits.store import OffsetStore
from offsets.core.deletion import OffsetDelete, OffsetDeleteReply, refuse, spare
from offsets.core.types import ChangeKind, Provenance
from offsets.journal.events import offsets_event

MOST_RECORDED = 100
"""Of how many partitions the audit has the offsets that were deleted; the journal has all."""


class OffsetDeletion:
    """Deletes offsets on request, for one process."""

    def __init__(self, runtime: Runtime) -> None:
        self._groups = runtime.get(GroupService)
        self._topics = runtime.get(TopicService)
        self._store = runtime.get(OffsetStore)

    async def delete(self, delete: OffsetDelete) -> OffsetDeleteReply:
        """Delete the offsets of some partitions, committed and pending, with a line of the journal and an event.

        A group error takes precedence over partition errors, so the group is asked even when the filter leaves nothing
        (offsets.md 2.2). May raise ProtocolError COORDINATOR_NOT_AVAILABLE; errors of the protocol are replies.
        """
        counts = partition_counts(await self._topics.current(), {topic for topic, _ in delete.partitions})
        refused, passed = refuse(delete, counts)

        async def remove(locked: LockedGroup) -> OffsetDeleteReply:
            assert isinstance(locked.reply, DeleteOffsetsReply)
            results, going = spare(passed, locked.reply.subscribed)
            provenance = Provenance(ChangeKind.DELETE, principal=delete.principal)
            before = await self._store.committed_within(locked, going[:MOST_RECORDED])
            gone = await self._store.remove(locked, going, provenance)
            was = {"offsets": before, "partitions": len(gone)}
            after = {"asked": len(delete.partitions), "refused": len(delete.partitions) - len(going)}
            act = Act("offsets.delete", "group", delete.group_id, was, after, principal=delete.principal)
            locked.acts.append(act)
            if gone:
                event = offsets_event(EventKind.OFFSETS_DELETED, locked.group, gone, principal=delete.principal)
                locked.events.append(event)
            return OffsetDeleteReply(Error.NONE, refused + results, len(gone))

        command = DeleteOffsets(delete.group_id, frozenset(topic for topic, _ in passed))
        # The empty id is refused, and by any node (offsets.md 6, rows 3 and 4).
        outcome: Any = await self._groups.execute(command, remove, anywhere=not delete.group_id)
        if isinstance(outcome, OffsetDeleteReply):
            OFFSETS_DELETED.inc(outcome.deleted)
            return outcome
        assert isinstance(outcome, DeleteOffsetsReply)
        return OffsetDeleteReply(outcome.error, detail=outcome.detail)
