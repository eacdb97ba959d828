"""Requests of this process that wait for a barrier.

A parked member is state on its row; only the callers to answer are kept here. A waiter is answered by the decision that
lets its barrier fall, when that is made in this process, or by looking at the group, when another process made it. No
waiter holds a connection or a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field

import structlog

from groups.core.machine import answer_for
from groups.core.model.commands import ParkKind
from groups.core.model.group import Group, wake_at
from groups.core.model.replies import Answer, JoinReply, Parked, Rerun, SyncReply
from groups.core.model.types import Millis
from groups.engine.sessions import LaneStore
from groups.store.store import GroupStore
from kcoord.constants import RENEWAL
from kcoord.database.clock import DatabaseClock
from kcoord.database.notifications import TOPICS
from kcoord.metrics import PARKED
from kcoord.process import off_loop
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError

log = structlog.get_logger(__name__)

BarrierReply = JoinReply | SyncReply | Rerun
Key = tuple[ParkKind, str]

_PARKED = {kind: PARKED.labels(kind.value) for kind in ParkKind}

MOVED = "another node coordinates the group now"


class ShuttingDown(Exception):
    """The process stops: the request has to be sent again."""


@dataclass(slots=True, eq=False)
class Waiter:
    """One parked request: what it waits for and the future of its answer."""

    group_id: str
    parked: Parked
    decided_since: int = 0
    """Moment before the topics that the parking was decided with were read."""
    visible_since: int | None = None
    """The `ParkedRequests.moment` from which a look at the group can see the parking; None before the commit."""
    missed_a_look: bool = False
    answer: asyncio.Future[BarrierReply] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def key(self) -> Key:
        """Which answers belong to this waiter."""
        return self.parked.kind, self.parked.member_id


Claim = tuple[Waiter, BarrierReply]


def _not_coordinator(parked: Parked) -> BarrierReply:
    match parked.kind:
        case ParkKind.JOIN:
            return JoinReply(Error.NOT_COORDINATOR, member_id=parked.member_id, detail=MOVED)
        case ParkKind.SYNC:
            return SyncReply(Error.NOT_COORDINATOR, detail=MOVED)
        case _:
            return Rerun()


UNKNOWN_SESSIONS_MS = 100
"""Before the next look at a group with a session that has ended and may have been extended."""

MAX_TIMER_JITTER_MS = 20
"""So that processes that wait for the same deadline do not all query at once."""


class Alarms:
    """Ticks groups with waiters at their earliest deadlines. For precision only: Celery's tick guarantees the rest."""

    def __init__(self, runtime: Runtime, ring: Callable[[str], None]) -> None:
        self._clock = runtime.db.clock
        self._renewal_ms = runtime.config.int(RENEWAL)
        self._ring = ring
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def arm(self, group: Group | None, group_id: str, now: Millis, *, may_expire: bool) -> None:
        """Tick the group at its earliest deadline instead of the one before. `may_expire`: somebody runs its timers."""
        timer = self._timers.pop(group_id, None)
        if timer is not None:
            timer.cancel()
        if not isinstance(self._clock, DatabaseClock):
            return  # virtual time: the test advances it and ticks
        due = wake_at(group)  # it looks at every member, so it comes last
        if due is None:
            return
        least_ms = 0 if may_expire else self._renewal_ms  # until somebody runs the timers of the group again
        if due <= now:
            least_ms = max(least_ms, UNKNOWN_SESSIONS_MS)
        delay_ms = max(due - now, least_ms) + random.uniform(1, MAX_TIMER_JITTER_MS)  # noqa: S311 - no secret
        self._timers[group_id] = asyncio.get_running_loop().call_later(delay_ms / 1000, self._ring, group_id)

    def close(self) -> None:
        """Stop them all."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()


class ParkedRequests:
    """All waiters of this process."""

    def __init__(self, runtime: Runtime) -> None:
        self._store = runtime.get(GroupStore)
        self._lane = runtime.get(LaneStore)
        self._repair_seconds = runtime.config.int("notifications.repair.interval.ms") / 1000
        self._waiters: dict[str, dict[Key, list[Waiter]]] = defaultdict(dict)
        self._looking: set[str] = set()
        self._look_again: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        self._moments = itertools.count()
        self._topics_changed_at = -1
        runtime.notifications.on_wake(self._on_wake)
        runtime.notifications.on(TOPICS, self._on_topics)
        self._spawn(self._repair())

    def moment(self) -> int:
        """Now, in the counter by which looks, parkings and notifications are ordered."""
        return next(self._moments)

    def enter(self, group_id: str, parked: Parked, decided_since: int) -> Waiter:
        """Register a waiter, before its parking is committed: an answer may arrive right after the commit.

        `decided_since`: the moment before the topics that it was decided with were read.
        """
        waiter = Waiter(group_id, parked, decided_since)
        self._bring_in(waiter)
        return waiter

    def _bring_in(self, waiter: Waiter) -> None:
        self._waiters[waiter.group_id].setdefault(waiter.key, []).append(waiter)
        _PARKED[waiter.parked.kind].inc()
        if self._closed:
            waiter.answer.set_exception(ShuttingDown())
            waiter.answer.exception()  # the caller may be gone, and then nothing else retrieves it

    def committed(self, waiter: Waiter) -> None:
        """The parking of a waiter is committed: looks at the group can see it from now on."""
        waiter.visible_since = self.moment()
        is_heartbeat = waiter.parked.kind is ParkKind.HEARTBEAT
        if is_heartbeat and waiter.decided_since < self._topics_changed_at:
            self._rerun(waiter)  # it may have been decided with topics from before that notification
        elif waiter.missed_a_look or (
            is_heartbeat and len(self._waiters.get(waiter.group_id, {}).get(waiter.key, ())) > 1
        ):
            self._look_soon(waiter.group_id)  # an older heartbeat of the member now waits in vain

    def leave(self, waiter: Waiter) -> None:
        """Forget a waiter; harmless if it is already gone."""
        by_key = self._waiters.get(waiter.group_id, {})
        waiters = by_key.get(waiter.key, [])
        if waiter not in waiters:
            return
        waiters.remove(waiter)
        _PARKED[waiter.parked.kind].dec()
        if not waiters:
            del by_key[waiter.key]
        if not by_key:
            self._waiters.pop(waiter.group_id, None)

    def claim(self, group_id: str, answer: Answer) -> list[Claim]:
        """Take out the waiters that `answer` is for. Answer them after the commit, or `restore` them."""
        waiters = tuple(self._waiters.get(group_id, {}).get((answer.kind, answer.member_id), ()))
        for waiter in waiters:
            self.leave(waiter)
        return [(waiter, answer.reply) for waiter in waiters]

    def restore(self, claims: Sequence[Claim]) -> None:
        """The transaction failed: waiters that were to be answered keep waiting."""
        for waiter, _ in claims:
            if not waiter.answer.done():
                self._bring_in(waiter)

    @staticmethod
    def answer(claims: Sequence[Claim]) -> None:
        """The transaction is committed: answer."""
        for waiter, reply in claims:
            if not waiter.answer.done():
                waiter.answer.set_result(reply)

    def refuse(self, is_affected: Callable[[str], bool]) -> None:
        """Another node coordinates these groups now: answer their waiters NOT_COORDINATOR (offsets.md 9.3).

        A heartbeat is rerun, which answers it in the same way.
        """
        refused: list[Claim] = []
        for group_id in filter(is_affected, tuple(self._waiters)):
            for waiters in tuple(self._waiters.get(group_id, {}).values()):
                for waiter in tuple(waiters):
                    self.leave(waiter)
                    refused.append((waiter, _not_coordinator(waiter.parked)))
        self.answer(refused)

    async def wait(self, waiter: Waiter, max_wait_ms: Millis) -> BarrierReply | None:
        """The answer; None when the wait runs out first. Raises ShuttingDown."""
        try:
            # Not wait_for: before Python 3.12 it swallows a cancellation that comes together with the answer.
            answered, _ = await asyncio.wait({waiter.answer}, timeout=max_wait_ms / 1000)
            return waiter.answer.result() if answered else None
        finally:
            waiter.answer.cancel()  # unless it is there: nobody waits for it any more, see `restore`
            self.leave(waiter)

    def _on_wake(self, group_id: str | None) -> None:
        for watched in (group_id,) if group_id is not None else tuple(self._waiters):
            if watched in self._waiters:
                self._look_soon(watched)

    def _on_topics(self, _: str | None) -> None:
        """One waiting heartbeat of each group checks whether its topics changed; if so the group wakes the others."""
        self._topics_changed_at = self.moment()
        for by_key in tuple(self._waiters.values()):
            waiting = (
                waiter
                for (kind, _), waiters in by_key.items()
                for waiter in waiters
                if kind is ParkKind.HEARTBEAT and waiter.visible_since is not None and not waiter.answer.done()
            )
            # Those whose parking is not committed yet look once it is (`committed`).
            if (first := next(waiting, None)) is not None:
                self._rerun(first)

    def _rerun(self, waiter: Waiter) -> None:
        self.leave(waiter)
        self.answer([(waiter, Rerun())])

    def has_waiters(self, group_id: str) -> bool:
        """Whether requests of this group wait in this process."""
        return group_id in self._waiters

    def look_soon(self, group_id: str) -> None:
        """Look at a group with waiters in this process."""
        if group_id in self._waiters:
            self._look_soon(group_id)

    def _look_soon(self, group_id: str) -> None:
        """One look at a time per group; notifications that arrive meanwhile cause one more."""
        if group_id in self._looking:
            self._look_again.add(group_id)
            return
        self._looking.add(group_id)
        self._spawn(self._look_at(group_id))

    async def _look_at(self, group_id: str) -> None:
        try:
            while group_id in self._waiters:
                self._look_again.discard(group_id)
                started = self.moment()
                group = (await self._store.read(group_id)).group
                await off_loop.in_slices(self._answer_from(group_id, group, started))
                if group_id not in self._look_again:
                    return
        except ProtocolError as error:
            log.info("look_skipped", group_id=group_id, reason=error.detail)
        finally:
            self._looking.discard(group_id)

    def _answer_from(self, group_id: str, group: Group | None, started: int) -> Iterator[None]:
        """Answer who can be answered by what was read. Others have their turn between two waiters."""
        for waiters in tuple(self._waiters.get(group_id, {}).values()):
            for waiter in tuple(waiters):
                yield
                if waiter not in self._waiters.get(group_id, {}).get(waiter.key, ()):
                    continue  # answered meanwhile, or gone
                if waiter.visible_since is None or waiter.visible_since > started:
                    waiter.missed_a_look = True  # what was read may be older than the parking
                    if waiter.visible_since is not None and group_id in self._looking:
                        self._look_again.add(group_id)
                    continue
                reply = answer_for(group, waiter.parked)
                if reply is not None:
                    self.leave(waiter)
                    self.answer([(waiter, reply)])

    async def _repair(self) -> None:
        """A hint may have been lost: groups whose copies are not current are looked at. One statement asks of all."""
        while True:
            await asyncio.sleep(self._repair_seconds)
            try:
                await self._look_at_changed()
            except ProtocolError as error:
                log.info("looks_skipped", reason=error.detail)
            except Exception:
                log.exception("looks_failed")

    async def _look_at_changed(self) -> None:
        copies = {group_id: self._store.copy_of(group_id) for group_id in self._waiters}
        known = [copy for copy in copies.values() if copy is not None]
        started = self.moment()
        changed = await self._lane.changed(known) if known else set()

        def looks() -> Iterator[None]:
            for group_id, copy in copies.items():
                yield
                if copy is None or copy.stored.pk in changed:
                    self.look_soon(group_id)
                else:
                    yield from self._answer_from(group_id, copy.stored.group, started)

        await off_loop.in_slices(looks())

    def _spawn(self, coroutine: Awaitable[None]) -> None:
        task = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("parked_requests_task_failed", exc_info=task.exception())

    @property
    def busy(self) -> bool:
        """A look at a group is in progress."""
        return bool(self._looking)

    @property
    def closed(self) -> bool:
        """No more waiting here: the process stops."""
        return self._closed

    async def close(self) -> None:
        """Answer all waiters with ShuttingDown, and forget them: not all of them have a caller that does."""
        self._closed = True
        for by_key in tuple(self._waiters.values()):
            for waiters in tuple(by_key.values()):
                for waiter in tuple(waiters):
                    self.leave(waiter)
                    if not waiter.answer.done():
                        waiter.answer.set_exception(ShuttingDown())
                        waiter.answer.exception()  # the caller may be gone, and then nothing else retrieves it
        for task in tuple(self._tasks):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*self._tasks, return_exceptions=True)
