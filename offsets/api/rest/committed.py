"""Committed offsets of a group, for people and scripts (http-api.md 4)."""

from __future__ import annotations

from typing import Annotated

from rest_framework.request import Request
from rest_framework.response import Response

from groups.api.rest.group_views import NAMED, NamedGroupView
from kcoord.access.rights import Permission, Resource
from kcoord.control.rest.answers import Answer, Instant, Int32, Natural, Natural32, NextCursor, Offset, doc, one_of
from kcoord.control.rest.fields import PageQuery, Text
from kcoord.control.rest.schema import GROUP_ID, describe
from offsets.core.retention import Kept
from offsets.readmodel import OffsetReads


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


class GroupOffsetsView(NamedGroupView):
    """`/v1/groups/{group_id}/offsets`."""

    @describe(
        "listGroupOffsets",
        "Get the committed offsets and lag of a group",
        tag="offsets",
        takes=Permission.DESCRIBE_GROUP,
        path=[GROUP_ID],
        query=OffsetQuery,
        response=CommittedPage,
        errors=NAMED,
        description="Lag is computed from the watermarks that producers or probes report; it is never negative. "
        "Topics that the caller may not describe are left out.",
    )
    def get(self, request: Request, group_id: str) -> Response:
        """A page of committed offsets."""
        query = self.query(OffsetQuery)
        visible = self.visible(Resource.TOPIC)
        page = self.service(lambda runtime: runtime.get(OffsetReads).committed(self.group_id, **query, visible=visible))
        return self.listed(CommittedPage, "offsets", page, group_id=self.group_id)
