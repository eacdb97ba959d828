"""Requests and responses of the offset plan endpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from kcoord.control.rest.answers import Answer, From, Natural, Natural32, NextCursor, Offset, doc
from kcoord.control.rest.fields import (
    Choice,
    Flag,
    InstantInput,
    Number,
    OffsetInput,
    PageQuery,
    QueryFlag,
    StrictSerializer,
    Text,
)
from kcoord.resets.strategies import Strategy
from offsets.plans.summary import PlanSummary

INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1
MOST_TOPICS = 10_000
MOST_PARTITIONS = 100_000


@extend_schema_field(
    {
        "anyOf": [
            {"type": "integer", "minimum": -INT64_MAX, "maximum": INT64_MAX},
            {"type": "string", "pattern": "^-?[0-9]{1,18}$", "description": "The number in decimal."},
        ]
    },
    component_name="Shift",
)
class Shift(OffsetInput):
    """A number of records, forward or backward: a JSON number or a decimal string."""

    default_error_messages = {"invalid": "a shift is an integer, or a string with one in decimal"}

    def __init__(self, **kwargs: Any) -> None:
        Number.__init__(self, min_value=-INT64_MAX, max_value=INT64_MAX, **kwargs)


class TopicScope(StrictSerializer):
    """A topic of a plan."""

    name = Text(max_length=249)
    partitions = serializers.ListField(
        child=Number(min_value=0, max_value=INT32_MAX),
        required=False,
        allow_null=True,
        allow_empty=False,
        max_length=MOST_PARTITIONS,
        help_text="null or absent: all partitions of the topic.",
    )


class PlanRequest(StrictSerializer):
    """A reset to plan. Each strategy takes one parameter or none, and no other."""

    strategy = Choice([strategy.value for strategy in Strategy])
    topics = serializers.ListField(
        child=TopicScope(),
        required=False,
        allow_null=True,
        allow_empty=False,
        max_length=MOST_TOPICS,
        help_text="null or absent: every partition with a committed offset (for copy-from-group: of that group; for "
        "to-committed-at: also those with an offset at that instant). Not for from-file.",
    )
    offset = OffsetInput(required=False, allow_null=True, help_text="to-offset: the next offset to read.")
    by = Shift(required=False, allow_null=True, help_text="shift-by: records forwards, or backwards if negative.")
    at = InstantInput(required=False, allow_null=True, help_text="to-datetime, to-committed-at: the instant.")
    duration = Text(
        required=False, allow_null=True, max_length=50, help_text="by-duration: ISO 8601, such as P1DT2H, before now."
    )
    from_group = Text(
        required=False, allow_null=True, max_length=255, help_text="copy-from-group: the group whose offsets to take."
    )
    csv = Text(
        required=False,
        allow_null=True,
        help_text="from-file: lines `topic,partition,offset` or `group,topic,partition,offset`, without a header, as "
        "`kafka-consumer-groups --export` writes them. Lines of other groups are ignored.",
    )
    clamp = Flag(
        default=False,
        help_text="Keep new offsets within their logs for every strategy, also for to-current, copy-from-group and "
        "to-committed-at.",
    )
    keep_unknown = Flag(
        default=False,
        help_text="to-committed-at: leave out partitions of which nothing is known at the instant, instead of removing "
        "their offsets.",
    )
    reason = Text(
        required=False,
        allow_blank=True,
        default="",
        max_length=1_000,
        help_text="Why; recorded in the events of the group.",
    )


class PlanQuery(PageQuery):
    """Parameters of a list of plans."""


class LinesQuery(PageQuery):
    """Parameters of the lines of a plan."""

    risky = QueryFlag(
        default=False,
        help_text="Only partitions whose committed offset will be removed, or whose new offset is outside the log.",
    )


class PlannedPartition(Answer):
    """One partition of a plan. Lags are null if the log is unknown or nothing is committed."""

    topic: str
    partition: Natural32
    old_offset: Annotated[int | None, doc("Committed when the plan was made; null: none.")]
    new_offset: Annotated[int | None, From("new"), doc("null: it will be removed.")]
    requested_offset: Annotated[int | None, From("requested"), doc("Before it was clamped to the log.")]
    clamped: Annotated[bool, doc("The requested offset is outside the log.")]
    log_start_offset: Annotated[Offset | None, From("log.start")]
    log_end_offset: Annotated[Offset | None, From("log.end")]
    old_lag: Natural | None
    new_lag: Natural | None
    note: Annotated[str, doc("What to know before applying the plan; usually empty.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanView(PlanSummary):
    """A plan with a page of its lines, by topic and partition."""

    partitions: list[PlannedPartition]
    next_cursor: NextCursor


class PlanPage(Answer):
    """A page of plans, newest first."""

    group_id: str
    plans: list[PlanSummary]
    next_cursor: NextCursor
