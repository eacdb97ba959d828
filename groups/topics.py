"""The catalogue of topics and their watermarks: the single implementation behind both planes, pages and commands.

A topic is a named set of partitions that members of groups share; what the partitions are is up to the user. A
watermark says where a partition's log begins and ends, as a producer or probe last reported; lag is counted from it.
Requests resolve topics by name and id in a copy of the catalogue in memory: `TopicService.view`, `find`, `current`.

Modules that store data about topics register hooks for their deletion, like `groups.store.locked.before_deletion` for
groups, but in two steps, because the transaction of the topic cannot hold the locks of all groups that ever read it:
the work is recorded with the deletion, and done after it. Quotas count the partitions that are created or deleted, as
Kafka does (KIP-599).
Source: http-api.md 3; consumer.md 4; Kafka's rules for topic names and CreatePartitions.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar
from uuid import UUID

from psycopg.types.json import Jsonb

from groups import revisions
from groups.core.model import types as core
from groups.core.model.types import Millis, TopicView
from groups.revisions import Subject
from kcoord.access.audit.recording import Act, record
from kcoord.access.quotas.budgets import Budget
from kcoord.access.quotas.quotas import Quotas
from kcoord.access.rights import Principal
from kcoord.database.paging import (
    DEFAULT_LIMIT,
    EVERYTHING,
    INT64_MAX,
    Page,
    Visible,
    cut,
    decode_cursor,
    encode_cursor,
)
from kcoord.database.pool import Connection
from kcoord.database.sql import queries
from kcoord.process import off_loop
from kcoord.process.runtime import Runtime, WatchedCopy
from kcoord.protocol.errors import Error, ProtocolError


@dataclass(frozen=True, slots=True)
class TopicDeletion:
    """A topic whose deletion is about to commit. `principal`: who requested it, "" for the service. `now` in ms."""

    connection: Connection
    topic: str
    topic_id: UUID
    principal: str
    now: Millis


Note = Callable[[TopicDeletion], Awaitable[None]]
FollowUp = Callable[[Runtime, str], Awaitable[None]]

_hooks: list[tuple[Note, FollowUp | None]] = []


def on_topic_deletion(note: Note, follow_up: FollowUp | None = None) -> None:
    """Call `note` in the transaction of every deletion of a topic, and `follow_up` once it is committed.

    The deletion is answered after `follow_up`, which handles its own failures; it may not run at all if the process
    dies. For `AppConfig.ready`.
    """
    if (note, follow_up) not in _hooks:
        _hooks.append((note, follow_up))


async def note_deletion(deletion: TopicDeletion) -> None:
    """Call every `note` hook."""
    for note, _ in _hooks:
        await note(deletion)


async def follow_up_deletion(runtime: Runtime, topic: str) -> None:
    """Call every `follow_up` hook."""
    for _, follow_up in _hooks:
        if follow_up is not None:
            await follow_up(runtime, topic)


Q = queries("groups")
T = TypeVar("T")

MAX_NAME_LENGTH = 249
MAX_PARTITIONS = 100_000
_NAME = re.compile(r"[a-zA-Z0-9._-]+")


WatermarkHook = Callable[[Connection, str], Awaitable[None]]

_watermark_hooks: list[WatermarkHook] = []


def on_watermarks(hook: WatermarkHook) -> None:
    """Call `hook` with the name of a topic in the transaction of every report of its watermarks.

    For `AppConfig.ready`.
    """
    if hook not in _watermark_hooks:
        _watermark_hooks.append(hook)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic. `topic_id` tells it from an earlier topic of the same name; `created_at` in ms since the epoch."""

    name: str
    topic_id: uuid.UUID
    partitions: int
    labels: Mapping[str, str]
    created_at: Millis


@dataclass(frozen=True, slots=True)
class Watermark:
    """Where a partition's log begins and ends (the offset after the last), reported at `sampled_at` (ms).

    `lower_end_offset`: an earlier end that was reported at `lower_at` (ms) by `lower_by` without a truncation; it does
    not count.
    """

    partition: int
    log_start_offset: int
    log_end_offset: int
    sampled_at: Millis = field(default=0)
    lower_end_offset: int | None = None
    lower_at: Millis | None = None
    lower_by: str = ""


def check_topic_name(name: str) -> None:
    """Raise ProtocolError INVALID_TOPIC_EXCEPTION unless `name` is a topic name by Kafka's rules."""
    if name in (".", "..") or len(name) > MAX_NAME_LENGTH or not _NAME.fullmatch(name):
        raise ProtocolError(
            Error.INVALID_TOPIC_EXCEPTION,
            f"name: must have 1 to {MAX_NAME_LENGTH} letters, digits, '.', '_' or '-', and must not be '.' or '..'",
            fields={"field": "name"},
        )


def check_partitions(partitions: int) -> None:
    """Raise ProtocolError INVALID_PARTITIONS unless a topic may have that many partitions."""
    if not 1 <= partitions <= MAX_PARTITIONS:
        raise _invalid_partitions(f"a topic has 1 to {MAX_PARTITIONS} partitions, not {partitions}")


class TopicService:
    """Reads and writes the catalogue. Every method may raise COORDINATOR_NOT_AVAILABLE: the database is unavailable."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._runtime = runtime
        self._view = WatchedCopy(runtime, Subject.TOPICS.channel, self._read_view)

    async def view(self) -> TopicView:
        """The catalogue as it was a moment ago, with every change that this process was notified of. Costs no query.

        Raises ProtocolError COORDINATOR_NOT_AVAILABLE while a change that it was notified of cannot be read.
        """
        return await self._view.get()

    def known(self) -> TopicView | None:
        """As `view`, without waiting; None: a change has to be read first."""
        return self._view.known()

    async def find(
        self,
        *,
        names: Iterable[str] = (),
        topic_ids: Iterable[str] = (),
        partitions: Iterable[tuple[str, int]] = (),
    ) -> TopicView:
        """The catalogue, in which what is missing of these topics and partitions does not exist.

        A copy may not know yet what another process created, so it is renewed before anything is said to be missing.
        What another process has just deleted may still be in it, as in the metadata cache of a Kafka broker: for as
        long as a notification takes, at most `notifications.repair.interval.ms`. Raises as `view` does.
        """
        view = await self.view()
        known = (
            all(name in view.by_name for name in names)
            and all(topic_id in view.by_id for topic_id in topic_ids)
            and all(_has(view, topic, partition) for topic, partition in partitions)
        )
        return view if known else await self.current()

    async def current(self) -> TopicView:
        """The catalogue as of now: costs a look at its revision.

        For decisions that nobody makes again soon, such as the partitions that a leader hands out.
        """
        return await self._view.renewed()

    async def _read_view(self, known: TopicView | None) -> TopicView:
        async with self._db.snapshot() as connection:
            version = await revisions.read(self._db, connection, Subject.TOPICS)
            if known is not None and known.version == version:
                return known
            rows = await off_loop.fetch(connection, Q.all_topics)
        return await off_loop.run(len(rows), _view_of, version, rows)

    async def create(self, name: str, partitions: int, labels: Mapping[str, str] | None = None) -> Topic:
        """Create a topic, with a new id even if a topic of this name was deleted before.

        Raises ProtocolError INVALID_TOPIC_EXCEPTION, INVALID_PARTITIONS, TOPIC_ALREADY_EXISTS.
        """
        check_topic_name(name)
        check_partitions(partitions)

        async def work(connection: Connection) -> Topic:
            topic = await self._db.record(
                connection,
                Topic,
                Q.insert_topic,
                {
                    "name": name,
                    "topic_id": uuid.uuid4(),
                    "partitions": partitions,
                    "labels": Jsonb(dict(labels or {})),
                    "now": await self._db.now_ms(connection),
                },
            )
            if topic is None:
                raise ProtocolError(Error.TOPIC_ALREADY_EXISTS, f"topic {name!r} already exists")
            await _changed(connection)
            await record(self._db, connection, Act("topic.create", "topic", name, after=_shown(topic)))
            return topic

        return await self._change(work)

    async def get(self, name: str) -> Topic:
        """The topic of this name. Raises ProtocolError INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_OR_PARTITION."""
        check_topic_name(name)
        async with self._db.connection() as connection:
            topic = await self._db.record(connection, Topic, Q.read_topic, {"name": name})
        if topic is None:
            raise unknown_topic(name)
        return topic

    async def search(
        self, *, q: str = "", cursor: str | None = None, limit: int = DEFAULT_LIMIT, visible: Visible = EVERYTHING
    ) -> Page[Topic]:
        """A page of topics by name; `q` is a part of the name, ignoring case.

        Raises ProtocolError INVALID_REQUEST for an invalid cursor.
        """
        (after,) = decode_cursor(cursor, str) if cursor is not None else ("",)
        parameters = {"after": after, "q": q, "limit": limit + 1, **visible.parameters()}
        async with self._db.connection() as connection:
            found = await self._db.records(connection, Topic, Q.list_topics, parameters)
        topics, more = cut(found, limit)
        return Page(topics, encode_cursor(topics[-1].name) if more else None)

    async def update(
        self, name: str, *, partitions: int | None = None, labels: Mapping[str, str] | None = None
    ) -> Topic:
        """Raise the number of partitions, replace the labels; None leaves either unchanged.

        Raises ProtocolError UNKNOWN_TOPIC_OR_PARTITION, and INVALID_PARTITIONS unless the number grows, as Kafka's
        CreatePartitions does.
        """
        check_topic_name(name)
        if partitions is not None:
            check_partitions(partitions)

        async def work(connection: Connection) -> Topic:
            pk, topic = await self._lock(connection, name)
            if partitions is not None and partitions <= topic.partitions:
                raise _invalid_partitions(
                    f"topic {name!r} has {topic.partitions} partitions; it can only be raised, not set to {partitions}"
                )
            updated = await self._db.record(
                connection,
                Topic,
                Q.update_topic,
                {
                    "id": pk,
                    "partitions": topic.partitions if partitions is None else partitions,
                    "labels": Jsonb(dict(topic.labels if labels is None else labels)),
                },
            )
            assert updated is not None
            if partitions is not None:
                await _changed(connection)
            act = Act("topic.update", "topic", name, before=_shown(topic), after=_shown(updated))
            await record(self._db, connection, act)
            return updated

        return await self._change(work)

    async def delete(self, name: str, *, principal: str = "") -> None:
        """Delete a topic with its watermarks and what groups committed on it. `principal`: who requests it.

        Raises ProtocolError INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_OR_PARTITION.
        """
        check_topic_name(name)

        async def work(connection: Connection) -> None:
            pk, topic = await self._lock(connection, name)
            await connection.execute(Q.delete_topic_watermarks.encode(), {"id": pk})
            await connection.execute(Q.delete_topic.encode(), {"id": pk})
            now = await self._db.now_ms(connection)
            await note_deletion(TopicDeletion(connection, name, topic.topic_id, principal, now))
            await _changed(connection)
            act = Act("topic.delete", "topic", name, before=_shown(topic), principal=principal)
            await record(self._db, connection, act)

        await self._change(work)
        await follow_up_deletion(self._runtime, name)

    async def set_watermarks(
        self, name: str, watermarks: Sequence[Watermark], *, truncated: bool = False, principal: str = ""
    ) -> list[Watermark]:
        """Record where logs begin and end now, all or none; returns what is known then, by partition.

        An end before the one that is known is kept beside it, with `principal`, unless the logs were `truncated`.

        Raises ProtocolError UNKNOWN_TOPIC_OR_PARTITION naming the partition, INVALID_REQUEST for offsets that are out
        of order or a partition given twice.
        """
        check_topic_name(name)
        _check_watermarks(watermarks)
        ordered = sorted(watermarks, key=lambda watermark: watermark.partition)

        async def work(connection: Connection) -> list[Watermark]:
            row = await self._db.row(connection, Q.lock_topic_shared, {"name": name})
            if row is None:
                raise unknown_topic(name)
            pk, partitions = row
            for index, watermark in enumerate(watermarks):
                if not 0 <= watermark.partition < partitions:
                    raise unknown_partition(name, watermark.partition, partitions, f"partitions[{index}].partition")
            now = await self._db.now_ms(connection)
            parameters = {
                "id": pk,
                "now": now,
                "truncated": truncated,
                "principal": principal,
                "partition": [w.partition for w in ordered],
                "log_start_offset": [w.log_start_offset for w in ordered],
                "log_end_offset": [w.log_end_offset for w in ordered],
            }
            await connection.execute(Q.upsert_watermarks.encode(), parameters)
            for hook in _watermark_hooks:
                await hook(connection, name)
            return await self._db.records(connection, Watermark, Q.reported_watermarks, parameters)

        return await self._db.transaction(work)

    async def watermarks(self, name: str, *, cursor: str | None = None, limit: int = DEFAULT_LIMIT) -> Page[Watermark]:
        """A page of a topic's watermarks by partition. Raises ProtocolError UNKNOWN_TOPIC_OR_PARTITION."""
        await self.get(name)
        (after,) = decode_cursor(cursor, int) if cursor is not None else (-1,)
        parameters = {"name": name, "after": after, "limit": limit + 1}
        async with self._db.connection() as connection:
            found = await self._db.records(connection, Watermark, Q.list_watermarks, parameters)
        shown, more = cut(found, limit)
        return Page(shown, encode_cursor(shown[-1].partition) if more else None)

    async def _change(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Commit a change of the catalogue; this process sees it immediately, others once they are notified."""
        result = await self._db.transaction(work)
        self._view.hint()
        return result

    async def _lock(self, connection: Connection, name: str) -> tuple[int, Topic]:
        locked = await self._db.record(connection, _with_key, Q.lock_topic, {"name": name})
        if locked is None:
            raise unknown_topic(name)
        return locked


def _shown(topic: Topic) -> dict[str, Any]:
    """A topic as the audit shows it."""
    return {"topic_id": topic.topic_id, "partitions": topic.partitions, "labels": dict(topic.labels)}


def _with_key(*, pk: int, **topic: Any) -> tuple[int, Topic]:
    return pk, Topic(**topic)


def partition_counts(view: TopicView, names: Iterable[str]) -> dict[str, int]:
    """The numbers of partitions of those topics that exist, by name."""
    return {name: view.by_name[name].partitions for name in names if name in view.by_name}


def _has(view: TopicView, name: str, partition: int) -> bool:
    topic = view.by_name.get(name)
    return topic is not None and partition < topic.partitions


def _view_of(version: int, rows: Iterable[Sequence[Any]]) -> TopicView:
    topics = [core.Topic(topic_id, name, partitions) for topic_id, name, partitions in rows]
    return TopicView(
        version,
        MappingProxyType({topic.name: topic for topic in topics}),
        MappingProxyType({topic.topic_id: topic for topic in topics}),
    )


async def _changed(connection: Connection) -> None:
    await revisions.lock(connection, Subject.TOPICS)
    await revisions.tell(connection, Subject.TOPICS)


def unknown_topic(name: str) -> ProtocolError:
    """The answer for a topic that does not exist or that the caller may not see."""
    return ProtocolError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")


def unknown_partition(name: str, partition: int, partitions: int, where: str) -> ProtocolError:
    """The answer for a partition that the topic does not have; `where` is the field that names it."""
    return ProtocolError(
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        f"{where}: topic {name!r} has no partition {partition}; its partitions are 0 to {partitions - 1}",
        fields={"field": where},
    )


def _invalid_partitions(detail: str) -> ProtocolError:
    return ProtocolError(Error.INVALID_PARTITIONS, f"partitions: {detail}", fields={"field": "partitions"})


def _check_watermarks(watermarks: Sequence[Watermark]) -> None:
    seen: set[int] = set()
    for index, watermark in enumerate(watermarks):
        where = f"partitions[{index}]"
        if watermark.partition in seen:
            raise _invalid_watermark(f"{where}.partition", f"partition {watermark.partition} is listed twice")
        seen.add(watermark.partition)
        if not 0 <= watermark.log_start_offset <= watermark.log_end_offset <= INT64_MAX:
            raise _invalid_watermark(
                f"{where}.log_end_offset",
                f"offsets go from 0 to {INT64_MAX} and a log does not end before it starts; it starts at "
                f"{watermark.log_start_offset} and ends at {watermark.log_end_offset}",
            )


def _invalid_watermark(where: str, detail: str) -> ProtocolError:
    return ProtocolError(Error.INVALID_REQUEST, f"{where}: {detail}", fields={"field": where})


async def admit_creation(runtime: Runtime, principal: Principal, partitions: int) -> None:
    """A topic is to be created. Raises THROTTLING_QUOTA_EXCEEDED."""
    runtime.get(Quotas).admit(principal, {Budget.PARTITIONS: max(1, partitions)})


async def admit_growth(runtime: Runtime, principal: Principal, name: str, partitions: int | None) -> None:
    """A topic is to have this many partitions. Raises THROTTLING_QUOTA_EXCEEDED."""
    if partitions is not None and _is_limited(runtime, principal):
        has = await _partitions_of(runtime, name)
        runtime.get(Quotas).admit(principal, {Budget.PARTITIONS: max(1, partitions - has)})


async def admit_deletion(runtime: Runtime, principal: Principal, name: str) -> None:
    """A topic is to be deleted. Raises THROTTLING_QUOTA_EXCEEDED."""
    if _is_limited(runtime, principal):
        runtime.get(Quotas).admit(principal, {Budget.PARTITIONS: max(1, await _partitions_of(runtime, name))})


def _is_limited(runtime: Runtime, principal: Principal) -> bool:
    return Budget.PARTITIONS in runtime.get(Quotas).meter(principal)


async def _partitions_of(runtime: Runtime, name: str) -> int:
    found = (await runtime.get(TopicService).view()).by_name.get(name)
    return 0 if found is None else found.partitions
