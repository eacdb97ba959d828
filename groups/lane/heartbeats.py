"""Heartbeats that only extend a session, answered from the folded group in memory.

What the answer rests on may be out of date by a second at most, and by as long as a notification takes as a rule. That
is as safe as an answer from the store: commits are fenced under the lock of the group, and sessions are guarded by what
this node says it has stored (`groups.lane.flusher`).

Source: architecture.md 4, "Fast lanes"; docs/models, rules 15 to 18.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import replace

from groups.catalogue.topics import TopicService
from groups.configs import HEARTBEAT_INTERVAL, SESSION_TIMEOUT, GroupConfigs
from groups.core.classic import sessions as classic
from groups.core.consumer import renewal as consumer
from groups.core.model.commands import ConsumerHeartbeat, Heartbeat
from groups.core.model.consumer_group import ConsumerGroup
from groups.core.model.replies import ConsumerHeartbeatReply, HeartbeatReply
from groups.core.model.types import ClassicGroup, Millis
from groups.engine.decision_context import group_config
from groups.lane.flusher import Entry, Flusher, Renewal
from groups.lane.store import LaneStore
from groups.lane.turns import Turns
from groups.nodes.hosting import Hosting
from groups.store.store import GroupStore
from groups.store.stored import Copy
from kcoord.constants import LANE
from kcoord.database import request_age
from kcoord.metrics import HEARTBEATS_FROM_MEMORY
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error

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
        receipt = request_age.current()
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
