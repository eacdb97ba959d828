"""Heartbeats that only extend a session, answered from the folded group in memory; the sessions are written behind.

What the answer rests on may be out of date by a second at most, and by as long as a notification takes as a rule. That
is as safe as an answer from the store: commits are fenced under the lock of the group, and sessions are guarded by what
this node says it has stored.

While sessions may be renewed in memory, the row of this node has an instant until which all of them are stored; nobody
expires any session that ends later. Before the first one is renewed the instant is set; after a while without any it is
taken back, so that an idle node costs nothing. Heartbeats are answered by the time that is kept here.

Source: architecture.md 4, "Fast lanes"; docs/models, rules 15 to 18.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import itertools
import math
import time
import uuid
import weakref
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import NamedTuple

import structlog

from groups.configs import HEARTBEAT_INTERVAL, SESSION_TIMEOUT, GroupConfigs, group_config
from groups.core.classic import members as classic
from groups.core.consumer import renewal as consumer
from groups.core.model.commands import ConsumerHeartbeat, Heartbeat
from groups.core.model.consumer_group import ConsumerGroup, EpochGroup
from groups.core.model.group import Group, wake_at, wake_at_extended
from groups.core.model.replies import ConsumerHeartbeatReply, HeartbeatReply
from groups.core.model.types import ClassicGroup, Millis
from groups.engine.sessions import LaneStore, NodeEnded
from groups.nodes.hosting import Hosting
from groups.store.store import Copy, GroupStore
from groups.topics import TopicService
from kcoord.constants import FLUSH_INTERVAL, LANE
from kcoord.database.notifications import ECHO
from kcoord.database.pool import Database
from kcoord.metrics import FLUSH_SECONDS, HEARTBEATS_FROM_MEMORY, SESSIONS_FLUSHED
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.requests import current

log = structlog.get_logger(__name__)


class Turns:
    """Parameters: `work` on keys, at most `most` of them in a turn; `failed`, the line that is logged if it fails."""

    def __init__(self, work: Callable[[Sequence[str]], Awaitable[None]], most: int, failed: str) -> None:
        self._work = work
        self._most = most
        self._failed = failed
        self._waiting: dict[str, asyncio.Future[bool]] = {}
        self._running: asyncio.Task[None] | None = None

    async def take_part(self, key: str, seconds: float) -> bool:
        """Whether a turn with `key` that began after this call has ended, well or not, within `seconds`.

        They count from the first call with the key; those who gave up do not keep others from taking part.
        """
        waiting = self._waiting.get(key)
        if waiting is None:
            loop = asyncio.get_running_loop()
            waiting = self._waiting[key] = loop.create_future()
            waiting.add_done_callback(partial(_cancel, loop.call_later(seconds, _settle, waiting, False)))
            if self._running is None:
                self._running = asyncio.create_task(self._run(), context=contextvars.Context())
        return await asyncio.shield(waiting)

    async def _run(self) -> None:
        while self._waiting:
            turn = {key: self._waiting.pop(key) for key in list(islice(self._waiting, self._most))}
            try:
                await self._work(list(turn))
            except ProtocolError as error:
                log.info(self._failed, reason=error.detail)
            except Exception:
                log.exception(self._failed)
            finally:
                for future in turn.values():
                    _settle(future, True)
        self._running = None

    async def close(self) -> None:
        """End the work that is under way."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)


def _settle(future: asyncio.Future[bool], ended: bool) -> None:
    if not future.done():
        future.set_result(ended)


def _cancel(handle: asyncio.TimerHandle, _: asyncio.Future[bool]) -> None:
    handle.cancel()


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
        measured = self._measured()
        if measured is None or self._latest - measured > WENT_BACK_MS:
            return None
        self._latest = max(self._latest, measured)
        return self._latest

    @property
    def went_back(self) -> bool:
        """It is known to have gone back."""
        measured = self._measured()
        return measured is not None and self._latest - measured > WENT_BACK_MS

    def _measured(self) -> Millis | None:
        override = self._db.clock.override_ms
        if override is not None:
            return override
        measured = self._db.request_age.database_time.at(time.monotonic())
        return None if measured is None else int(measured)

    def start(self, now: Millis) -> None:
        """It is at least `now` (ms), read from the database's clock. After that clock went back, it is that again."""
        if self._latest - now > WENT_BACK_MS:
            self._latest = now
        self._latest = max(self._latest, now)


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
        self._announced: int | None = None
        """The incarnation whose row may say that others wait for what is renewed here."""
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
        if self._loop is None:
            self._loop = asyncio.create_task(self._run(), context=contextvars.Context())
        try:
            async with self._switching:
                self._drop()
                self._announced = incarnation
                self.clock.start(await self._store.open(incarnation))
                self._incarnation = incarnation
        except NodeEnded:
            log.info("sessions_not_renewed_in_memory", reason="the node was declared dead")
        except ProtocolError as error:
            log.info("sessions_not_renewed_in_memory", reason=error.detail)
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
            await self._turn()

    async def _turn(self) -> None:
        try:
            if self._incarnation is None:
                await self._withdraw()
            elif time.monotonic() - self._used_at > IDLE_SECONDS:
                await self._rest()
            else:
                await self.flush()
        except ProtocolError as error:
            self._complain(error.detail)
        except Exception:
            log.exception("sessions_not_stored")

    async def _rest(self) -> None:
        """Nothing was renewed for a while."""
        async with self._switching:
            incarnation, self._incarnation = self._incarnation, None
            assert incarnation is not None
            if await self._flush(incarnation, every=True):
                await self._store.close(incarnation)
                self._announced = None
            elif self._entries or self._later:
                self._incarnation = incarnation  # what could not be stored is stored later

    async def _withdraw(self) -> None:
        """Nobody waits any longer for a node that renews nothing: without heartbeats it would never say so itself."""
        async with self._switching:
            if self._incarnation is None and self._announced is not None:
                await self._store.close(self._announced)
                self._announced = None

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
            if self.clock.went_back:
                self._drop()
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


STALE_SECONDS = 1.0
"""How old a copy of a group may be that answers come from, if a notification was lost."""

SETTLE_SECONDS = 0.5
"""How long the look at a group in which somebody seems overdue waits for renewed sessions to be stored."""

LOAD_SECONDS = 3.0
"""How long a heartbeat waits for its group to be loaded or compared before it is decided in the store."""

LOADED_AT_ONCE = 250
"""Groups that are not in memory and are loaded together; those of the next turn wait for them."""

COMPARED_AT_ONCE = 10_000
"""Copies that are compared with their rows in one statement."""

LEAST_ENTRIES = 1_000
"""Groups of which sessions are known before those that the store has forgotten are looked for."""


class HeartbeatLane:
    """Answers from memory; None: it has to be decided in the store."""

    def __init__(self, runtime: Runtime) -> None:
        self._enabled = runtime.config.bool(LANE)
        self._age = runtime.db.request_age
        self._keeps_copies = runtime.config.int("cache.max.groups") > 0
        self._config = group_config(runtime.config)
        self._configs = runtime.get(GroupConfigs)
        self._topics = runtime.get(TopicService)
        self._groups = runtime.get(GroupStore)
        self._hosting = runtime.get(Hosting)
        self._flusher = runtime.get(Flusher)
        self._store = runtime.get(LaneStore)
        self._entries: dict[str, Entry] = {}
        self._room = LEAST_ENTRIES
        self._comparing = Turns(self._compare, COMPARED_AT_ONCE, "copies_not_compared")
        self._loading = Turns(self._load, LOADED_AT_ONCE, "groups_not_loaded")
        runtime.on_stop(self._close)

    def heartbeat(self, command: Heartbeat) -> HeartbeatReply | None:
        """Heartbeat of a classic group."""
        now = self._now(command.group_id)
        entry = self._entry(command.group_id, now) if now is not None else None
        if now is None or entry is None or not isinstance(entry.group, ClassicGroup):
            return None
        deadline = classic.renewal(entry.group, command, now)
        if deadline is None:
            return None
        self._renew(entry, command.member_id, now, deadline)
        return HeartbeatReply(Error.NONE, session_deadline=deadline)

    def consumer_heartbeat(self, command: ConsumerHeartbeat) -> ConsumerHeartbeatReply | None:
        """ConsumerGroupHeartbeat."""
        now = self._now(command.group_id)
        entry = self._entry(command.group_id, now) if now is not None else None
        if now is None or entry is None or not isinstance(entry.group, ConsumerGroup):
            return None
        settings, topics = self._configs.known(command.group_id), self._topics.known()
        if settings is None or topics is None:
            return None
        config = self._config
        session, interval = settings[SESSION_TIMEOUT], settings[HEARTBEAT_INTERVAL]
        if (session, interval) != (config.consumer_session_timeout_ms, config.consumer_heartbeat_interval_ms):
            assert isinstance(session, int)
            assert isinstance(interval, int)
            config = replace(config, consumer_session_timeout_ms=session, consumer_heartbeat_interval_ms=interval)
        reply = consumer.renewal(entry.group, command, config, topics.version, now)
        if reply is not None:
            assert reply.session_deadline is not None
            self._renew(entry, command.member_id, now, reply.session_deadline)
        return reply

    def _renew(self, entry: Entry, member_id: str, now: Millis, deadline: Millis) -> None:
        self._flusher.renew(entry, member_id, Renewal(now, deadline - now))
        HEARTBEATS_FROM_MEMORY.inc()

    def _now(self, group_id: str) -> Millis | None:
        """The time (ms) if the current request may be answered from memory."""
        if not self._enabled:
            return None
        now = self._flusher.now()
        if now is None or (self._hosting.routes and self._hosting.answer(group_id) is not Error.NONE):
            return None
        receipt = current.receipt()
        if receipt is not None and not self._age.is_young(receipt):
            return None  # its age is checked in the store
        return now

    def _entry(self, group_id: str, now: Millis) -> Entry | None:
        """What is known of a group, if it is current and nothing in it is overdue."""
        copy = self._groups.copy_of(group_id)
        if copy is None or not self._is_fresh(copy):
            return None
        entry = self._entries.get(group_id)
        if entry is None or entry.pk != copy.stored.pk:
            if len(self._entries) >= self._room:
                self._make_room()
            entry = self._entries[group_id] = Entry(group_id, copy)
            self._flusher.watch(entry)
        elif entry.copy is not copy:
            entry.adopt(copy)
        return entry if entry.nothing_is_overdue(now) else None

    def _make_room(self) -> None:
        """Forget the groups that the store has forgotten."""
        self._entries = {
            group_id: entry
            for group_id, entry in self._entries.items()
            if entry.has_unstored or self._groups.has_copy_of(group_id)
        }
        self._room = max(LEAST_ENTRIES, 2 * len(self._entries))

    def _is_fresh(self, copy: Copy) -> bool:
        """No change of the group that is older than STALE_SECONDS is missing in the copy."""
        if copy.is_doubtful:
            return False
        return time.monotonic() - max(copy.current_at, self._flusher.notified_until) <= STALE_SECONDS

    async def freshen(self, group_id: str) -> bool:
        """A heartbeat was not answered from memory: find out whether it can be. Whether to try it again.

        Also the way in: from the first heartbeat on, this process is made ready to answer from memory.
        """
        if not self._enabled:
            return False
        self._flusher.begin()
        if self._now(group_id) is None:
            return False
        copy = self._groups.copy_of(group_id)
        if copy is None:
            return self._keeps_copies and await self._loading.take_part(group_id, LOAD_SECONDS)
        return not self._is_fresh(copy) and await self._comparing.take_part(group_id, LOAD_SECONDS)

    async def settle(self, group_id: str, *, is_tick: bool) -> None:
        """Before the store looks at a group: store what was renewed, if something in it seems overdue.

        `is_tick`: nobody waits for an answer, and what becomes overdue meanwhile is left to the next tick.
        What is not stored by then does not expire, so an unresponsive Postgres is left to the transaction that follows.
        """
        now = self._flusher.now()
        if now is None:
            return
        copy, entry = self._groups.copy_of(group_id), self._entries.get(group_id)
        due = copy.stored.wake_at if copy is not None else None
        if copy is None and entry is not None and entry.has_unstored:
            due = now
        if due is not None and due <= now:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SETTLE_SECONDS):
                    await (self._flusher.settle(entry, due) if is_tick else self._flusher.flush())

    async def _load(self, group_ids: Sequence[str]) -> None:
        """Load groups, and what heartbeats of consumer groups depend on besides."""
        await self._topics.view()
        await self._configs.resolved(group_ids[0])
        await self._groups.load(group_ids)

    async def _compare(self, group_ids: Sequence[str]) -> None:
        """Compare copies with their rows in one statement."""
        copies = {group_id: copy for group_id in group_ids if (copy := self._groups.copy_of(group_id)) is not None}
        began = time.monotonic()
        changed = await self._store.changed(copies.values()) if copies else set()
        for group_id, copy in copies.items():
            if copy.stored.pk not in changed:
                copy.current_at = max(copy.current_at, began)
            elif self._groups.copy_of(group_id) is copy:
                self._groups.forget(group_id)

    async def _close(self) -> None:
        await self._comparing.close()
        await self._loading.close()


class Lease:
    """Written by the node of this process (`groups.engine.agent`), read by what acts under it.

    `incarnation`: the row of the node, None: this process is not a node at the moment. `until`: until when the lease
    surely lasts, in seconds of the monotonic clock, taken before the renewal was sent.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.incarnation: int | None = None
        self.until = 0.0

    @property
    def runs(self) -> bool:
        """The lease surely has not run out."""
        return self.incarnation is not None and time.monotonic() < self.until
