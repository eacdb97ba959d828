"""Reads and writes items of share groups, through the functions of the database that are their rules.

Source: share.md 7.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import lru_cache
from typing import Any
from uuid import UUID

from groups.store.rows import number_array, text_array
from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from kcoord.requests.current import Receipt
from kcoord.setting import Value
from offsets.core.types import Millis

Q = queries("offsets")

Ranges = list[tuple[int, int]]
"""First and last offsets, both included."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Settings of a group: how long a lock lasts, how often an item is delivered, how many are locked at once, and
    after how long one that is released is due again: `backoff_ms`, times `backoff_multiplier` with each attempt, at
    most `backoff_max_ms`. `starts`: where a partition begins, earliest or latest.
    """

    lock_ms: Millis = 30_000
    delivery_limit: int = 5
    most_locks: int = 2_000
    backoff_ms: Millis = 0
    backoff_max_ms: Millis = 60_000
    backoff_multiplier: int = 2
    starts: str = "earliest"


@dataclass(frozen=True, slots=True)
class ShareMember:
    """A group (`pk` its key) with one of its members, whose fields are None if there is no such group or member."""

    pk: int | None
    type: str | None
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


@lru_cache(maxsize=1_000)
def composite(rules: Rules) -> str:
    """The rules as a text of the type `kcoord.share_rules`."""
    return "(" + ",".join(str(value) for value in astuple(rules)) + ")"


@dataclass(frozen=True, slots=True, eq=False)
class ItemRequest:
    """One request: settle what is to be settled, then acquire up to `most` items for `lock_ms`.

    `settle`: the JSON of a list of settlements that are well formed; `locks`: those that they name. `member_epoch`
    None: it was checked before, or nothing is acquired. `lock_ms` 0: as long as the settings of the group say. `ends`:
    how far partitions go, by topic id and number. The service adds the `rules` and how old the request is (`receipt`).
    """

    group_id: str
    member_id: str
    settle: bytes | None = None
    locks: Collection[int] = ()
    member_epoch: int | None = None
    most: int = 0
    lock_ms: Millis = 0
    ends: Mapping[tuple[UUID, int], int] = field(default_factory=dict)
    rules: Rules = Rules()
    receipt: Receipt | None = None


@dataclass(frozen=True, slots=True)
class Met:
    """When requests were met, the locks among those that they settle that other transactions hold, and who asks."""

    now: Millis
    elsewhere: frozenset[int]
    members: list[ShareMember]


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

    async def meet(self, connection: Connection, requests: Sequence[ItemRequest]) -> Met:
        """Read whose requests these are, and lock the locks that they settle."""
        parameters = {
            "override": self._db.clock.override_ms,
            "locks": number_array(sorted({lock for request in requests for lock in request.locks})),
            "groups": text_array(request.group_id for request in requests),
            "members": text_array(request.member_id for request in requests),
        }
        rows = await self._db.rows(connection, Q.share_batch, parameters)
        now, database_ms, elsewhere = rows[0][:3]
        self._db.note_clock(connection, database_ms)
        return Met(now, frozenset(elsewhere), [ShareMember(*row[3:]) for row in rows])

    async def serve(
        self,
        connection: Connection,
        settling: Sequence[ItemRequest],
        asking: Mapping[int, Sequence[tuple[ItemRequest, Sequence[tuple[UUID, int]]]]],
        now: Millis,
    ) -> tuple[list[list[Outcome]], dict[int, list[list[Acquired] | None]]]:
        """Settle what members hold, entry by entry: for each request. Then acquire, for each group by its key:
        what each of these members gets of its partitions; None: nothing, because others work on them.
        """
        # All are sent before the first one is read.
        settled = await connection.execute(Q.settle_items.encode(), _settling(settling, now)) if settling else None
        given = [
            (pk, len(members), await connection.execute(Q.acquire_items.encode(), _acquiring(pk, members, now)))
            for pk, members in asking.items()
        ]
        outcomes: list[list[Outcome]] = [[] for _ in settling]
        if settled is not None:
            for number, why, held_by, until in await settled.fetchall():
                outcomes[number - 1].append(Outcome(why, held_by, until))
        return outcomes, {pk: _acquired(count, await cursor.fetchall()) for pk, count, cursor in given}

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
        parameters = {
            "topics": [topic_id for topic_id, _ in partitions],
            "partitions": [number for _, number in partitions],
            "group_id": group_id,
            "most": most,
            "most_locks": most_locks,
            "now": now,
        }
        rows = await self._db.rows(connection, Q.available_items, parameters)
        due = [due_in_ms for *_, due_in_ms in rows if due_in_ms is not None]
        return {(topic_id, number): count for topic_id, number, count, _ in rows}, min(due, default=None)


def _settling(settling: Sequence[ItemRequest], now: Millis) -> dict[str, Any]:
    """The parameters of `settle_items`."""
    return {
        "groups": text_array(request.group_id for request in settling),
        "members": text_array(request.member_id for request in settling),
        "items": text_array((request.settle or b"").decode() for request in settling),
        "rules": text_array(composite(request.rules) for request in settling),
        "now": now,
    }


def _acquiring(
    pk: int, asking: Sequence[tuple[ItemRequest, Sequence[tuple[UUID, int]]]], now: Millis
) -> dict[str, Any]:
    """The parameters of `acquire_items`."""
    places: dict[tuple[UUID, int], list[int]] = {}
    ends: dict[tuple[UUID, int], int] = {}
    for place, (request, partitions) in enumerate(asking, 1):
        for partition in partitions:
            places.setdefault(partition, []).append(place)
            if partition in request.ends:
                ends[partition] = max(request.ends[partition], ends.get(partition, 0))
    lines = random.sample(list(places), len(places))  # so that workers of several servers spread
    return {
        "group": pk,
        "members": text_array(request.member_id for request, _ in asking),
        "most": number_array(request.most for request, _ in asking),
        "lock_ms": number_array(request.lock_ms for request, _ in asking),
        "topics": text_array(str(topic_id) for topic_id, _ in lines),
        "partitions": number_array(number for _, number in lines),
        "places": text_array(number_array(places[line]) for line in lines),
        "ends": [ends.get(line) for line in lines],
        "rules": composite(asking[0][0].rules),
        "now": now,
    }


def _acquired(count: int, rows: Iterable[Sequence[Any]]) -> list[list[Acquired] | None]:
    """What each member got."""
    found: list[list[Acquired] | None] = [[] for _ in range(count)]
    for place, lock, topic_id, number, held, delivery_count, until, error in rows:
        given = found[place - 1]
        if lock is None or given is None:
            found[place - 1] = None
        else:
            given.append(Acquired(lock, topic_id, number, ranges(held), delivery_count, until, error))
    return found


def ranges(held: Iterable[Any]) -> Ranges:
    """A multirange of offsets as lists of first and last ones."""
    return [(part.lower, part.upper - 1) for part in held]
