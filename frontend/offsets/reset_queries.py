"""Read models of resets: what can be ticked, where the partitions of a plan are, and how fast the group reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frontend.offsets.catching_up import Rate
from frontend.offsets.queries import HOUR_MS
from frontend.offsets.ticks import BOXES_OF_A_TOPIC, MOST_BOXES
from frontend.viewer import Viewer
from kcoord.database.pool import Connection, Database
from kcoord.sql import queries

Q = queries("frontend")

MOST_TOPICS = 100
"""Topics to tick; others are named in a field."""
MOST_RATED = 2_000
"""Partitions whose growth is looked up; with more of them it is not known."""


@dataclass(frozen=True, slots=True)
class TickTopic:
    """A topic on which the group has committed. `lag` None: not known; `topics`: how many there are."""

    topic: str
    partitions: int
    measured: int
    lag: int | None
    topics: int


@dataclass(frozen=True, slots=True)
class TickPartition:
    """A partition with a box of its own."""

    topic: str
    partition: int
    committed_offset: int
    lag: int | None


@dataclass(frozen=True, slots=True)
class TickList:
    """What can be ticked, the topics furthest behind first. Wide topics have no boxes for their partitions."""

    topics: Sequence[TickTopic]
    boxes: dict[str, list[TickPartition]]

    @property
    def more(self) -> int:
        """Topics that are not listed."""
        return self.topics[0].topics - len(self.topics) if self.topics else 0


@dataclass(frozen=True, slots=True)
class Progress:
    """Where the partitions of a plan are now; `ahead`: beyond the planned offset. Lags None: no log is known."""

    partitions: int
    as_planned: int
    ahead: int
    unmeasured: int
    planned_lag: int | None
    lag: int | None
    topics: Sequence[str]

    @property
    def elsewhere(self) -> int:
        """Neither where the plan put them nor beyond."""
        return self.partitions - self.as_planned - self.ahead


async def tick_list(db: Database, viewer: Viewer, group_id: str) -> TickList:
    """Topics and partitions of a group; empty if there is no such group for the viewer."""
    async with db.snapshot() as connection:
        pk = await _pk(db, connection, viewer, group_id)
        if pk is None:
            return TickList((), {})
        seen = {"pk": pk, **viewer.parameters()}
        topics = await db.records(connection, TickTopic, Q.reset_topics, {**seen, "limit": MOST_TOPICS})
        boxed, left = [], MOST_BOXES
        for topic in topics:
            if topic.partitions <= min(BOXES_OF_A_TOPIC, left):
                boxed.append(topic.topic)
                left -= topic.partitions
        parameters = {**seen, "topics": boxed, "limit": MOST_BOXES}
        found = await db.records(connection, TickPartition, Q.reset_partitions, parameters)
    boxes: dict[str, list[TickPartition]] = {topic: [] for topic in boxed}
    for one in found:
        boxes[one.topic].append(one)
    return TickList(topics, boxes)


async def progress(db: Database, viewer: Viewer, group_id: str, plan_id: str) -> tuple[Progress | None, Rate | None]:
    """Where the partitions of a plan are, and how fast the group has read their topics in the last hour."""
    async with db.snapshot() as connection:
        pk = await _pk(db, connection, viewer, group_id)
        asked = {"pk": pk or 0, "id": plan_id, **viewer.parameters()}
        found = await db.record(connection, Progress, Q.plan_progress, asked)
        if found is None or pk is None:
            return found, None
        since = await db.now_ms(connection) - HOUR_MS
        parameters = {"group_id": group_id, "pk": pk, "topics": found.topics, "since": since, "limit": MOST_RATED + 1}
        rate = await db.record(connection, Rate, Q.reading_rate, parameters)
    return found, None if rate is None or rate.partitions > MOST_RATED else rate


async def _pk(db: Database, connection: Connection, viewer: Viewer, group_id: str) -> int | None:
    if not viewer.sees_group(group_id):
        return None
    row = await db.row(connection, Q.group_pk, {"group_id": group_id})
    return None if row is None else int(row[0])
