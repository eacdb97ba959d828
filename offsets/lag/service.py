"""Read model of lag: how far a group is behind now, by partition, topic and in total, and how far it was.

Source: http-api.md 4; the rules are `offsets.core.lag` and `offsets.core.samples`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

from groups.core.model.consumer_group import ShareGroup
from groups.core.subscription import SubscribedTopics, subscribed_topics
from groups.engine.service import GroupService
from groups.readmodel import unknown_group
from kcoord.control.rest.answers import Instant, Natural, doc
from kcoord.database.paging import EVERYTHING, MAX_LIMIT, Page, Visible, cut, decode_cursor, encode_cursor
from kcoord.database.sql import queries
from kcoord.process import off_loop
from kcoord.process.runtime import Runtime
from offsets.core import lag as rules
from offsets.core.lag import PartitionLag, TotalLag, Watermark
from offsets.core.samples import TimeLag
from offsets.core.types import Millis
from offsets.lag.positions import lags

Q = queries("offsets")

TIME_LAG = "Age of the oldest unread record, interpolated from samples; 0: no unread records."


@dataclass(frozen=True, slots=True)
class PartitionPosition:
    """Where a group is on a partition. Nothing committed: offset and instant None. No watermark: log offsets None.

    `member_id`: the member that owns the partition, if any.
    """

    topic: str
    partition: int
    committed_offset: int | None
    committed_at: Millis | None
    member_id: str | None
    watermark: Watermark | None
    lag: PartitionLag


@dataclass(frozen=True, slots=True)
class TopicLag:
    """How far a group is behind on a topic, in total and on those of its partitions that are on the page.

    `read`: a member subscribes to it or owns partitions of it now; a group without members reads nothing. `deleted`:
    the topic no longer exists, so nothing is known about its log.
    """

    topic: str
    read: bool
    deleted: bool
    total: TotalLag
    partitions: Sequence[PartitionPosition] = ()


@dataclass(frozen=True, slots=True)
class GroupLag:
    """How far a group is behind in total, and a page of its topics and partitions."""

    group_id: str
    total: TotalLag
    topics: Sequence[TopicLag]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class LagSampleView:
    """How far a group was behind at an instant."""

    at: Instant
    topic: Annotated[str | None, doc("null: the total of all topics.")]
    lag: Annotated[Natural, doc("Sum over partitions of known lag.")]
    time_lag_ms: Annotated[
        Natural | None, doc(f"The largest of its partitions; null: unknown for some of them. {TIME_LAG}")
    ]


@dataclass(frozen=True, slots=True)
class _TopicRow:
    """A row of `lag_topics`. `lag` is a Decimal, the sum of any number of bigints."""

    topic: str
    owned: bool
    deleted: bool
    partitions: int
    unknown_partitions: int
    lag: Decimal | None
    time_lag_ms: Millis | None
    at_least_ms: Millis | None
    sampled_at: Millis | None


@dataclass(frozen=True, slots=True)
class _PartitionRow:
    """A row of `lag_partitions`: the watermark is either complete or None."""

    topic: str
    partition: int
    committed_offset: int | None
    committed_at: Millis | None
    member_id: str | None
    log_start_offset: Any
    log_end_offset: Any
    sampled_at: Any

    @property
    def watermark(self) -> Watermark | None:
        return _watermark(self)


@dataclass(frozen=True, slots=True)
class _SharePartitionRow:
    """A row of `share_lag_partitions`."""

    topic: str
    partition: int
    lag: int | None
    log_start_offset: Any
    log_end_offset: Any
    sampled_at: Any
    time_lag_ms: Millis | None
    at_least_ms: Millis | None

    @property
    def watermark(self) -> Watermark | None:
        return _watermark(self)


def _time_lag(row: _TopicRow | _SharePartitionRow) -> TimeLag:
    return rules.longest([TimeLag(row.time_lag_ms), TimeLag(at_least_ms=row.at_least_ms)])


def _watermark(row: _PartitionRow | _SharePartitionRow) -> Watermark | None:
    if row.sampled_at is None:
        return None
    return Watermark(row.log_start_offset, row.log_end_offset, row.sampled_at)


def _position_of(row: _PartitionRow, lag: PartitionLag) -> PartitionPosition:
    return PartitionPosition(
        row.topic, row.partition, row.committed_offset, row.committed_at, row.member_id, row.watermark, lag
    )


@dataclass(frozen=True, slots=True)
class _Named:
    """Parameters of the statements that find the partitions of a group."""

    group_id: str
    subscribed: list[str]
    topic: str | None
    visible: Visible

    def parameters(self) -> dict[str, Any]:
        return {
            "group_id": self.group_id,
            "subscribed": self.subscribed,
            "topic": self.topic,
            **self.visible.parameters(),
        }


class LagReads:
    """Lag now and over time. Methods may raise COORDINATOR_NOT_AVAILABLE.

    Both leave out topics that are not in `visible`, from lists and totals: they appear not to exist.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._groups = runtime.get(GroupService)
        self._stale_ms = runtime.config.int("lag.stale.ms")

    async def lag(
        self,
        group_id: str,
        *,
        topic: str | None = None,
        partitions: bool = True,
        cursor: str | None = None,
        limit: int = MAX_LIMIT,
        visible: Visible = EVERYTHING,
    ) -> GroupLag:
        """How far a group is behind on what it committed, owns or subscribes to; `topic`: only on this topic.

        The totals are those of all partitions; the page is of `limit` partitions by topic and number, or, without
        `partitions`, of that many topics. Raises GROUP_ID_NOT_FOUND, INVALID_REQUEST for a cursor of another list.
        """
        stored = await self._groups.describe(group_id, partitions=False)
        if stored.group is None:
            raise unknown_group(group_id)
        is_share = isinstance(stored.group, ShareGroup)
        subscribed = subscribed_topics(stored.group)
        named = _Named(group_id, sorted(subscribed.names or ()), topic, visible)
        after = _position(cursor, partitions)

        async with self._db.snapshot() as connection:
            now = await self._db.now_ms(connection)
            by_topic = Q.share_lag_topics if is_share else Q.lag_topics
            totals = await off_loop.records(connection, _TopicRow, by_topic, {**named.parameters(), "now": now})
            found: Sequence[_PartitionRow] = ()
            shared: Sequence[_SharePartitionRow] = ()
            page = {"after_topic": after[0], "after_partition": after[1], "limit": limit + 1, **named.parameters()}
            if partitions and is_share:
                shared = await self._db.records(
                    connection, _SharePartitionRow, Q.share_lag_partitions, {**page, "now": now}
                )
            elif partitions:
                found = await self._db.records(connection, _PartitionRow, Q.lag_partitions, page)
            behind = await lags(self._db, connection, found, now, self._stale_ms)

        def shown() -> GroupLag:
            topics = [self._topic(row, subscribed, now) for row in totals]
            total = rules.total(topic.total for topic in topics)
            if partitions:
                positions = [self._shared(row, now) for row in shared] or list(map(_position_of, found, behind))
                return _of_partitions(group_id, total, topics, positions, limit)
            return _of_topics(group_id, total, topics, after[0], limit)

        return await off_loop.run(len(totals), shown)

    def _topic(self, row: _TopicRow, subscribed: SubscribedTopics, now: Millis) -> TopicLag:
        total = TotalLag(
            row.partitions,
            row.unknown_partitions,
            None if row.lag is None else int(row.lag),
            _time_lag(row),
            row.sampled_at,
            row.sampled_at is not None and now - row.sampled_at > self._stale_ms,
        )
        return TopicLag(row.topic, row.topic in subscribed or row.owned, row.deleted, total)

    def _shared(self, row: _SharePartitionRow, now: Millis) -> PartitionPosition:
        watermark = row.watermark
        stale = watermark is not None and watermark.stale(now, self._stale_ms)
        lag = PartitionLag(row.lag, _time_lag(row), row.sampled_at, stale)
        return PartitionPosition(row.topic, row.partition, None, None, None, watermark, lag)

    async def history(
        self,
        group_id: str,
        *,
        topic: str | None = None,
        since: Millis | None = None,
        until: Millis | None = None,
        cursor: str | None = None,
        limit: int = MAX_LIMIT,
        visible: Visible = EVERYTHING,
    ) -> Page[LagSampleView]:
        """How far a group was behind, oldest first; also for a deleted group, as long as samples exist.

        `topic` None: the totals of all topics with a known lag. `since` inclusive, `until` exclusive (ms).
        Raises GROUP_ID_NOT_FOUND, INVALID_REQUEST for a cursor of another list.
        """
        after = -1 if cursor is None else decode_cursor(cursor, int)[0]
        parameters = {
            "group_id": group_id,
            "topic": topic,
            "all_topics": visible.unlimited,
            "since": since,
            "until": until,
            "after": after,
            "limit": limit + 1,
            **visible.parameters(),
        }
        async with self._db.connection() as connection:
            rows = await self._db.rows(connection, Q.lag_history, parameters)
            if not rows and not await self._db.value(connection, Q.group_has_lag, {"group_id": group_id}):
                raise unknown_group(group_id)
        found, more = cut([LagSampleView(at, topic, lag, time_lag_ms) for at, lag, time_lag_ms in rows], limit)
        return Page(found, encode_cursor(found[-1].at) if more else None)


def _position(cursor: str | None, partitions: bool) -> tuple[str, int]:
    if cursor is None:
        return "", -1
    if partitions:
        topic, partition = decode_cursor(cursor, str, int)
        return str(topic), int(partition)
    return str(decode_cursor(cursor, str)[0]), -1


def _of_partitions(
    group_id: str, total: TotalLag, topics: Sequence[TopicLag], found: Sequence[PartitionPosition], limit: int
) -> GroupLag:
    shown, more = cut(found, limit)
    by_topic: dict[str, list[PartitionPosition]] = {}
    for partition in shown:
        by_topic.setdefault(partition.topic, []).append(partition)
    page = [
        TopicLag(topic.topic, topic.read, topic.deleted, topic.total, by_topic[topic.topic])
        for topic in topics
        if topic.topic in by_topic
    ]
    return GroupLag(group_id, total, page, encode_cursor(shown[-1].topic, shown[-1].partition) if more else None)


def _of_topics(group_id: str, total: TotalLag, topics: Sequence[TopicLag], after: str, limit: int) -> GroupLag:
    following = sorted((topic for topic in topics if topic.topic > after), key=lambda topic: topic.topic)
    shown, more = cut(following, limit)
    return GroupLag(group_id, total, shown, encode_cursor(shown[-1].topic) if more else None)
