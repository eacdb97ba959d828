"""Read model of committed offsets for the REST API: what a group committed, how far behind it is, when it expires."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from groups.readmodel import unknown_group
from kcoord.database.paging import DEFAULT_LIMIT, EVERYTHING, Page, Visible, cut, decode_cursor, encode_cursor
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from offsets.commits.retention.sweep import RetentionService
from offsets.core.lag import position
from offsets.core.retention import Kept, RetentionRule, StoredOffset
from offsets.core.types import Millis

Q = queries("offsets")


@dataclass(frozen=True, slots=True)
class CommittedPartition:
    """A committed offset, the next to read. `owner` is the member that owns the partition, if any.

    The watermark is None if none was ever reported for the partition of the current topic. Instants in ms.
    `expires_at`: when retention removes it, None if it does not, for the reason in `kept`. `pending`: an open
    transaction has an offset for the partition.
    """

    topic: str
    partition: int
    committed_offset: int
    committed_leader_epoch: int
    metadata: str
    committed_at: Millis
    owner: str | None
    log_start_offset: int | None
    log_end_offset: int | None
    sampled_at: Millis | None
    pending: bool
    pinned: bool
    expires_at: Millis | None
    kept: Kept | None

    @property
    def lag(self) -> int | None:
        """Remaining unread records; None if the watermark is unknown.

        A committed offset below the start of the log counts from the start, since deleted records cannot be read any
        more. Differs from Kafka: its tool shows a negative lag if the sample is older than the commit, this shows 0.
        """
        if self.log_start_offset is None or self.log_end_offset is None:
            return None
        return max(self.log_end_offset - position(self.committed_offset, self.log_start_offset), 0)


class OffsetReads:
    """Lists of committed offsets. Methods may raise COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._retention = runtime.get(RetentionService)

    async def committed(
        self,
        group_id: str,
        *,
        topic: str | None = None,
        cursor: str | None = None,
        limit: int = DEFAULT_LIMIT,
        visible: Visible = EVERYTHING,
    ) -> Page[CommittedPartition]:
        """A page of what the group committed on topics in `visible`, by topic and partition; `topic` None: on all.

        Raises GROUP_ID_NOT_FOUND, INVALID_REQUEST for a cursor of another list.
        """
        rule = await self._retention.rule(group_id)
        if rule is None:
            raise unknown_group(group_id)
        after_topic, after_partition = ("", -1) if cursor is None else decode_cursor(cursor, str, int)
        parameters = {
            "group_id": group_id,
            "topic": topic,
            "after_topic": after_topic,
            "after_partition": after_partition,
            "limit": limit + 1,
            **visible.parameters(),
        }
        async with self._db.connection() as connection:
            found = await self._db.records(connection, partial(_partition, rule), Q.committed_page, parameters)
        shown, more = cut(found, limit)
        return Page(shown, encode_cursor(shown[-1].topic, shown[-1].partition) if more else None)


def _partition(
    rule: RetentionRule,
    *,
    topic: str,
    partition: int,
    committed_at: Millis,
    expire_timestamp: Millis | None,
    pending: bool,
    **columns: Any,
) -> CommittedPartition:
    fate = rule.fate(StoredOffset(topic, partition, committed_at, expire_timestamp, pending))
    return CommittedPartition(
        topic=topic,
        partition=partition,
        committed_at=committed_at,
        pending=pending,
        pinned=topic in rule.pins,
        expires_at=fate.expires_at,
        kept=fate.kept,
        **columns,
    )
