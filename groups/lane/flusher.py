"""Writes renewed sessions behind, and says until when they are stored.

While sessions may be renewed in memory, the row of this node has an instant until which all of them are stored; nobody
expires any session that ends later. Before the first one is renewed the instant is set; after a while without any it is
taken back, so that an idle node costs nothing. Heartbeats are answered by the time that is kept here.

Source: docs/models, rules 15 to 17.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import math
import time
import uuid
import weakref
from collections.abc import Sequence

import structlog

from groups.core.model.types import Millis
from groups.lane.entries import Entry, Renewal, Unstored
from groups.lane.store import LaneStore, NodeEnded
from groups.nodes.hosting import Lease
from groups.store.store import GroupStore
from kcoord.database.notifications import ECHO
from kcoord.database.pool import Database
from kcoord.metrics import FLUSH_SECONDS, SESSIONS_FLUSHED
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError
from kcoord.server_settings import FLUSH_INTERVAL

WENT_BACK_MS = 1_000
"""By how much the database's clock must be behind what this process took for it to count as set back."""


class LaneClock:
    """The database's clock as far as this process knows it: never ahead of it as measured, and never going back.

    Deadlines that are counted from it may be too early, never too late.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._latest: Millis = 0

    def now(self) -> Millis | None:
        """The time (ms); None while it is unknown, or known to have gone back."""
        override = self._db.clock.override_ms
        if override is None:
            measured = self._db.request_age.database_time.at(time.monotonic())
            if measured is None:
                return None
            override = int(measured)
        if override < self._latest:
            return self._latest if self._latest - override <= WENT_BACK_MS else None
        self._latest = override
        return override

    def start(self, now: Millis) -> None:
        """It is at least `now` (ms), read from the database's clock. After that clock went back, it is that again."""
        if self._latest - now > WENT_BACK_MS:
            self._latest = now
        self._latest = max(self._latest, now)


log = structlog.get_logger(__name__)

IDLE_SECONDS = 5.0
"""After this long without a renewed session, nobody waits for this node any longer."""

LATER_MS = 200
"""How exactly the instants are known at which sessions are looked at again."""

MOST_ECHOES = 100
"""How many are remembered; those of a lost connection never come back."""


class Flusher:
    """The sessions renewed by this process that are not stored yet."""

    def __init__(self, runtime: Runtime) -> None:
        self._store = runtime.get(LaneStore)
        self._groups = runtime.get(GroupStore)
        self._lease = runtime.get(Lease)
        self._interval_seconds = runtime.config.int(FLUSH_INTERVAL) / 1000
        self.clock = LaneClock(runtime.db)
        self._entries: dict[Entry, None] = {}
        """Those with sessions to store with the next flush, in order."""
        self._later: dict[int, dict[Entry, None]] = {}
        """Those with sessions to store after this many times LATER_MS, at the earliest."""
        self._known: weakref.WeakSet[Entry] = weakref.WeakSet()
        self._incarnation: int | None = None
        self._opening: asyncio.Task[None] | None = None
        self._loop: asyncio.Task[None] | None = None
        self._flushing: asyncio.Task[None] | None = None
        self._used_at = 0.0
        self._name, self._serial = uuid.uuid4().hex, itertools.count()
        self._sent: dict[str, float] = {}
        self.notified_until = -math.inf
        """This process has been notified of all that was committed until then, in seconds of the monotonic clock."""
        runtime.notifications.on(ECHO, self._heard)
        runtime.on_connection_lost(self._lost)
        self._closed = False
        self._switching, self._writing = asyncio.Lock(), asyncio.Lock()
        self._failing = False
        self._stored_until: Millis = 0
        """What the row of this node says, or something earlier."""

    def now(self) -> Millis | None:
        """The time (ms) at which a session may be renewed in memory now; None: not now.

        Only within the lease, under the incarnation that says until when it has stored them.
        """
        if self._incarnation is None or self._incarnation != self._lease.incarnation or not self._lease.runs:
            return None
        return self.clock.now()

    @property
    def is_open(self) -> bool:
        """Sessions may be renewed in memory."""
        return self.now() is not None

    def renew(self, entry: Entry, member_id: str, renewal: Renewal) -> None:
        """A session was renewed, at an instant that `now` returned."""
        self._used_at = time.monotonic()
        before = entry.look_at
        entry.renew(member_id, renewal)
        if entry.has_due:
            self._entries[entry] = None
        if entry.look_at < before:
            self._look_later(entry)

    def _look_later(self, entry: Entry) -> None:
        self._later.setdefault(int(entry.look_at) // LATER_MS, {})[entry] = None

    def watch(self, entry: Entry) -> None:
        """Its sessions are stored from now on."""
        self._known.add(entry)

    def begin(self) -> None:
        """Heartbeats arrive: renew sessions in memory from now on, as soon as that is stored."""
        self._used_at = time.monotonic()
        if self._opening is None and not self._closed and self._lease.runs and not self.is_open:
            self._opening = asyncio.create_task(self._open(), context=contextvars.Context())

    async def _open(self) -> None:
        incarnation = self._lease.incarnation
        assert incarnation is not None
        try:
            async with self._switching:
                self._drop()
                self.clock.start(await self._store.open(incarnation))
        except NodeEnded:
            log.info("sessions_not_renewed_in_memory", reason="the node was declared dead")
        except ProtocolError as error:
            log.info("sessions_not_renewed_in_memory", reason=error.detail)
        else:
            self._incarnation = incarnation
            if self._loop is None:
                self._loop = asyncio.create_task(self._run(), context=contextvars.Context())
        finally:
            self._opening = None

    def _drop(self) -> None:
        """What was renewed under a lease that ended is lost; the end of a node makes all sessions start over."""
        self._incarnation = None
        self._stored_until = 0
        for entry in self._known:
            entry.drop()
        self._entries, self._later = {}, {}

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._interval_seconds)
            try:
                if self._incarnation is not None and time.monotonic() - self._used_at > IDLE_SECONDS:
                    await self._rest()
                else:
                    await self.flush()
            except Exception:
                log.exception("sessions_not_stored")

    async def _rest(self) -> None:
        """Nothing was renewed for a while."""
        async with self._switching:
            incarnation, self._incarnation = self._incarnation, None
            assert incarnation is not None
            if await self._flush(incarnation, every=True):
                await self._store.close(incarnation)

    async def flush(self) -> None:
        """Store what was renewed until now. Failures are logged; what is not stored then stays to be stored."""
        if self._incarnation is None:
            return
        running = self._flushing
        if running is not None:
            await asyncio.shield(running)  # it may have begun before what the caller knows of
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush_open(), context=contextvars.Context())
        await asyncio.shield(self._flushing)

    async def settle(self, entry: Entry | None, due: Millis) -> None:
        """Store what was renewed in a group in which somebody seems overdue since `due` (ms), if it is not stored.

        Nobody expires who may have been renewed since the last flush: others that became overdue since do so later.
        """
        is_stored = self._flushing is None and due < self._stored_until and not (entry is not None and entry.has_due)
        if not is_stored:
            await self.flush()

    async def _flush_open(self) -> None:
        try:
            if self._incarnation is not None:
                await self._flush(self._incarnation)
        finally:
            self._flushing = None

    async def _flush(self, incarnation: int, *, every: bool = False) -> bool:
        """Whether all that was renewed before is stored. One at a time: what the next one says covers what this has."""
        async with self._writing:
            return await self._write(incarnation, every)

    async def _write(self, incarnation: int, every: bool) -> bool:
        now = self.clock.now()
        if now is None:
            self._drop()  # the database's clock went back
            return False
        sessions = self._take(now, every)
        try:
            with FLUSH_SECONDS.time():
                flushed = await self._store.flush(incarnation, sessions, now, self._echo())
        except NodeEnded:
            self._incarnation = None
            return False
        except ProtocolError as error:
            self._complain(error.detail)
            self._put_back(sessions)
            return False
        except Exception:
            log.exception("sessions_not_stored")
            self._put_back(sessions)
            return False
        except BaseException:
            self._put_back(sessions)
            raise
        self._failing = False
        self._stored_until = min([now, *(session.known_until for session in flushed.skipped)])
        SESSIONS_FLUSHED.inc(len(sessions) - len(flushed.skipped))
        self._put_back(flushed.skipped)
        for session in flushed.gone:
            session.entry.forget(session.member_id)
            self._groups.forget(session.entry.group_id)
        return not flushed.skipped

    def _take(self, now: Millis, every: bool) -> list[Unstored]:
        entries, self._entries = self._entries, {}
        for at in [at for at in self._later if every or at * LATER_MS <= now]:
            entries |= self._later.pop(at)
        sessions: list[Unstored] = []
        for entry in entries:
            sessions += entry.take_unstored(now, every=every)
            if entry.look_at < math.inf:
                self._look_later(entry)
        return sessions

    def _echo(self) -> str:
        """What is sent now comes back after all notifications of what is committed already."""
        echo = f"{self._name} {next(self._serial)}"
        self._sent[echo] = time.monotonic()
        if len(self._sent) > MOST_ECHOES:
            del self._sent[next(iter(self._sent))]
        return echo

    def _lost(self) -> None:
        """A connection was lost: Postgres may have lost what it had not flushed, and notifications may be missing."""
        self._sent.clear()
        self.notified_until = -math.inf
        for entry in self._known:
            entry.distrust()
            self._entries[entry] = None

    def _heard(self, echo: str | None) -> None:
        sent_at = self._sent.pop(echo, None) if echo is not None else None
        if sent_at is not None:
            self.notified_until = max(self.notified_until, sent_at)

    def _put_back(self, sessions: Sequence[Unstored]) -> None:
        for session in sessions:
            session.entry.put_back(session)
            self._entries[session.entry] = None

    def _complain(self, reason: str) -> None:
        """One line for an outage."""
        if not self._failing:
            log.warning("sessions_not_stored", reason=reason)
        self._failing = True

    async def close(self) -> bool:
        """Renew nothing in memory from now on, and store what was. Whether all of it is stored."""
        self._closed = True
        for task in (self._opening, self._loop, self._flushing):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        incarnation, self._incarnation = self._incarnation, None
        if incarnation is not None:
            await self._flush(incarnation, every=True)
        return not (self._entries or self._later)
