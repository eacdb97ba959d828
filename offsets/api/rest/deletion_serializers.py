"""Request and response of OffsetDelete."""

from __future__ import annotations

from typing import Annotated, Any

from rest_framework import serializers

from kcoord.control.rest.answers import Answer, Int32, error_name
from kcoord.control.rest.fields import Number, StrictSerializer, Text
from kcoord.door.http.types import INT32_MAX

MOST_ITEMS = 10_000
"""Topics of a request, and partitions of one of them: the same limits as for a commit."""


class PartitionNumber(Number):
    """A partition as named in a request: its result says whether it exists."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(min_value=-INT32_MAX - 1, max_value=INT32_MAX, **kwargs)


class TopicToDelete(StrictSerializer):
    """Partitions of a topic, given by `name` or by `topic_id`."""

    name = Text(required=False, max_length=249)
    topic_id = Text(required=False, max_length=36, help_text="UUID of the topic, instead of its name.")
    partitions = serializers.ListField(child=PartitionNumber(), max_length=MOST_ITEMS)


class OffsetsToDelete(StrictSerializer):
    """The body of OffsetDelete."""

    topics = serializers.ListField(child=TopicToDelete(), max_length=MOST_ITEMS)


class DeletedPartition(Answer):
    """The result for one partition. NONE does not mean that an offset existed."""

    partition: Int32
    error_code: Int32
    error: Annotated[
        str,
        error_name(
            "NONE, GROUP_SUBSCRIBED_TO_TOPIC, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID or "
            "TOPIC_AUTHORIZATION_FAILED.",
        ),
    ]


class DeletedTopic(Answer):
    """A topic as requested; its unknown fields are null."""

    name: str | None
    topic_id: str | None
    partitions: list[DeletedPartition]


class DeletedOffsets(Answer):
    """A result for each partition, in the order of the request."""

    topics: list[DeletedTopic]
