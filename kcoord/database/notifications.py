"""Wake-up notifications: one LISTEN connection per process.

Channels carry a group id and nothing else: `kcoord_wake` when a barrier was reached and requests may be waiting for it,
`kcoord_changed` when something a page shows has changed, `kcoord_config` when a group's settings have. `kcoord_topics`
reports that the catalogue of topics has changed, `kcoord_nodes` that coordinator partitions have other owners,
`kcoord_tokens` that a token, its rules or its owner have changed, `kcoord_quotas` that quotas have; these carry
nothing. `kcoord_sessions` names a session that was deleted or an account that has changed. `kcoord_echo` is how a
process finds out up to when it has been notified. A NOTIFY is a hint, never the truth: a woken listener reads the rows.
After a lost connection anything may have changed, which is reported as `None` in place of a group id.

Source: architecture.md 5.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import psycopg
import structlog
from psycopg.rows import TupleRow

from kcoord.database.liveness import ANSWER_SECONDS, Origins, hang_up
from kcoord.database.sql import queries

log = structlog.get_logger(__name__)

Q = queries("kcoord")

WAKE = "kcoord_wake"
CHANGED = "kcoord_changed"
CONFIG = "kcoord_config"
TOPICS = "kcoord_topics"
NODES = "kcoord_nodes"
TOKENS = "kcoord_tokens"
QUOTAS = "kcoord_quotas"
SESSIONS = "kcoord_sessions"
ECHO = "kcoord_echo"
CHANNELS = (WAKE, CHANGED, CONFIG, TOPICS, NODES, TOKENS, QUOTAS, SESSIONS, ECHO)

NOT_SHOWN = (TOPICS, TOKENS, QUOTAS, SESSIONS, ECHO)
"""Channels of which no page shows anything live."""

MIN_BACKOFF_SECONDS = 0.1
MAX_BACKOFF_SECONDS = 5.0
PING_SECONDS = 2.5
"""How often the connection is tried. An answer that takes ANSWER_SECONDS counts as none: then it is made again."""

Listener = Callable[[str | None], None]


@dataclass(frozen=True, slots=True)
class Changes:
    """Group ids that changed, None among them if any may have; and whether coordinator partitions have other owners."""

    groups: frozenset[str | None] = frozenset()
    nodes: bool = False


class Subscription:
    """What pages show and has changed since the last call. Changes are merged, so a slow reader never falls behind."""

    def __init__(self) -> None:
        self._changed: set[str | None] = set()
        self._nodes = False
        self._event = asyncio.Event()
        self._closed = False

    @property
    def closed(self) -> bool:
        """The listener has stopped; no more changes will arrive."""
        return self._closed

    def put(self, group_id: str | None) -> None:
        """A group has changed; None: any may have."""
        self._changed.add(group_id)
        self._event.set()

    def put_nodes(self) -> None:
        """Coordinator partitions have other owners."""
        self._nodes = True
        self._event.set()

    def wake(self) -> None:
        """Wake the reader: the connection was lost, or is there again."""
        self._event.set()

    def close(self) -> None:
        """Wake the reader for the last time."""
        self._closed = True
        self._event.set()

    async def get(self) -> Changes:
        """What has changed since the last call; waits for that, or until the reader is woken."""
        await self._event.wait()
        self._event.clear()
        changes = Changes(frozenset(self._changed), self._nodes)
        self._changed, self._nodes = set(), False
        return changes


class Notifications:
    """Listens on all channels for the lifetime of the process, and passes hints on."""

    def __init__(self, conninfo: str, origins: Origins | None = None) -> None:
        """`origins`: which servers not to listen to; None: each will do."""
        self._conninfo = conninfo
        self._origins = origins or Origins(conninfo)
        self._listeners: dict[str, list[Listener]] = {channel: [] for channel in CHANNELS}
        self._subscriptions: set[Subscription] = set()
        self._droppers: list[Callable[[], None]] = []
        self._reconnected: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None
        self._listening = asyncio.Event()

    @property
    def listening(self) -> bool:
        """The LISTEN connection is established."""
        return self._listening.is_set()

    def on(self, channel: str, listener: Listener) -> None:
        """Call `listener` with the payload of each hint on a channel; with None after a reconnect."""
        self._listeners[channel].append(listener)

    def on_wake(self, listener: Listener) -> None:
        """Call `listener` with the group id of each wake-up; with None after a reconnect."""
        self.on(WAKE, listener)

    def on_connection_lost(self, dropper: Callable[[], None]) -> None:
        """Call `dropper` when the connection is lost and again after a reconnect, before any listener is called."""
        self._droppers.append(dropper)

    def on_reconnected(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever the connection is there (again): the database may be another one, or an older."""
        self._reconnected.append(listener)

    @asynccontextmanager
    async def subscribe(self) -> AsyncIterator[Subscription]:
        """A subscription to changes that pages show."""
        subscription = Subscription()
        self._subscriptions.add(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)

    async def start(self) -> None:
        """Start listening. Returns at once; an unreachable Postgres is retried with growing pauses."""
        self._task = asyncio.create_task(self._run(), name="kcoord-notifications")

    async def wait_listening(self, timeout_seconds: float = 10.0) -> None:
        """Return once LISTEN is in effect. Raises TimeoutError."""
        async with asyncio.timeout(timeout_seconds):
            await self._listening.wait()

    async def stop(self) -> None:
        """Stop listening and end every subscription."""
        self.end_subscriptions()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def end_subscriptions(self) -> None:
        """Tell every reader that no more changes will arrive."""
        for subscription in tuple(self._subscriptions):
            subscription.close()

    async def _run(self) -> None:
        backoff = MIN_BACKOFF_SECONDS
        while True:
            try:
                await self._listen()
            except psycopg.Error as error:
                reason = str(error).strip() or type(error).__name__
                log.warning("listener_lost", reason=reason, retry_in_ms=round(backoff * 1000))
            if self._listening.is_set():
                backoff = MIN_BACKOFF_SECONDS
            self._listening.clear()
            self._drop_copies()
            for subscription in self._subscriptions:
                subscription.wake()
            await asyncio.sleep(backoff)
            backoff = min(backoff * 2, MAX_BACKOFF_SECONDS)

    async def _listen(self) -> None:
        connection = await psycopg.AsyncConnection.connect(
            self._conninfo, autocommit=True, application_name="kcoord-listener", connect_timeout=5
        )
        async with connection:
            timeline = await self._origins.check(connection)
            for channel in CHANNELS:
                await connection.execute(f"listen {channel}")
            self._listening.set()
            self._everything_may_have_changed()
            while True:
                async for notify in connection.notifies(timeout=PING_SECONDS):
                    self._dispatch(notify.channel, notify.payload)
                await self._ping(connection)
                if self._origins.is_past(timeline):
                    raise psycopg.OperationalError(self._origins.problem)

    async def _ping(self, connection: psycopg.AsyncConnection[TupleRow]) -> None:
        """Use the connection. Raises psycopg.OperationalError if it or the server is dead or silent."""
        silence = asyncio.get_running_loop().call_later(ANSWER_SECONDS, hang_up, connection)
        try:
            await self._end_stuck_listeners(connection)
        finally:
            silence.cancel()

    @staticmethod
    async def _end_stuck_listeners(connection: psycopg.AsyncConnection[TupleRow]) -> None:
        """Listeners of frozen processes must not hold up the cluster; each process checks for those of the others."""
        cursor = await connection.execute(Q.end_stuck_listeners.encode())
        for (pid,) in await cursor.fetchall():
            log.warning("stuck_listener_ended", backend=pid)

    def _dispatch(self, channel: str, payload: str) -> None:
        for listener in self._listeners[channel]:
            self._tell(listener, payload)
        if channel in NOT_SHOWN:
            return
        for subscription in self._subscriptions:
            if channel == NODES:
                subscription.put_nodes()
            else:
                subscription.put(payload)

    @staticmethod
    def _tell(listener: Listener, payload: str | None) -> None:
        """A faulty listener must not stop this process from listening."""
        try:
            listener(payload)
        except Exception:
            log.exception("listener_failed", listener=getattr(listener, "__qualname__", repr(listener)))

    def _drop_copies(self) -> None:
        for dropper in self._droppers:
            dropper()

    def _everything_may_have_changed(self) -> None:
        self._drop_copies()
        for listeners in self._listeners.values():
            for listener in listeners:
                self._tell(listener, None)
        for reconnected in self._reconnected:
            reconnected()
        for subscription in self._subscriptions:
            subscription.put(None)
            subscription.put_nodes()
