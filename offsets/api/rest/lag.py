"""How far a group is behind, now and over time (http-api.md 4).

/metrics has lag by group and topic as last sampled (`offsets.metrics`); here it is by partition, and as of now.
"""

from __future__ import annotations

from typing import Annotated

from rest_framework.request import Request
from rest_framework.response import Response

from groups.api.rest.group_views import NAMED, NamedGroupView
from kcoord.access.rights import Permission, Resource
from kcoord.control.rest.answers import Answer, From, Instant, Natural, Natural32, NextCursor, Offset, doc, shown
from kcoord.control.rest.fields import Limit, PageQuery, PeriodQuery, QueryFlag, Text
from kcoord.control.rest.schema import GROUP_ID, describe
from kcoord.database.paging import MAX_LIMIT
from offsets.lag.service import TIME_LAG, LagReads, LagSampleView

AT_LEAST = "Replaces `time_lag_ms` if that record is older than the samples: its age is at least this."


class LongLimit(Limit):
    """`limit` of a list that is usually read whole: the longest page unless a shorter one is requested."""

    def __init__(self) -> None:
        super().__init__()
        self.default = MAX_LIMIT


class LagQuery(PageQuery):
    """Parameters of the lag of a group."""

    topic = Text(required=False, max_length=249, help_text="Only this topic; totals include only this topic.")
    partitions = QueryFlag(
        default=True,
        help_text="true: a page of partitions, under their topics; false: a page of topics without partitions.",
    )
    limit = LongLimit()


class LagHistoryQuery(PeriodQuery):
    """Parameters of the lag of a group over time."""

    of = "samples"
    topic = Text(required=False, max_length=249, help_text="Only this topic; without it, the total of all topics.")
    limit = LongLimit()


class PartitionLagView(Answer):
    """Where a group is on a partition."""

    partition: Natural32
    committed_offset: Annotated[Offset | None, doc("The next offset to read; null: none committed.")]
    log_start_offset: Annotated[
        Offset | None, From("watermark.log_start_offset"), doc("null: no watermark was reported.")
    ]
    log_end_offset: Annotated[Offset | None, From("watermark.log_end_offset")]
    lag: Annotated[
        Natural | None,
        From("lag.lag"),
        doc(
            "Records of the log not read yet, as of `sampled_at`; null: no offset is committed (where reading would "
            "begin depends on the consumer), or no watermark was reported."
        ),
    ]
    time_lag_ms: Annotated[Natural | None, From("lag.time_lag.ms"), doc(TIME_LAG)]
    time_lag_at_least_ms: Annotated[Natural | None, From("lag.time_lag.at_least_ms"), doc(AT_LEAST)]
    committed_at: Instant | None
    sampled_at: Annotated[Instant | None, From("lag.sampled_at"), doc("When the watermark was reported.")]
    stale: Annotated[bool, From("lag.stale"), doc("The watermark is older than `lag.stale.ms`.")]
    member_id: Annotated[str | None, doc("The member that owns it; null: no owner.")]


class TotalLagView(Answer):
    """The total of several partitions."""

    lag: Annotated[
        Natural | None, From("total.lag"), doc("Sum over partitions of known lag; null: unknown for all of them.")
    ]
    unknown_partitions: Annotated[
        Natural32,
        From("total.unknown_partitions"),
        doc("Partitions of unknown lag: no offset committed, or no watermark reported."),
    ]
    time_lag_ms: Annotated[Natural | None, From("total.time_lag.ms"), doc(f"The largest of its partitions. {TIME_LAG}")]
    time_lag_at_least_ms: Annotated[Natural | None, From("total.time_lag.at_least_ms"), doc(AT_LEAST)]
    sampled_at: Annotated[Instant | None, From("total.sampled_at"), doc("When the oldest watermark used was reported.")]
    stale: Annotated[bool, From("total.stale"), doc("That watermark is older than `lag.stale.ms`.")]


class TopicLagView(TotalLagView):
    """A topic: its totals are those of all its partitions, `partitions` those on this page."""

    topic: str
    read: Annotated[
        bool,
        doc("A member subscribes to it or owns partitions of it. Always false for a group without members."),
    ]
    deleted: Annotated[bool, doc("The topic was deleted; the group's offsets still exist.")]
    partitions: list[PartitionLagView]


class GroupLagView(TotalLagView):
    """How far a group is behind: in total, and on each partition that it committed, owns or subscribes to."""

    group_id: str
    topics: list[TopicLagView]
    next_cursor: NextCursor


class LagHistoryPage(Answer):
    """Samples of lag, oldest first."""

    group_id: str
    samples: list[LagSampleView]
    next_cursor: NextCursor


class GroupLagEndpoint(NamedGroupView):
    """`/v1/groups/{group_id}/lag`."""

    @describe(
        "describeGroupLag",
        "Get the lag of a group",
        tag="offsets",
        takes=Permission.DESCRIBE_GROUP,
        path=[GROUP_ID],
        query=LagQuery,
        response=GroupLagView,
        errors=NAMED,
        description="Every partition that the group has committed, owns or subscribes to, with totals by topic and "
        "overall. Lag is computed from the watermarks that producers or probes report; it is never "
        "negative, and records deleted from a log do not count. Totals include partitions that are not "
        "on the page. Topics that the caller may not describe are left out, also from totals.",
    )
    def get(self, request: Request, group_id: str) -> Response:
        """The lag of the group."""
        query = self.query(LagQuery)
        visible = self.visible(Resource.TOPIC)
        found = self.service(lambda runtime: runtime.get(LagReads).lag(self.group_id, **query, visible=visible))
        return Response(shown(GroupLagView, found))


class GroupLagHistoryView(NamedGroupView):
    """`/v1/groups/{group_id}/lag/history`."""

    @describe(
        "listGroupLag",
        "Get the past lag of a group, oldest first",
        tag="offsets",
        takes=Permission.DESCRIBE_GROUP,
        path=[GROUP_ID],
        query=LagHistoryQuery,
        response=LagHistoryPage,
        errors=NAMED,
        description="One sample every `lag.sample.interval.ms`. After three hours the first, the last and the "
        "largest of each quarter of an hour stay, after a day those of each hour. Samples outlive the group and are "
        "kept for `lag.sample.retention.days`. Without `topic` a sample is the total of all topics of known lag that "
        "the caller may describe; who may not describe all gets of these totals the first and last only.",
    )
    def get(self, request: Request, group_id: str) -> Response:
        """A page of samples."""
        query = self.query(LagHistoryQuery)
        visible = self.visible(Resource.TOPIC)
        page = self.service(lambda runtime: runtime.get(LagReads).history(self.group_id, **query, visible=visible))
        return self.listed(LagHistoryPage, "samples", page, group_id=self.group_id)
