"""Requests and responses of the topic endpoints."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from drf_spectacular.utils import extend_schema_field
from msgspec import Meta
from rest_framework import serializers

from groups.topics import MAX_NAME_LENGTH, MAX_PARTITIONS
from kcoord.control.rest.answers import Answer, Instant, Natural32, NextCursor, Offset, doc
from kcoord.control.rest.fields import Flag, Labels, Number, OffsetInput, PageQuery, StrictSerializer, Text
from kcoord.door.http.types import INT32_MAX

MAX_WATERMARKS = 10_000
"""Partitions of one report of watermarks."""


class TopicQuery(PageQuery):
    """Parameters of the list of topics."""

    q = Text(
        required=False, default="", allow_blank=True, max_length=MAX_NAME_LENGTH, help_text="Part of the topic name."
    )


@extend_schema_field({"type": "integer", "minimum": 1, "maximum": MAX_PARTITIONS})
class PartitionCount(Number):
    """A number of partitions. Its bounds are documented here and enforced by the service, with its own error."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_value=None, **kwargs)


@extend_schema_field({"type": "string", "minLength": 1, "maxLength": MAX_NAME_LENGTH, "pattern": "^[a-zA-Z0-9._-]+$"})
class TopicName(Text):
    """A topic's name. The service refuses invalid ones, with its own error."""


class NewTopic(StrictSerializer):
    """A topic to create."""

    name = TopicName(allow_blank=True, help_text="1 to 249 letters, digits, '.', '_' or '-'; not '.' or '..'.")
    partitions = PartitionCount()
    labels = Labels(required=False, default=dict)


class TopicChange(StrictSerializer):
    """What to change in a topic; omitted fields stay unchanged."""

    partitions = PartitionCount(required=False)
    labels = Labels(required=False, help_text="Replaces all labels.")


class TopicView(Answer):
    """A topic."""

    name: str
    topic_id: Annotated[UUID, doc("Distinguishes it from an earlier topic of the same name.")]
    partitions: Annotated[int, Meta(ge=1, le=INT32_MAX)]
    labels: dict[str, str]
    created_at: Instant


class TopicPage(Answer):
    """A page of topics, by name."""

    topics: list[TopicView]
    next_cursor: NextCursor


class WatermarkInput(StrictSerializer):
    """Where a partition's log begins and ends."""

    partition = Number(min_value=0, max_value=INT32_MAX)
    log_start_offset = OffsetInput(help_text="Offset of the first record still in the log.")
    log_end_offset = OffsetInput(help_text="Offset after the last record.")


class WatermarkReport(StrictSerializer):
    """Watermarks as of now."""

    partitions = serializers.ListField(child=WatermarkInput(), min_length=1, max_length=MAX_WATERMARKS)
    truncated = Flag(
        required=False,
        default=False,
        help_text="The logs were truncated. Without it an end before the known one does not count.",
    )


class WatermarkView(Answer):
    """Where a partition's log begins and ends, as last reported."""

    partition: Natural32
    log_start_offset: Offset
    log_end_offset: Offset
    sampled_at: Annotated[Instant, doc("When it was reported, on the database's clock.")]
    lower_end_offset: Annotated[
        Offset | None,
        doc("An earlier end that was reported since, without a truncation; it does not count."),
    ]
    lower_at: Annotated[Instant | None, doc("When that was reported.")]
    lower_by: Annotated[str, doc("Who reported it; empty: nobody did.")]


class Watermarks(Answer):
    """What was recorded."""

    name: Annotated[str, doc("Name of the topic.")]
    partitions: list[WatermarkView]


class WatermarkPage(Watermarks):
    """A page of watermarks, by partition. Partitions without a reported watermark are left out."""

    next_cursor: NextCursor


class WatermarkQuery(PageQuery):
    """Parameters of the list of watermarks."""
