"""Sessions renewed in memory, group by group; they are written behind, and said to be stored until an instant.

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
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import structlog

from groups.core.model.consumer_group import EpochGroup
from groups.core.model.deadlines import wake_at, wake_at_extended
from groups.core.model.group import Group
from groups.core.model.types import Millis
from groups.lane.store import LaneStore, NodeEnded
from groups.nodes.hosting import Lease
from groups.store.store import GroupStore
from groups.store.stored import Copy
from kcoord.constants import FLUSH_INTERVAL
from kcoord.database.notifications import ECHO
from kcoord.database.pool import Database
from kcoord.metrics import FLUSH_SECONDS, SESSIONS_FLUSHED
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError

RECOUNT_AFTER_MS = 100
"""How long a group in which somebody seems overdue is left to the store before its deadlines are counted again."""

STORED_PARTS = 10
"""A session that is renewed is stored if this part of it has passed since it was stored before."""

LAST_PARTS = 5
"""And if nothing more is heard of its member, after this part: what rows say of members is not older than that."""


class Renewal(NamedTuple):
    """A session that was renewed at `at` (ms), for `timeout_ms`."""

    at: Millis
    timeout_ms: Millis


class Unstored(NamedTuple):
    """A renewed session that is to be stored.

    `known_until`: until then its member does not expire by what is stored of it, or was not renewed since (ms).
    `again`: it was skipped before. The group may have changed its protocol since.
    """

    entry: Entry
    member_id: str
    renewal: Renewal
    known_until: Millis
    again: bool


class Entry:
    """One group. `due`: nothing in it is overdue before this instant (ms).

    A renewed session is stored when a tenth of it has passed since it was stored before, so that one heartbeat of each
    three seconds in 45 is written out of two. Until then its member cannot expire by what is stored, so nobody has to
    wait for the others. `look_at`: no session of those that are stored later has to be stored before this instant (ms).
    """

    __slots__ = (
        "__weakref__",
        "_again",
        "_later",
        "_recount_at",
        "_renewed",
        "_stored_at",
        "_unstored",
        "copy",
        "due",
        "group",
        "group_id",
        "is_consumer",
        "look_at",
        "pk",
    )

    def __init__(self, group_id: str, copy: Copy) -> None:
        stored = copy.stored
        assert stored.pk is not None
        assert stored.group is not None
        self.group_id = group_id
        self.pk = stored.pk
        self._renewed: dict[str, Renewal] = {}
        self._unstored: dict[str, Millis] = {}
        """By member id: a lower bound of when it was first renewed after it was last stored."""
        self._stored_at: dict[str, Millis] = {}
        self._later: set[str] = set()
        self.look_at: float = math.inf
        self._again: frozenset[str] = frozenset()
        self._recount_at: Millis
        self.adopt(copy)

    def adopt(self, copy: Copy) -> None:
        """The store has another copy of the group, in the same row."""
        assert copy.stored.group is not None
        self.copy = copy
        self.group: Group = copy.stored.group
        self.is_consumer = isinstance(self.group, EpochGroup)
        self.due: float = _or_never(wake_at(self.group))
        self._recount_at = 0

    def nothing_is_overdue(self, now: Millis) -> bool:
        """Whether all members are in time, as far as is known here: those heard from elsewhere may seem late."""
        if now < self.due:
            return True
        if now < self._recount_at:
            return False
        for member_id in self._renewed.keys() - self.group.members.keys() - self._unstored.keys() - self._later:
            self.forget(member_id)
        ends = {member_id: renewal.at + renewal.timeout_ms for member_id, renewal in self._renewed.items()}
        self.due = _or_never(wake_at_extended(self.group, ends))
        self._recount_at = now + RECOUNT_AFTER_MS
        return now < self.due

    def renew(self, member_id: str, renewal: Renewal) -> None:
        """A session was renewed."""
        self._renewed[member_id] = renewal
        stored_at = self._stored_at.get(member_id)
        if stored_at is None or renewal.at - stored_at >= renewal.timeout_ms // STORED_PARTS:
            self._unstored.setdefault(member_id, renewal.at)
        elif member_id not in self._later:
            self._later.add(member_id)
            self.look_at = min(self.look_at, stored_at + renewal.timeout_ms // LAST_PARTS)

    def take_unstored(self, now: Millis, *, every: bool = False) -> Iterator[Unstored]:
        """The sessions to store now, or `every` one that was renewed since; they count as stored until `put_back`."""
        if every or now >= self.look_at:
            self._look_at_later(now, every)
        unstored, self._unstored = self._unstored, {}
        again, self._again = self._again, frozenset()
        self._later -= unstored.keys()
        for member_id, first in unstored.items():
            renewal, stored_at = self._renewed[member_id], self._stored_at.get(member_id)
            known_until = first if stored_at is None else stored_at + renewal.timeout_ms - 1
            self._stored_at[member_id] = renewal.at
            yield Unstored(self, member_id, renewal, known_until, member_id in again)

    def _look_at_later(self, now: Millis, every: bool) -> None:
        self.look_at = math.inf
        for member_id in self._later:
            renewal = self._renewed[member_id]
            last_at = self._stored_at.get(member_id, 0) + renewal.timeout_ms // LAST_PARTS
            if every or now >= last_at:
                self._unstored.setdefault(member_id, renewal.at)
            else:
                self.look_at = min(self.look_at, last_at)

    def put_back(self, unstored: Unstored) -> None:
        """It could not be stored, or perhaps it was not."""
        member_id = unstored.member_id
        self._stored_at.pop(member_id, None)
        self._unstored[member_id] = min(unstored.known_until, unstored.renewal.at)
        self._again |= {member_id}
        self._renewed.setdefault(member_id, unstored.renewal)

    def drop(self) -> None:
        """What was renewed and not stored is lost, and nothing is known of what is stored."""
        self._stored_at.clear()
        self._later.clear()
        self.look_at = math.inf
        self._unstored.clear()

    def distrust(self) -> None:
        """What was stored may be lost: store it all again."""
        self._stored_at.clear()
        self._later.clear()
        self.look_at = math.inf
        self._unstored = dict.fromkeys(self._renewed, 0)

    def forget(self, member_id: str) -> None:
        """The member is gone."""
        self._later.discard(member_id)
        for known in (self._renewed, self._unstored, self._stored_at):
            known.pop(member_id, None)

    @property
    def has_due(self) -> bool:
        """Some renewed sessions are stored with the next flush."""
        return bool(self._unstored)

    @property
    def has_unstored(self) -> bool:
        """Some renewed sessions are not stored yet."""
        return bool(self._unstored or self._later)


def _or_never(at: Millis | None) -> float:
    return math.inf if at is None else at


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
