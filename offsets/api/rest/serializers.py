"""Requests and responses of the control plane's offset endpoints."""

from __future__ import annotations

from typing import Annotated

from kcoord.control.rest.answers import Answer, Instant, Int32, Natural, Natural32, NextCursor, Offset, doc, one_of
from kcoord.control.rest.fields import PageQuery, Text
from offsets.core.retention import Kept


class OffsetQuery(PageQuery):
    """Parameters of the committed offsets of a group."""

    topic = Text(required=False, max_length=249, help_text="Only this topic.")


class CommittedPartitionView(Answer):
    """What a group committed on a partition. Watermark and lag are null if no watermark was reported."""

    topic: str
    partition: Natural32
    committed_offset: Annotated[int, doc("The next offset to read.")]
    committed_leader_epoch: Annotated[Int32, doc("-1: unknown.")]
    metadata: Annotated[str, doc("Metadata of the commit.")]
    committed_at: Instant
    owner: Annotated[str | None, doc("Member id of the partition's owner; null: no owner.")]
    log_start_offset: Offset | None
    log_end_offset: Offset | None
    lag: Annotated[Natural | None, doc("Records of the log not read yet, as of `sampled_at`.")]
    sampled_at: Annotated[Instant | None, doc("When the watermark was reported.")]
    expires_at: Annotated[
        Instant | None,
        doc(
            "The first run of retention after this instant removes it; null: it does not expire at present, see `kept`."
        ),
    ]
    kept: Annotated[
        Annotated[str, one_of([kept.value for kept in Kept])] | None,
        doc(
            "Why it does not expire. pinned: an operator pinned it. rebalancing: the group is between two "
            "generations. members: the group has members that do not declare which topics they read. subscribed: a "
            "member "
            "reads the topic, or may read it. pending: an open transaction has a new offset for it."
        ),
    ]
    pinned: Annotated[bool, doc("An operator pinned the topic or the group.")]
    pending: Annotated[bool, doc("An open transaction has an offset for the partition.")]


class CommittedPage(Answer):
    """A page of committed offsets, by topic and partition."""

    group_id: str
    offsets: list[CommittedPartitionView]
    next_cursor: NextCursor
