"""Pins: groups and topics whose offsets retention keeps, for as long as an operator wants.

A pin names its group, which need not exist: a pin set before the first commit applies from that commit on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar, cast

from groups.core.model.commands import Tick
from groups.core.model.events import EventKind, GroupEvent
from groups.core.model.group import Group
from groups.engine.service import GroupService
from groups.store.locked import LockedGroup
from groups.topics import check_topic_name
from kcoord.access.audit.recording import Act, record
from kcoord.control.rest.answers import Instant, doc
from kcoord.database.paging import DEFAULT_LIMIT, EVERYTHING, Page, Visible, cut, decode_cursor, encode_cursor
from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.core.retention import Pins
from offsets.core.types import Millis
from offsets.journal.events import generation_of

Q = queries("offsets")

MAX_PINS = 1_000
"""The most pins of one group: a group with more topics is pinned as a whole."""

_ALL_TOPICS = ""

T = TypeVar("T")
Change = Callable[[Connection, Millis, list[GroupEvent], Group | None, list[Act]], Awaitable[T]]
"""A change of pins: (connection, now, events to add to, the group if there is one, acts to add to) -> the caller's
result."""


@dataclass(frozen=True, slots=True)
class PinView:
    """A pin: these offsets do not expire."""

    topic: Annotated[str | None, doc("null: all topics of the group.")]
    pinned_at: Instant
    pinned_by: Annotated[str, doc("Name of the token or account.")]
    reason: str


async def pins_of(db: Database, connection: Connection, group_id: str) -> Pins:
    """The pins of a group as the caller's transaction sees them."""
    topics = set(await db.column(connection, Q.pinned_topics, {"group_id": group_id}))
    return Pins(_ALL_TOPICS in topics, frozenset(topics - {_ALL_TOPICS}))


class PinService:
    """Sets, removes and lists pins. Every method may raise COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._groups = runtime.get(GroupService)

    async def pins(
        self, group_id: str, *, cursor: str | None = None, limit: int = DEFAULT_LIMIT, visible: Visible = EVERYTHING
    ) -> Page[PinView]:
        """A page of a group's pins on topics in `visible`, by topic, the pin of all topics first; a group that does not
        exist may have pins.

        Raises ProtocolError INVALID_REQUEST for a cursor of another list.
        """
        after = None if cursor is None else decode_cursor(cursor, str)[0]
        parameters = {"group_id": group_id, "after": after, "limit": limit + 1, **visible.parameters()}
        async with self._db.connection() as connection:
            found = await self._db.records(connection, _pin, Q.list_pins, parameters)
        pins, more = cut(found, limit)
        return Page(pins, encode_cursor(pins[-1].topic or _ALL_TOPICS) if more else None)

    async def pin(self, group_id: str, topic: str | None, *, principal: str, reason: str = "") -> PinView:
        """PinView a topic of a group, or the group; an existing pin stays unchanged, and is returned.

        The topic need not exist. Raises ProtocolError INVALID_TOPIC_EXCEPTION, and INVALID_REQUEST for a group that
        already has MAX_PINS.
        """
        _check(topic)

        async def insert(
            connection: Connection, now: Millis, events: list[GroupEvent], group: Group | None, acts: list[Act]
        ) -> PinView | ProtocolError:
            found = await self._db.record(connection, _pin, Q.read_pin, _key(group_id, topic))
            if found is not None:
                was = {"topic": topic, "pinned_at": found.pinned_at}
                acts.append(Act("offsets.pin", "group", group_id, was, was, reason, principal=principal))
                return found
            if await self._db.value(connection, Q.count_pins, {"group_id": group_id}) >= MAX_PINS:
                return _too_many()
            parameters = {**_key(group_id, topic), "now": now, "pinned_by": principal, "reason": reason}
            pin = await self._db.record(connection, _pin, Q.insert_pin, parameters)
            assert pin is not None
            events.append(_event(EventKind.RETENTION_PINNED, group, topic, principal, reason))
            after = {"topic": topic, "pinned_at": pin.pinned_at}
            acts.append(Act("offsets.pin", "group", group_id, None, after, reason, principal=principal))
            return pin

        result = await self._change(group_id, insert)
        if isinstance(result, ProtocolError):
            raise result
        return result

    async def unpin(self, group_id: str, topic: str | None, *, principal: str) -> bool:
        """Remove a pin; returns whether it existed. Offsets that became due meanwhile are removed by the next run.

        Raises ProtocolError INVALID_TOPIC_EXCEPTION.
        """
        _check(topic)

        async def delete(
            connection: Connection, now: Millis, events: list[GroupEvent], group: Group | None, acts: list[Act]
        ) -> bool:
            removed = await self._db.value(connection, Q.delete_pin, _key(group_id, topic)) is not None
            if removed:
                events.append(_event(EventKind.RETENTION_UNPINNED, group, topic, principal, ""))
            was = {"topic": topic} if removed else None
            acts.append(Act("offsets.unpin", "group", group_id, was, None, principal=principal))
            return removed

        return await self._change(group_id, delete)

    async def _change(self, group_id: str, change: Change[T]) -> T:
        """Under the group's lock, so that nothing expires once its pin is answered; the group need not exist."""

        async def within(locked: LockedGroup) -> _Result[T]:
            return _Result(await change(locked.connection, locked.now, locked.events, locked.group, locked.acts))

        result = await self._groups.execute(Tick(group_id), within)
        if isinstance(result, _Result):
            return cast(T, result.value)

        async def alone(connection: Connection) -> T:
            events: list[GroupEvent] = []
            acts: list[Act] = []
            now = await self._db.now_ms(connection)
            value = await change(connection, now, events, None, acts)
            await self._groups.record(connection, group_id, events, now)
            for act in acts:
                await record(self._db, connection, act)
            return value

        return await self._db.transaction(alone)


@dataclass(frozen=True, slots=True)
class _Result(Generic[T]):
    """The result from the group's transaction; anything else is the reply for a group that does not exist."""

    value: T


def _check(topic: str | None) -> None:
    if topic is None:
        return
    try:
        check_topic_name(topic)
    except ProtocolError as error:
        detail = error.detail.replace("name:", "topic:", 1)
        raise ProtocolError(error.error, detail, fields={"field": "topic"}) from None


def _too_many() -> ProtocolError:
    return ProtocolError(
        Error.INVALID_REQUEST,
        f"topic: the group already has {MAX_PINS} pins; pin the whole group, or remove some pins",
        fields={"field": "topic"},
    )


def _key(group_id: str, topic: str | None) -> dict[str, object]:
    return {"group_id": group_id, "topic": topic or _ALL_TOPICS}


def _pin(*, topic: str, **columns: Any) -> PinView:
    return PinView(topic or None, **columns)


def _event(kind: EventKind, group: Group | None, topic: str | None, principal: str, reason: str) -> GroupEvent:
    detail: Mapping[str, object] = {"topic": topic, "principal": principal, "reason": reason or None}
    told = {name: value for name, value in detail.items() if value is not None}
    return GroupEvent(kind, generation_of(group), None, told)
