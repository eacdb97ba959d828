"""Requests and responses of the lag endpoints."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from kcoord.rest.fields import Choice, Instant, Int32, Limit, NextCursor, Offset, PageQuery, Text
from kcoord.rest.paging import MAX_LIMIT
from offsets.core.lag import PartitionLag, TotalLag
from offsets.lag.service import GroupLag, PartitionPosition, TopicLag

TIME_LAG = "Age of the oldest unread record, interpolated from samples; 0: no unread records."
AT_LEAST = "Replaces `time_lag_ms` if that record is older than the samples: its age is at least this."


class LongLimit(Limit):
    """`limit` of a list that is usually read whole: the longest page unless a shorter one is requested."""

    def __init__(self) -> None:
        super().__init__()
        self.default = MAX_LIMIT


@extend_schema_field({"type": "boolean"})
class Flag(Choice):
    """A boolean in a query string."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(["true", "false"], **kwargs)


class LagQuery(PageQuery):
    """Parameters of the lag of a group."""

    topic = Text(required=False, max_length=249, help_text="Only this topic; totals include only this topic.")
    partitions = Flag(
        required=False,
        default="true",
        help_text="true: a page of partitions, under their topics; false: a page of topics without partitions.",
    )
    limit = LongLimit()


class LagHistoryQuery(PageQuery):
    """Parameters of the lag of a group over time."""

    topic = Text(required=False, max_length=249, help_text="Only this topic; without it, the total of all topics.")
    limit = LongLimit()

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """The declared fields, plus two that cannot be declared as attributes: `from` is a Python keyword."""
        return {
            **super().get_fields(),
            "from": Instant(required=False, help_text="Only samples at or after this instant."),
            "to": Instant(required=False, help_text="Only samples before this instant."),
        }


class Lag(serializers.IntegerField):
    """A number of records, or a duration."""

    def __init__(self, help_text: str) -> None:
        super().__init__(min_value=0, allow_null=True, help_text=help_text)


class PartitionLagView(serializers.Serializer[Any]):
    """Where a group is on a partition."""

    partition = Int32(min_value=0)
    committed_offset = Offset(allow_null=True, help_text="The next offset to read; null: none committed.")
    log_start_offset = Offset(allow_null=True, help_text="null: no watermark was reported.")
    log_end_offset = Offset(allow_null=True)
    lag = Lag(
        "Records of the log not read yet, as of `sampled_at`; null: no offset is committed (where reading would "
        "begin depends on the consumer), or no watermark was reported."
    )
    time_lag_ms = Lag(TIME_LAG)
    time_lag_at_least_ms = Lag(AT_LEAST)
    committed_at = Instant(allow_null=True)
    sampled_at = Instant(allow_null=True, help_text="When the watermark was reported.")
    stale = serializers.BooleanField(help_text="The watermark is older than `lag.stale.ms`.")
    member_id = serializers.CharField(allow_null=True, help_text="The member that owns it; null: no owner.")


class TotalLagView(serializers.Serializer[Any]):
    """The total of several partitions."""

    lag = Lag("Sum over partitions of known lag; null: unknown for all of them.")
    unknown_partitions = Int32(
        min_value=0, help_text="Partitions of unknown lag: no offset committed, or no watermark reported."
    )
    time_lag_ms = Lag(f"The largest of its partitions. {TIME_LAG}")
    time_lag_at_least_ms = Lag(AT_LEAST)
    sampled_at = Instant(allow_null=True, help_text="When the oldest watermark used was reported.")
    stale = serializers.BooleanField(help_text="That watermark is older than `lag.stale.ms`.")


class TopicLagView(TotalLagView):
    """A topic: its totals are those of all its partitions, `partitions` those on this page."""

    topic = serializers.CharField()
    read = serializers.BooleanField(
        help_text="A member subscribes to it or owns partitions of it. Always false for a group without members."
    )
    deleted = serializers.BooleanField(help_text="The topic was deleted; the group's offsets still exist.")
    partitions = PartitionLagView(many=True)


class GroupLagView(TotalLagView):
    """How far a group is behind: in total, and on each partition that it committed, owns or subscribes to."""

    group_id = serializers.CharField()
    topics = TopicLagView(many=True)
    next_cursor = NextCursor()


class LagSampleView(serializers.Serializer[Any]):
    """How far a group was behind at an instant."""

    at = Instant()
    topic = serializers.CharField(allow_null=True, help_text="null: the total of all topics.")
    lag = serializers.IntegerField(min_value=0, help_text="Sum over partitions of known lag.")
    time_lag_ms = Lag(f"The largest of its partitions; null: unknown for some of them. {TIME_LAG}")


class LagHistoryPage(serializers.Serializer[Any]):
    """Samples of lag, oldest first."""

    group_id = serializers.CharField()
    samples = LagSampleView(many=True)
    next_cursor = NextCursor()


def shown_group(group: GroupLag) -> dict[str, Any]:
    """The fields of `GroupLagView`."""
    return {
        "group_id": group.group_id,
        **_total(group.total),
        "topics": [_topic(topic) for topic in group.topics],
        "next_cursor": group.next_cursor,
    }


def _topic(topic: TopicLag) -> dict[str, Any]:
    return {
        "topic": topic.topic,
        "read": topic.read,
        "deleted": topic.deleted,
        **_total(topic.total),
        "partitions": [_partition(partition) for partition in topic.partitions],
    }


def _total(total: TotalLag) -> dict[str, Any]:
    return {**_lag(total), "unknown_partitions": total.unknown_partitions}


def _partition(found: PartitionPosition) -> dict[str, Any]:
    watermark = found.watermark
    return {
        "partition": found.partition,
        "committed_offset": found.committed_offset,
        "log_start_offset": None if watermark is None else watermark.log_start_offset,
        "log_end_offset": None if watermark is None else watermark.log_end_offset,
        **_lag(found.lag),
        "committed_at": found.committed_at,
        "member_id": found.member_id,
    }


def _lag(lag: TotalLag | PartitionLag) -> dict[str, Any]:
    return {
        "lag": lag.lag,
        "time_lag_ms": lag.time_lag.ms,
        "time_lag_at_least_ms": lag.time_lag.at_least_ms,
        "sampled_at": lag.sampled_at,
        "stale": lag.stale,
    }
