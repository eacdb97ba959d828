"""Requests of this process that wait for items.

A waiter holds no connection. What may have made something available (a release, an end, a member that is gone, in any
process) notifies the group; then one look at the group says which partitions have how much, and so many waiters are
woken, first come first served, who acquire as if they had just arrived. One timer for each group looks when a retry is
due or a lock is over. The rows decide: everybody who begins to wait causes a look, and so does a repair now and then.

Source: share.md 7.7; architecture.md 5.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection
from dataclasses import dataclass, field
from uuid import UUID

import structlog

from groups.configs import GroupConfigs
from kcoord.metrics import PARKED
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError
from offsets.share.store import ShareStore, rules_of

log = structlog.get_logger(__name__)

_PARKED = PARKED.labels("acquire")


@dataclass(slots=True, eq=False)
class Waiter:
    """One request. `epoch`: that of its member when it last acquired, with which it had these partitions."""

    member_id: str
    epoch: int
    partitions: Collection[tuple[UUID, int]]
    most: int
    woken: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def wake(self) -> None:
        """It acquires again."""
        if not self.woken.done():
            self.woken.set_result(None)


class ItemWaiters:
    """All waiters of this process, by group."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._store = runtime.get(ShareStore)
        self._configs = runtime.get(GroupConfigs)
        self._repair_seconds = runtime.config.int("notifications.repair.interval.ms") / 1000
        self._waiters: dict[str, dict[Waiter, None]] = {}
        self._looks: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._repair: asyncio.Task[None] | None = None
        self.closed = False
        """No more waiting here: the process stops."""
        runtime.notifications.on_wake(self._on_wake)
        runtime.on_drain(self._close)

    async def wait(self, group_id: str, waiter: Waiter, seconds: float) -> None:
        """Return when the waiter is woken, or after that time. What was available before is noticed, too."""
        if self.closed:
            return
        if self._repair is None:
            self._repair = asyncio.create_task(self._look_now_and_then(), name="kcoord-item-waiters")
        self._waiters.setdefault(group_id, {})[waiter] = None
        _PARKED.inc()
        self.look_soon(group_id)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await waiter.woken
        finally:
            self._leave(group_id, waiter)

    def waiting(self, group_id: str) -> int:
        """How many requests wait for items of a group."""
        return len(self._waiters.get(group_id, ()))

    def _leave(self, group_id: str, waiter: Waiter) -> None:
        waiting = self._waiters.get(group_id, {})
        waiting.pop(waiter, None)
        _PARKED.dec()
        if not waiting:
            self._waiters.pop(group_id, None)
            timer = self._timers.pop(group_id, None)
            if timer is not None:
                timer.cancel()

    def _on_wake(self, group_id: str | None) -> None:
        for watched in (group_id,) if group_id is not None else tuple(self._waiters):
            self.look_soon(watched)

    def look_soon(self, group_id: str) -> None:
        """Look at a group with waiters in this process. One look at a time; hints meanwhile cause one more."""
        if group_id not in self._waiters or self.closed:
            return
        if group_id in self._looks:
            self._again.add(group_id)
            return
        self._looks[group_id] = asyncio.create_task(self._look(group_id))

    async def _look(self, group_id: str) -> None:
        try:
            while group_id in self._waiters:
                self._again.discard(group_id)
                await self._look_once(group_id)
                if group_id not in self._again:
                    return
        except ProtocolError as error:
            log.info("look_for_items_skipped", group_id=group_id, reason=error.detail)  # the repair looks again
        except Exception:
            log.exception("look_for_items_failed", group_id=group_id)
        finally:
            del self._looks[group_id]

    async def _look_once(self, group_id: str) -> None:
        rules = rules_of(await self._configs.resolved(group_id))
        waiters = tuple(self._waiters.get(group_id, ()))
        partitions = {partition for waiter in waiters for partition in waiter.partitions}
        most = sum(waiter.most for waiter in waiters)
        async with self._db.connection() as connection:
            now = await self._db.now_ms(connection)
            epochs = await self._store.epochs(connection, group_id, sorted({waiter.member_id for waiter in waiters}))
            available, due_in_ms = await self._store.available(
                connection, group_id, partitions, most, rules.most_locks, now
            )
        for waiter in waiters:
            first = next((partition for partition in waiter.partitions if available.get(partition, 0) > 0), None)
            if first is not None:
                available[first] -= waiter.most
            if first is not None or epochs.get(waiter.member_id) != waiter.epoch:
                waiter.wake()
        self._arm(group_id, due_in_ms)

    def _arm(self, group_id: str, due_in_ms: int | None) -> None:
        timer = self._timers.pop(group_id, None)
        if timer is not None:
            timer.cancel()
        if due_in_ms is not None and group_id in self._waiters:
            loop = asyncio.get_running_loop()
            self._timers[group_id] = loop.call_later(max(due_in_ms, 1) / 1000, self.look_soon, group_id)

    async def _look_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(self._repair_seconds)
            self._on_wake(None)

    async def _close(self) -> None:
        """Let all requests end with what they have, which is nothing: their clients ask another server."""
        self.closed = True
        for timer in self._timers.values():
            timer.cancel()
        for waiters in tuple(self._waiters.values()):
            for waiter in tuple(waiters):
                waiter.wake()
        tasks = [*self._looks.values(), *([self._repair] if self._repair is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
