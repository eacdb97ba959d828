"""Reads and writes items of share groups, through the functions of the database that are their rules.

Source: share.md 7.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any
from uuid import UUID

from kcoord.database.pool import Connection, Database
from kcoord.process.runtime import Runtime
from kcoord.setting import Value
from kcoord.sql import queries
from offsets.core.share import Rules
from offsets.core.types import Millis

Q = queries("offsets")

Ranges = list[tuple[int, int]]
"""First and last offsets, both included."""


@dataclass(frozen=True, slots=True)
class ShareMember:
    """A group (`pk` its key) with one of its members, whose fields are None if it has no such member."""

    pk: int
    type: str
    member_epoch: int | None
    previous_member_epoch: int | None
    assigned: Mapping[str, Any] | None
    session_deadline: Millis | None

    @property
    def partitions(self) -> list[tuple[UUID, int]]:
        """What is assigned to the member."""
        return [(UUID(topic), int(number)) for topic, numbers in (self.assigned or {}).items() for number in numbers]


@dataclass(frozen=True, slots=True)
class Acquired:
    """A lock that was given."""

    lock: int
    topic_id: UUID
    partition: int
    offsets: Ranges
    delivery_count: int
    until: Millis
    last_error: str | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one entry of a settlement; `why` None: it is done. See `kcoord.share_outcome`."""

    why: str | None
    held_by: str | None
    until: Millis | None


def rules_of(settings: Mapping[str, Value]) -> Rules:
    """The rules of a group, of its settings by name."""

    def number(name: str) -> int:
        value = settings[f"share.{name}"]
        assert isinstance(value, int)
        return value

    return Rules(
        lock_ms=number("record.lock.duration.ms"),
        delivery_limit=number("delivery.count.limit"),
        most_locks=number("partition.max.record.locks"),
        backoff_ms=number("release.backoff.ms"),
        backoff_max_ms=number("release.backoff.max.ms"),
        backoff_multiplier=number("release.backoff.multiplier"),
        starts=str(settings["share.auto.offset.reset"]),
    )


def composite(rules: Rules) -> str:
    """The rules as a text of the type `kcoord.share_rules`."""
    return "(" + ",".join(str(value) for value in astuple(rules)) + ")"


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a share group (its key) is on a partition; `lag` None: not known. `acquired`: items that members have,
    `again`: those that wait to be delivered again.
    """

    pk: int
    partition: int
    lag: int | None
    acquired: int
    again: int

    @property
    def ready(self) -> int | None:
        """Items that nobody has."""
        return None if self.lag is None else self.lag - self.acquired


async def standing(
    db: Database, connection: Connection, topic: str, groups: Sequence[int], first: int, last: int
) -> list[Standing]:
    """Those of these groups that are share groups, on partitions `first` to `last` that they have begun."""
    parameters = {"topic": topic, "groups": list(groups), "first": first, "last": last}
    return await db.records(connection, Standing, Q.share_standing, parameters)


class ShareStore:
    """The statements. Those of a transaction get its connection."""

    def __init__(self, runtime: Runtime) -> None:
        self._db: Database = runtime.db

    async def member(self, connection: Connection, group_id: str, member_id: str) -> ShareMember | None:
        """A group with a member; None: there is no such group."""
        parameters = {"group_id": group_id, "member_id": member_id}
        return await self._db.record(connection, ShareMember, Q.share_member, parameters)

    async def acquire(
        self,
        connection: Connection,
        pk: int,
        member_id: str,
        partitions: Sequence[tuple[UUID, int]],
        ends: Mapping[tuple[UUID, int], int],
        most: int,
        lock_ms: Millis,
        rules: Rules,
        now: Millis,
    ) -> tuple[list[Acquired], bool]:
        """Up to `most` items of these partitions, and whether there are none because others work on all of them."""
        parameters = {
            **_columns(pk, partitions),
            "member_id": member_id,
            "ends": [ends.get(partition) for partition in partitions],
            "most": most,
            "lock_ms": lock_ms,
            "rules": composite(rules),
            "now": now,
        }
        rows = await self._db.rows(connection, Q.acquire_items, parameters)
        found = [
            Acquired(lock, topic_id, partition, ranges(held), count, until, error)
            for lock, topic_id, partition, held, count, until, error in rows
            if lock is not None
        ]
        return found, bool(rows) and not found

    async def settle(
        self, connection: Connection, pk: int, member_id: str, items: bytes, rules: Rules, now: Millis
    ) -> list[Outcome]:
        """Settle what a member holds, entry by entry. `items`: the JSON of a list of settlements."""
        parameters = {
            "group": pk,
            "member_id": member_id,
            "items": items.decode(),
            "rules": composite(rules),
            "now": now,
        }
        rows = await self._db.rows(connection, Q.settle_items, parameters)
        return [Outcome(why, held_by, until) for _, why, held_by, until in rows]

    async def epochs(self, connection: Connection, group_id: str, members: Sequence[str]) -> dict[str, int]:
        """The epochs of those members that are in the group."""
        parameters = {"group_id": group_id, "members": list(members)}
        return dict(await self._db.rows(connection, Q.waiting_share_members, parameters))

    async def available(
        self,
        connection: Connection,
        group_id: str,
        partitions: Collection[tuple[UUID, int]],
        most: int,
        most_locks: int,
        now: Millis,
    ) -> tuple[dict[tuple[UUID, int], int], Millis | None]:
        """How many items these partitions of a group could give now, counted up to about `most`, and in how many ms
        time alone may give more.
        """
        columns = _columns(0, list(partitions))
        parameters = {**columns, "group_id": group_id, "most": most, "most_locks": most_locks, "now": now}
        rows = await self._db.rows(connection, Q.available_items, parameters)
        due = [due_in_ms for *_, due_in_ms in rows if due_in_ms is not None]
        return {(topic_id, number): count for topic_id, number, count, _ in rows}, min(due, default=None)


def ranges(held: Iterable[Any]) -> Ranges:
    """A multirange of offsets as lists of first and last ones."""
    return [(part.lower, part.upper - 1) for part in held]


def _columns(pk: int, partitions: Sequence[tuple[UUID, int]]) -> dict[str, Any]:
    return {
        "group": pk,
        "topics": [topic_id for topic_id, _ in partitions],
        "partitions": [number for _, number in partitions],
    }
