"""Reads the page of a topic: bounded by the page, whatever the number of partitions and groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from frontend.ui.rows import Millis
from frontend.ui.viewer import Viewer
from kcoord.database.pool import Database
from kcoord.sql import queries
from offsets.share.store import Standing, standing

Q = queries("frontend")

PARTITIONS = 50
"""Partitions of one page."""
GROUPS = 20
"""Groups of one page."""
DRAWN_MS, STEP_MS = 3_600_000, 60_000
"""How much of the past of the logs is drawn, and the distance of its points: a minute."""
FILE_ROWS = 5_000
"""Rows of a file that are read at once."""
GROUP_ROWS = 2_000
"""How many rows of owners and of offsets are searched for groups that the sampler has not noted."""


@dataclass(frozen=True, slots=True)
class TopicHeader:
    """The topic. `watermarks`: partitions with one; `oldest`, `newest` (ms) of them; `records` in the logs.

    `lower`: partitions with a reported end that does not count, the last at `lower_at` (ms), by `lower_by`.
    """

    pk: int
    name: str
    topic_id: str
    partitions: int
    labels: Mapping[str, str]
    created_at: Millis
    watermarks: int
    oldest: Millis | None
    newest: Millis | None
    records: int | None
    lower: int
    lower_at: Millis | None
    lower_by: Sequence[str]


@dataclass(frozen=True, slots=True)
class TopicPartition:
    """A partition with its watermark, if anybody has pushed one."""

    partition: int
    log_start_offset: int | None
    log_end_offset: int | None
    sampled_at: Millis | None


@dataclass(frozen=True, slots=True)
class TopicGroup:
    """A group on the topic. Lags are those of the last sample, `sampled_at` (ms); `total`: groups in all."""

    pk: int
    group_id: str
    type: str
    state: str
    held_until: Millis | None
    lag: int | None
    max_lag: int | None
    time_lag_ms: Millis | None
    sampled_at: Millis | None
    total: int
    owned: int
    committed: int


@dataclass(frozen=True, slots=True)
class Cell:
    """A group on a partition: what it committed, and the member that owns it, with its client and host if known; of a
    share group its `standing`.
    """

    pk: int
    partition: int
    committed_offset: int | None
    owner: str | None
    client_id: str | None = None
    client_host: str | None = None
    standing: Standing | None = None


@dataclass(frozen=True, slots=True)
class TopicPage:
    """What the page shows. `ends`: of the logs by partition, from DRAWN_MS ago until now in steps; None: not known."""

    now: Millis
    header: TopicHeader
    partitions: Sequence[TopicPartition]
    groups: Sequence[TopicGroup]
    cells: Sequence[Cell]
    ends: Mapping[int, Sequence[int | None]]


def _cell(
    *,
    pk: int,
    partition: int,
    committed_offset: int | None,
    owner: str | None,
    client_id: str | None,
    client_host: str | None,
) -> Cell:
    return Cell(pk, partition, committed_offset, owner, client_id, client_host)


async def topic_page(
    db: Database, viewer: Viewer, name: str, first: int, skip: int, old_ms: Millis
) -> TopicPage | None:
    """Partitions from `first` on, and groups after the first `skip`; None: there is no such topic for the viewer.

    `old_ms`: how far two reports of an end may be apart.

    Raises ProtocolError COORDINATOR_NOT_AVAILABLE.
    """
    if not viewer.sees_topic(name):
        return None
    async with db.snapshot() as connection:
        header = await db.record(connection, TopicHeader, Q.topic_header, {"name": name})
        if header is None:
            return None
        last = min(first + PARTITIONS, header.partitions) - 1
        span = {"pk": header.pk, "topic": name, "first": first, "last": last}
        partitions = await db.records(connection, TopicPartition, Q.topic_partitions, span)
        paged = {"topic": name, "rows": GROUP_ROWS, "limit": GROUPS, "skip": skip, **viewer.with_groups()}
        groups = await db.records(connection, TopicGroup, Q.topic_groups, paged)
        shown = {**span, "groups": [group.pk for group in groups], "all_topics": viewer.topics.unlimited}
        cells = await db.records(connection, _cell, Q.topic_cells, shown)
        queued = await standing(db, connection, name, [group.pk for group in groups], first, last)
        cells += [Cell(one.pk, one.partition, None, None, standing=one) for one in queued]
        now = await db.now_ms(connection)
        drawn = {
            "pk": header.pk, "partitions": [one.partition for one in partitions if one.sampled_at is not None],
            "first": now - DRAWN_MS, "step_ms": STEP_MS, "steps": DRAWN_MS // STEP_MS, "old_ms": old_ms,
        }  # fmt: skip
        ends: dict[int, Sequence[int | None]] = dict(await db.rows(connection, Q.topic_ends, drawn))
        return TopicPage(now, header, partitions, groups, cells, ends)


async def topic_partitions_from(
    db: Database, viewer: Viewer, name: str, first: int, limit: int = FILE_ROWS
) -> tuple[Sequence[TopicPartition], int | None]:
    """Partitions from `first` on, and the first of the next page; none: there is no such topic for the viewer.

    Raises ProtocolError COORDINATOR_NOT_AVAILABLE.
    """
    if not viewer.sees_topic(name):
        return (), None
    async with db.snapshot() as connection:
        header = await db.record(connection, TopicHeader, Q.topic_header, {"name": name})
        if header is None:
            return (), None
        last = min(first + limit, header.partitions) - 1
        span = {"pk": header.pk, "first": first, "last": last}
        found = await db.records(connection, TopicPartition, Q.topic_partitions, span)
    return found, last + 1 if last + 1 < header.partitions else None


async def topic_groups_from(
    db: Database, viewer: Viewer, name: str, after: str | None
) -> tuple[Sequence[TopicGroup], str | None]:
    """Groups on the topic by name, after one of them, and the last of these if there are more.

    Raises ProtocolError COORDINATOR_NOT_AVAILABLE.
    """
    if not viewer.sees_topic(name):
        return (), None
    asked = {"topic": name, "rows": GROUP_ROWS, "after": after, "limit": FILE_ROWS + 1, **viewer.with_groups()}
    async with db.snapshot() as connection:
        found = await db.records(connection, TopicGroup, Q.topic_groups_after, asked)
    shown = found[:FILE_ROWS]
    return shown, shown[-1].group_id if len(found) > FILE_ROWS else None
