"""What operators see of the items of a share group, and do with them. Each act is in the audit.

Source: share.md 7.8.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta

from groups.configs import GroupConfigs
from groups.core.model.commands import ResetShare
from groups.core.model.replies import Done
from groups.core.share import no_share_group
from groups.engine.service import GroupService
from groups.store.locked import LockedGroup
from groups.topics import TopicService, unknown_partition, unknown_topic
from kcoord.access.audit.recording import Act, record
from kcoord.access.rights import Operation, Principal
from kcoord.control.rest.answers import Instant, Natural, Natural32, Offset, doc, one_of
from kcoord.database.paging import EVERYTHING, Page, Visible, cut, decode_cursor, encode_cursor
from kcoord.database.pool import Connection
from kcoord.database.sql import queries
from kcoord.door.http.types import INT32_MAX
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.core.types import INT64_MAX, Millis
from offsets.share.store import Ranges, composite, ranges, rules_of

Q = queries("offsets")

STATES = ("acquired", "retry", "delayed")
CAUSES = ("rejected", "limit")


@dataclass(frozen=True, slots=True)
class ItemView:
    """Items of a partition in the same state."""

    state: Annotated[
        str,
        one_of(
            STATES, "acquired: a member has them; retry: to be delivered again; delayed: the same, not before `until`."
        ),
    ]
    topic: str
    partition: Natural32
    offsets: Annotated[
        list[tuple[Offset, Offset]],
        doc("First and last offsets, both included."),
    ]
    delivery_count: Annotated[Natural32, doc("How often they were delivered.")]
    member_id: Annotated[str, doc("Who has them, or had them last.")]
    lock: Annotated[int | None, doc("The lock of acquired items.")]
    acquired_at: Instant | None
    until: Annotated[Instant, doc("When the lock is over, or from when on they are available again.")]
    last_error: Annotated[str | None, doc("What the last attempt that failed said.")]


@dataclass(frozen=True, slots=True)
class DeadLetterView:
    """An item that was given up."""

    id: int
    topic: str
    partition: Natural32
    offset: Offset
    delivery_count: Annotated[int, Meta(ge=1, le=INT32_MAX)]
    cause: Annotated[str, one_of(CAUSES, "rejected, or limit: delivered as often as allowed.")]
    error: str | None
    member_id: Annotated[str, doc("Who had it last.")]
    at: Instant


@dataclass(frozen=True, slots=True)
class ShareOffsetView:
    """How far the group is with a partition."""

    topic: str
    topic_id: str
    partition: Natural32
    start_offset: Annotated[Offset | None, doc("The first offset that is not finished; null: not decided yet.")]
    next_offset: Annotated[Offset | None, doc("Offsets from here on were never given out.")]
    end_offset: Annotated[Offset, doc("How far the partition goes, as far as is known.")]
    lag: Annotated[Natural | None, doc("Items below the end that are not finished (KIP-1226); null: not known.")]
    acquired: Annotated[Natural, doc("Items that members have.")]
    retry: Annotated[Natural, doc("Items to be delivered again.")]
    delayed: Annotated[Natural, doc("The same, not yet.")]
    dead: Annotated[Natural, doc("Dead letters.")]


@dataclass(frozen=True, slots=True)
class ShareOffset(ShareOffsetView):
    """How far a partition is. `next_offset` None: where it begins is not decided yet, and then the two others are, too.

    `acquired`, `retry`, `delayed`, `dead`: numbers of items. `time_lag_ms`: how long the oldest item that is not
    finished has waited, by the samples of watermarks; None: they do not say.
    """

    time_lag_ms: int | None


@dataclass(frozen=True, slots=True)
class Chosen:
    """Items of one partition."""

    topic: str
    partition: int
    offsets: Ranges


class ItemOperators:
    """Items for people, for one process. Every method may raise ProtocolError COORDINATOR_NOT_AVAILABLE, and
    GROUP_ID_NOT_FOUND unless it is a share group.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._groups = runtime.get(GroupService)
        self._topics = runtime.get(TopicService)
        self._configs = runtime.get(GroupConfigs)

    async def items(
        self,
        group_id: str,
        *,
        state: str | None = None,
        member: str | None = None,
        topic: str | None = None,
        cursor: str | None = None,
        limit: int,
        visible: Visible = EVERYTHING,
    ) -> Page[ItemView]:
        """A page of unfinished items that were given out, by partition: what members have, by the end of their locks,
        then what is to be delivered again, by when.
        """
        async with self._db.snapshot() as connection:
            await self._key(connection, group_id)
            now = await self._db.now_ms(connection)
            parameters = {
                "group_id": group_id,
                "member": member,
                "topic": topic,
                "limit": limit + 1,
                **_after(cursor),
                **_within(state, now),
                **visible.parameters(),
            }
            rows = await self._db.rows(connection, Q.list_items, parameters)
        shown, more = cut(rows, limit)
        return Page([_item(now, *row) for row in shown], _cursor(*shown[-1][:5]) if more else None)

    async def oldest(self, group_id: str, visible: Visible = EVERYTHING) -> Millis | None:
        """When the items were acquired that members have for the longest (ms); None: nobody has any."""
        async with self._db.connection() as connection:
            parameters = {"group_id": group_id, "now": await self._db.now_ms(connection), **visible.parameters()}
            found: Millis | None = await self._db.value(connection, Q.oldest_lock, parameters)
            return found

    async def dead_letters(
        self,
        group_id: str,
        *,
        topic: str | None = None,
        cause: str | None = None,
        since: Millis | None = None,
        until: Millis | None = None,
        cursor: str | None = None,
        limit: int,
        visible: Visible = EVERYTHING,
    ) -> Page[DeadLetterView]:
        """A page of dead letters, oldest first."""
        (after,) = decode_cursor(cursor, int) if cursor is not None else (0,)
        async with self._db.snapshot() as connection:
            await self._key(connection, group_id)
            parameters = {
                "group_id": group_id,
                "topic": topic,
                "cause": cause,
                "since": since,
                "until": until,
                "after": after,
                "limit": limit + 1,
                **visible.parameters(),
            }
            found = await self._db.records(connection, DeadLetterView, Q.list_dead_letters, parameters)
        shown, more = cut(found, limit)
        return Page(shown, encode_cursor(shown[-1].id) if more else None)

    async def offsets(self, group_id: str, visible: Visible = EVERYTHING) -> list[ShareOffset]:
        """How far each partition is, by topic and number."""
        async with self._db.snapshot() as connection:
            await self._key(connection, group_id)
            now = await self._db.now_ms(connection)
            parameters = {"group_id": group_id, "now": now, **visible.parameters()}
            return await self._db.records(connection, ShareOffset, Q.share_offsets, parameters)

    async def operate(
        self, group_id: str, kind: str, chosen: Sequence[Chosen], principal: Principal, error: str | None
    ) -> int:
        """`release` items, whoever has them, or `reject` them; returns how many there were. `error`: for who sees them.

        Raises UNKNOWN_TOPIC_OR_PARTITION for a partition that the group does not work on.
        """
        self._groups.check_active(group_id)
        view = await self._topics.find(names={entry.topic for entry in chosen})
        rules = composite(rules_of(await self._configs.resolved(group_id)))

        async def work(connection: Connection) -> int:
            pk = await self._key(connection, group_id)
            now, total = await self._db.now_ms(connection), 0
            for entry in sorted(chosen, key=lambda entry: (entry.topic, entry.partition)):
                topic = view.by_name.get(entry.topic)
                if topic is None:
                    raise unknown_topic(entry.topic)
                named = {"group": pk, "topic_id": topic.topic_id, "partition": entry.partition}
                partition = await self._db.value(connection, Q.share_partition_key, named)
                if partition is None:
                    raise unknown_partition(entry.topic, entry.partition, topic.partitions, "items")
                parameters = {
                    "partition": partition,
                    "offsets": json.dumps(entry.offsets),
                    "kind": kind,
                    "error": error,
                    "rules": rules,
                    "now": now,
                }
                total += await self._db.value(connection, Q.operate_items, parameters)
            shown = [{"topic": e.topic, "partition": e.partition, "offsets": e.offsets} for e in chosen]
            act = Act(
                f"items.{kind}",
                "group",
                group_id,
                {"items": shown},
                {"items": total},
                error or "",
                principal=principal.name,
            )
            await record(self._db, connection, act)
            return total

        return await self._db.transaction(work)

    async def replay(self, group_id: str, ids: Sequence[int], principal: Principal, *, reset_count: bool) -> int:
        """Deliver dead letters again; returns how many there were. `reset_count`: as if never delivered before.

        Raises TOPIC_AUTHORIZATION_FAILED if some belong to a topic that the caller may not describe.
        """
        return await self._with_dead(
            group_id, ids, principal, "dead-letters.replay", Q.replay_dead_letters, {"reset_count": reset_count}
        )

    async def discard(self, group_id: str, ids: Sequence[int], principal: Principal) -> int:
        """Remove dead letters for good; returns how many there were. Raises as `replay`."""
        return await self._with_dead(group_id, ids, principal, "dead-letters.discard", Q.discard_dead_letters, {})

    async def _with_dead(
        self,
        group_id: str,
        ids: Sequence[int],
        principal: Principal,
        act: str,
        statement: str,
        more: Mapping[str, Any],
    ) -> int:
        self._groups.check_active(group_id)
        rules = composite(rules_of(await self._configs.resolved(group_id)))

        async def work(connection: Connection) -> int:
            pk = await self._key(connection, group_id)
            named = {"group": pk, "ids": list(ids)}
            for topic in await self._db.column(connection, Q.topics_of_dead_letters, named):
                principal.require_described(topic)
            now = await self._db.now_ms(connection)
            count = await self._db.value(connection, statement, {**named, **more, "rules": rules, "now": now})
            after = {"dead_letters": count, **more}
            done = Act(act, "group", group_id, {"ids": list(ids)}, after, principal=principal.name)
            await record(self._db, connection, done)
            return int(count)

        return await self._db.transaction(work)

    async def alter(
        self, group_id: str, starts: Mapping[tuple[str, int], int], principal: Principal
    ) -> dict[tuple[str, int], Error]:
        """AlterShareGroupOffsets: partitions begin again at these offsets; an error for each. The group is created if
        it does not exist.

        Raises NON_EMPTY_GROUP.
        """
        view = await self._topics.find(partitions=starts)
        results: dict[tuple[str, int], Error] = {}

        async def write(locked: LockedGroup) -> None:
            results.clear()
            before: dict[str, Any] = {}
            for (name, number), start in sorted(starts.items()):
                topic = view.by_name.get(name)
                error = Error.UNKNOWN_TOPIC_OR_PARTITION if topic is None else Error.NONE
                if not principal.may_topic(Operation.READ, name):
                    error = Error.TOPIC_AUTHORIZATION_FAILED
                if topic is not None and error is Error.NONE:
                    named = {"group": locked.pk, "topic_id": topic.topic_id, "partition": number, "start": start}
                    was = await self._db.value(locked.connection, Q.alter_share_offset, named)
                    error = Error.UNKNOWN_TOPIC_OR_PARTITION if was is None else Error.NONE
                    before[f"{name}-{number}"] = None if was == -1 else was
                results[name, number] = error
            altered = {
                f"{name}-{number}": starts[name, number]
                for (name, number), error in results.items()
                if error is Error.NONE
            }
            if altered:
                was = {key: before[key] for key in altered}
                locked.acts.append(
                    Act("share-offsets.alter", "group", group_id, was, altered, principal=principal.name)
                )

        await self._reset(ResetShare(group_id, create=True), write)
        return results

    async def delete(self, group_id: str, topics: Sequence[str], principal: Principal) -> dict[str, Error]:
        """DeleteShareGroupOffsets: the group forgets topics; an error for each. Who names one next begins it anew.

        Raises NON_EMPTY_GROUP.
        """
        view = await self._topics.find(names=topics)
        results: dict[str, Error] = {}

        async def write(locked: LockedGroup) -> None:
            results.clear()
            for name in topics:
                topic = view.by_name.get(name)
                gone = 0
                if not principal.may_topic(Operation.READ, name):
                    results[name] = Error.TOPIC_AUTHORIZATION_FAILED
                    continue
                if topic is not None:
                    named = {"group": locked.pk, "topics": [topic.topic_id]}
                    gone = await self._db.value(locked.connection, Q.forget_share_partitions, named)
                results[name] = Error.NONE if gone else Error.UNKNOWN_TOPIC_OR_PARTITION
            done = [name for name, error in results.items() if error is Error.NONE]
            if done:
                act = Act("share-offsets.delete", "group", group_id, {"topics": done}, principal=principal.name)
                locked.acts.append(act)

        await self._reset(ResetShare(group_id), write)
        return results

    async def _reset(self, command: ResetShare, write: Any) -> None:
        reply = await self._groups.execute(command, write)
        if isinstance(reply, Done) and reply.error is not Error.NONE:
            raise ProtocolError(reply.error, reply.detail)

    async def _key(self, connection: Connection, group_id: str) -> int:
        row = await self._db.row(connection, Q.share_group_key, {"group_id": group_id})
        if row is None or row[1] != "share":
            raise no_share_group(group_id, exists=row is not None)
        return int(row[0])


LOCKS, RETRIES = 0, 1
"""The kinds of rows that have items, in the order of lists."""
_ALL, _NONE = (-1, INT64_MAX), (INT64_MAX, -1)
"""Instants: after the first, up to the second one."""


def _within(state: str | None, now: Millis) -> dict[str, Millis]:
    """When the locks end and the retries are due that are in a state; None: all."""
    over, later = (-1, now), (now, INT64_MAX)
    locks, retries = {
        None: (_ALL, _ALL),
        "acquired": (later, _NONE),
        "retry": (over, over),
        "delayed": (_NONE, later),
    }[state]
    return {"lock_after": locks[0], "lock_last": locks[1], "retry_after": retries[0], "retry_last": retries[1]}


def _cursor(kind: int, topic_id: UUID, partition: int, at: Millis, id: int) -> str:
    return encode_cursor(str(topic_id), partition, kind, at, id)


def _after(cursor: str | None) -> dict[str, Any]:
    """What a page begins after. Raises INVALID_REQUEST for a cursor of another list."""
    if cursor is None:
        return {"after_topic": UUID(int=0), "after_partition": -1, "after_lock": -1, "after_retry": -1, "after_id": 0}
    topic, partition, kind, at, after_id = decode_cursor(cursor, str, int, int, int, int)
    try:
        topic_id = UUID(str(topic))
    except ValueError:
        refused = "cursor: not a cursor of this list"
        raise ProtocolError(Error.INVALID_REQUEST, refused, fields={"field": "cursor"}) from None
    locks, retries = (at, -1) if kind == LOCKS else (INT64_MAX, at)
    return {
        "after_topic": topic_id,
        "after_partition": partition,
        "after_lock": locks,
        "after_retry": retries,
        "after_id": after_id,
    }


def _item(
    now: Millis,
    kind: int,
    topic_id: UUID,
    partition: int,
    at: Millis,
    id: int,
    topic: str,
    held: Any,
    delivery_count: int,
    member_id: str,
    acquired_at: Millis | None,
    last_error: str | None,
) -> ItemView:
    state = ("acquired" if kind == LOCKS else "delayed") if at > now else "retry"
    lock = id if kind == LOCKS else None
    return ItemView(state, topic, partition, ranges(held), delivery_count, member_id, lock, acquired_at, at, last_error)
