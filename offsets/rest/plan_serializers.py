"""Requests and responses of the offset plan endpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from kcoord.resets.strategies import PARAMETERS, Strategy
from kcoord.rest.fields import (
    Choice,
    Flag,
    Instant,
    Int32,
    NextCursor,
    Number,
    Offset,
    OffsetInput,
    PageQuery,
    QueryFlag,
    StrictSerializer,
    Text,
)
from offsets.core.plan_types import PlanState

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
    at = Instant(required=False, allow_null=True, help_text="to-datetime, to-committed-at: the instant.")
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


class PlannedPartition(serializers.Serializer[Any]):
    """One partition of a plan. Lags are null if the log is unknown or nothing is committed."""

    topic = serializers.CharField()
    partition = Int32(min_value=0)
    old_offset = serializers.IntegerField(allow_null=True, help_text="Committed when the plan was made; null: none.")
    new_offset = serializers.IntegerField(allow_null=True, source="new", help_text="null: it will be removed.")
    requested_offset = serializers.IntegerField(
        allow_null=True, source="requested", help_text="Before it was clamped to the log."
    )
    clamped = serializers.BooleanField(help_text="The requested offset is outside the log.")
    log_start_offset = Offset(allow_null=True, source="log.start")
    log_end_offset = Offset(allow_null=True, source="log.end")
    old_lag = serializers.IntegerField(allow_null=True, min_value=0)
    new_lag = serializers.IntegerField(allow_null=True, min_value=0)
    note = serializers.CharField(allow_blank=True, help_text="What to know before applying the plan; usually empty.")


class PlanTotals(serializers.Serializer[Any]):
    """A plan in numbers of partitions."""

    partitions = Int32(min_value=0)
    changed = Int32(min_value=0, help_text="Partitions whose offset changes.")
    clamped = Int32(min_value=0)
    removed = Int32(min_value=0, help_text="Partitions whose offset is removed.")
    unknown = Int32(
        min_value=0,
        allow_null=True,
        help_text="Of these, partitions of which nothing is known at the instant; null: it was not counted.",
    )
    outside = Int32(
        min_value=0,
        allow_null=True,
        help_text="Partitions whose new offset is outside the log; null: it was not counted.",
    )
    lag_change = serializers.IntegerField(
        allow_null=True, help_text="Change of lag in records, over partitions where both lags are known; null: none."
    )


class PlanParameters(serializers.Serializer[Any]):
    """The request behind the plan. Only the parameter of its strategy is included."""

    topics = serializers.ListField(
        child=serializers.CharField(), allow_null=True, help_text="null: all partitions with a committed offset."
    )
    offset = Offset(required=False)
    by = serializers.IntegerField(required=False)
    at = Instant(required=False, help_text="by-duration: the resulting instant.")
    duration = serializers.CharField(required=False)
    from_group = serializers.CharField(required=False)
    lines = serializers.IntegerField(required=False, min_value=1, help_text="from-file: number of lines of this group.")
    clamp = serializers.BooleanField(required=False, help_text="Only if true.")
    keep_unknown = serializers.BooleanField(required=False, help_text="Only if true.")

    def to_representation(self, instance: Mapping[str, Any]) -> dict[str, Any]:
        """Without missing fields."""
        shown: dict[str, Any] = super().to_representation({**dict.fromkeys(PARAMETERS), "lines": None, **instance})
        return {name: value for name, value in shown.items() if name in instance}


class PlanSummary(serializers.Serializer[Any]):
    """A plan without its lines."""

    id = serializers.UUIDField()
    group_id = serializers.CharField()
    strategy = serializers.ChoiceField([strategy.value for strategy in Strategy])
    parameters = PlanParameters()
    totals = PlanTotals()
    state = serializers.ChoiceField([state.value for state in PlanState])
    reason = serializers.CharField(allow_blank=True)
    created_at = Instant()
    created_by = serializers.CharField()
    approved_at = Instant(allow_null=True, help_text="null: nobody approved it; `plans.second.person` requires it.")
    approved_by = serializers.CharField(allow_null=True)
    applied_at = Instant(allow_null=True)
    applied_by = serializers.CharField(allow_null=True)
    undone_at = Instant(allow_null=True)
    undone_by = serializers.CharField(allow_null=True)


class PlanView(PlanSummary):
    """A plan with a page of its lines, by topic and partition."""

    partitions = PlannedPartition(many=True)
    next_cursor = NextCursor()


class PlanPage(serializers.Serializer[Any]):
    """A page of plans, newest first."""

    group_id = serializers.CharField()
    plans = PlanSummary(many=True)
    next_cursor = NextCursor()
