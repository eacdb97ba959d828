"""Removes the offsets of a deleted topic: committed and pending ones, of all groups, whatever the subscriptions.

The deletion records the work in its own transaction (`DeletedTopic`). The sweep does it group by group under each
group's lock: at once, before the deletion is answered, and in Celery if that was interrupted.

A topic of the same name may be created before the sweep has finished. Offsets of the old topic are those whose record
offset is not larger than the last one issued before the deletion, so commits on the new topic stay. A commit that had
looked up the old topic just before its deletion is found by a second sweep, as long as no new topic exists; next to a
new topic it cannot be distinguished from commits on that topic.
Source: offsets.md 6.2.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import structlog

from groups.core.model.commands import Tick
from groups.core.model.events import EventKind
from groups.store.locked import LockedGroup
from groups.topics import TopicDeletion
from kcoord.database.paging import INT64_MAX
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError
from offsets.commits.retention.sweep import BatchSize
from offsets.commits.store import OffsetStore
from offsets.core.types import ChangeKind, Millis, Provenance
from offsets.journal.events import offsets_event

if TYPE_CHECKING:
    from groups.engine.service import GroupService

log = structlog.get_logger(__name__)

Q = queries("offsets")

SETTLE_MS: Millis = 120_000
"""After this long every commit that found the old topic has ended: a process whose notification was lost finds it in
its copy of the catalogue for 60 s at most (notifications.repair.interval.ms), and a commit waits less than 60 s for
locks."""

AT_ONCE_SECONDS = 5.0
"""How long the deletion of a topic waits for its sweep; the rest is left to Celery."""

PAGE = 500


class SweepFailed(Exception):
    """Some groups still have offsets of deleted topics; they are tried again by the next sweep."""


@dataclass(frozen=True, slots=True)
class _Deleted:
    """A row of `DeletedTopic`."""

    id: int
    topic: str
    deleted_at: Millis
    principal: str
    record_offset: int


@dataclass(frozen=True, slots=True)
class _Removed:
    """The result of one batch. `since`: when it acquired the lock."""

    offsets: int
    since: float


class DeletedTopicSweep:
    """Removes what groups committed on deleted topics. Running it twice or late is harmless."""

    def __init__(self, runtime: Runtime) -> None:
        from groups.engine.service import GroupService  # every process imports this module, and few delete topics

        self._db = runtime.db
        self._groups: GroupService = runtime.get(GroupService)
        self._store = runtime.get(OffsetStore)
        self._batch = runtime.config.int("offsets.retention.batch")

    async def sweep(self, topic: str | None = None) -> int:
        """Remove the offsets of deleted topics (None: of all of them); returns the number removed.

        A failing group does not hold up the others. Raises SweepFailed naming the failed groups, after all others;
        ProtocolError COORDINATOR_NOT_AVAILABLE when the database is unavailable.
        """
        async with self._db.connection() as connection:
            now = await self._db.now_ms(connection)
            parameters = {"topic": topic, "settled_before": now - SETTLE_MS, "limit": PAGE}
            found = await self._db.records(connection, _Deleted, Q.deleted_topics, parameters)
        removed, failed = 0, list[str]()
        for deleted in found:
            removed += await self._sweep(deleted, now, failed)
        if failed:
            named = ", ".join(failed[:10])
            raise SweepFailed(f"{len(failed)} groups still have offsets of deleted topics: {named}")
        return removed

    async def _sweep(self, deleted: _Deleted, now: Millis, failed: list[str]) -> int:
        removed, after, failed_before = 0, 0, len(failed)
        while True:
            page = await self._groups_of(deleted, after)
            for _, group_id in page:
                try:
                    removed += await self._visit(group_id, deleted)
                except ProtocolError as error:
                    log.warning("deleted_topic_put_off", group_id=group_id, topic=deleted.topic, reason=error.detail)
                    failed.append(group_id)
                    await self._check_database()
                except Exception:
                    log.exception("deleted_topic_failed", group_id=group_id, topic=deleted.topic)
                    failed.append(group_id)
            if len(page) < PAGE:
                break
            after = page[-1][0]
        if len(failed) == failed_before:
            settled = deleted.deleted_at <= now - SETTLE_MS
            async with self._db.connection() as connection:
                statement = Q.forget_deleted_topic if settled else Q.deleted_topic_swept
                await connection.execute(statement.encode(), {"id": deleted.id})
        log.info("deleted_topic_swept", topic=deleted.topic, offsets=removed)
        return removed

    async def _check_database(self) -> None:
        """This group may be locked for long. If the database is unavailable for all, the sweep ends here."""
        async with self._db.connection() as connection:
            await self._db.now_ms(connection)

    async def _groups_of(self, deleted: _Deleted, after: int) -> list[tuple[int, str]]:
        async with self._db.connection() as connection:
            # The same query as under the lock, and not the catalogue's copy, which may still have the old topic.
            exists = await self._db.value(connection, Q.topic_exists, {"topic": deleted.topic})
            up_to = deleted.record_offset if exists else INT64_MAX
            parameters = {"topic": deleted.topic, "up_to": up_to, "after": after, "limit": PAGE}
            rows = await self._db.rows(connection, Q.groups_with_topic, parameters)
        return [(pk, group_id) for pk, group_id in rows]

    async def _visit(self, group_id: str, deleted: _Deleted) -> int:
        """Batch by batch, so that no lock is held for long. A deleted group has no offsets."""
        removed, batch = 0, BatchSize(self._batch)
        while True:
            size = batch.size
            outcome = await self._groups.execute(Tick(group_id), partial(self._remove, deleted, size))
            if not isinstance(outcome, _Removed):
                return removed
            removed += outcome.offsets
            batch.learn(time.monotonic() - outcome.since)
            if outcome.offsets < size:
                return removed

    async def _remove(self, deleted: _Deleted, limit: int, locked: LockedGroup) -> _Removed:
        since = time.monotonic()
        # Queried under the lock: if anything is committed on a new topic by now, the topic is visible.
        exists = await self._db.value(locked.connection, Q.topic_exists, {"topic": deleted.topic})
        up_to = deleted.record_offset if exists else INT64_MAX
        parameters = {"group": locked.pk, "topic": deleted.topic, "up_to": up_to, "limit": limit}
        found = await self._db.column(locked.connection, Q.partitions_with_offsets, parameters)
        partitions = [(deleted.topic, partition) for partition in found]
        provenance = Provenance(ChangeKind.TOPIC_DELETE, principal=deleted.principal)
        removed = await self._store.remove(locked, partitions, provenance, up_to=up_to)
        if removed:
            reason = "the topic was deleted"
            event = offsets_event(
                EventKind.OFFSETS_DELETED, locked.group, removed, principal=deleted.principal, reason=reason
            )
            locked.events.append(event)
        return _Removed(len(partitions), since)


async def note(deletion: TopicDeletion) -> None:
    """In the transaction of the deletion: record that its offsets have to be removed."""
    await deletion.connection.execute(
        Q.note_deleted_topic.encode(),
        {"topic": deletion.topic, "now": deletion.now, "principal": deletion.principal},
    )


async def follow_up(runtime: Runtime, topic: str) -> None:
    """After the deletion: sweep at once, for as long as the caller may be held. Celery does the rest."""
    try:
        async with asyncio.timeout(AT_ONCE_SECONDS):
            await runtime.get(DeletedTopicSweep).sweep(topic)
    except (SweepFailed, ProtocolError, TimeoutError) as error:
        log.warning("deleted_topic_left_to_celery", topic=topic, reason=str(error) or type(error).__name__)
