"""Timers of groups without requests, and maintenance. Celery beat calls these through the bridge.

Source: architecture.md 6.
"""

from __future__ import annotations

from collections.abc import Mapping

import structlog

from groups.core.model.group import partition_of
from groups.engine.batches import OwnerEpoch
from groups.engine.heartbeats import Flusher
from groups.engine.service import GroupService
from groups.nodes.overview import NodeOverviews
from groups.store.bulk import WakeUps
from groups.store.store import EventStore, GroupStore
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError

log = structlog.get_logger(__name__)

MAX_ROUNDS = 10
"""The most batches that one tick takes, so that it ends; the rest is left to the next tick."""

MOVED_AT_ONCE = 500
"""Groups whose wake-ups are moved in one transaction."""

DAY_MS = 86_400_000


class TickFailed(Exception):
    """Some groups could not be expired; they were postponed, the others were not held up."""


class TimerService:
    """Ticks and maintenance. Every method is idempotent: late or double runs are harmless."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._groups = runtime.get(GroupService)
        self._store = runtime.get(GroupStore)
        self._flusher = runtime.get(Flusher)
        self._wake_ups = runtime.get(WakeUps)
        self._events = runtime.get(EventStore)
        self._nodes = runtime.get(NodeOverviews)
        self._partitions = runtime.config.int("offsets.topic.num.partitions")
        self._batch = runtime.config.int("timer.tick.batch")
        self._retry_delay_ms = runtime.config.int("timer.tick.interval.ms")
        self._poison_delay_ms = runtime.config.int("timer.poison.delay.ms")
        self._retention_ms = runtime.config.int("events.retention.days") * DAY_MS

    async def tick_due_groups(self) -> int:
        """Expire every group whose `wake_at` has come, each in its own transaction; returns how many were looked at.

        Groups held by another transaction are skipped. Raises TickFailed, naming the groups whose tick failed, after
        all others were handled; ProtocolError when the database is unavailable.
        """
        failed: list[str] = []
        handled = 0
        await self._look_ahead()
        await self._db.blockers.end()
        for _ in range(MAX_ROUNDS):
            due = await self._store.due_groups(self._batch)
            for group_id in due:
                if not await self._tick(group_id):
                    failed.append(group_id)
            handled += len(due)
            if len(due) < self._batch:
                break
        await self._store.record_tick()
        if failed:
            raise TickFailed(f"{len(failed)} of {handled} groups could not be expired: {', '.join(failed[:10])}")
        return handled

    async def tick_owned_groups(self, incarnation: int, epochs: Mapping[int, int]) -> int:
        """Expire due groups of partitions that a node owns (partition -> epoch); returns how many were looked at.

        Each transaction does nothing if the partition has another owner, or epoch, by then. Failures are logged;
        Celery's tick reports them. Raises ProtocolError when the database is unavailable.
        """
        await self._look_ahead()
        due = await self._store.due_groups(self._batch, incarnation)
        for group_id in due:
            epoch = epochs.get(partition_of(group_id, self._partitions))
            if epoch is not None:
                await self._tick(group_id, (incarnation, epoch))
        return len(due)

    async def _look_ahead(self) -> None:
        """Store what was renewed in memory, and take the groups out in which nothing is overdue."""
        await self._flusher.flush()
        for _ in range(MAX_ROUNDS):
            if await self._wake_ups.move(MOVED_AT_ONCE) < MOVED_AT_ONCE:
                break

    async def _tick(self, group_id: str, owner: OwnerEpoch | None = None) -> bool:
        try:
            await self._groups.tick(group_id, skip_locked=True, owner=owner)
        except ProtocolError as error:
            # Perhaps another transaction holds rows of this group for long. It goes to the end of the queue, so that
            # the others get their turn; if the database is unavailable for all of them, postponing it fails and ends
            # the tick.
            log.warning("tick_put_off", group_id=group_id, reason=error.detail, postponed_ms=self._retry_delay_ms)
            await self._store.postpone(group_id, self._retry_delay_ms)
            return False
        except Exception:
            log.exception("tick_failed", group_id=group_id, postponed_ms=self._poison_delay_ms)
            await self._store.postpone(group_id, self._poison_delay_ms)
            return False
        return True

    async def trim_events(self) -> int:
        """Delete events past their retention, and beyond the limit per group; returns the number deleted.

        What happened to nodes and coordinator partitions is kept as long.
        """
        async with self._db.connection() as connection:
            before = await self._db.now_ms(connection) - self._retention_ms
        deleted = await self._events.trim_old(before) + await self._events.trim_crowded()
        return deleted + await self._nodes.trim(before)
