"""Request and response of group creation."""

from __future__ import annotations

from typing import Annotated

from rest_framework import serializers

from groups.api.rest.config_serializers import GroupConfigChange, SettingValue
from kcoord.control.rest.answers import Answer, Natural, Natural32, doc
from kcoord.control.rest.fields import Number, OffsetInput, StrictSerializer, Text
from kcoord.door.http.types import INT32_MAX

MOST_ITEMS = 10_000
"""Topics of a request, and partitions of one of them: the same limits as for a commit."""


class StartPartition(StrictSerializer):
    """Where a group begins to read a partition."""

    partition = Number(min_value=0, max_value=INT32_MAX)
    committed_offset = OffsetInput(help_text="The first offset to read.")
    committed_metadata = Text(
        required=False, default="", allow_blank=True, help_text="Metadata to store with the offset."
    )


class StartTopic(StrictSerializer):
    """Where a group begins to read a topic."""

    name = Text(max_length=249)
    partitions = serializers.ListField(child=StartPartition(), max_length=MOST_ITEMS)


class GroupToCreate(StrictSerializer):
    """A group to create."""

    group_id = Text(allow_blank=True, help_text="1 to 255 characters, without '/' and control characters.")
    topics = serializers.ListField(
        child=StartTopic(),
        required=False,
        max_length=MOST_ITEMS,
        help_text="Start offsets. A group without offsets and members is removed by the next run of retention.",
    )
    config = GroupConfigChange(required=False, help_text="Settings of the group.")


class CreatedPartition(Answer):
    """Where the group begins to read a partition."""

    partition: Natural32
    committed_offset: Natural
    committed_metadata: str


class CreatedTopic(Answer):
    """Where the group begins to read a topic."""

    name: str
    partitions: list[CreatedPartition]


class GroupCreated(Answer):
    """A group as created."""

    group_id: str
    created: Annotated[bool, doc("false: the group already existed, without members or other offsets.")]
    topics: list[CreatedTopic]
    config: Annotated[dict[str, SettingValue | None], doc("The settings of the request.")]
