"""Request and response of group creation."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from groups.rest.config_serializers import GroupConfigChange, SettingValue
from kcoord.http.types import INT32_MAX
from kcoord.rest.fields import Int32, Number, OffsetInput, StrictSerializer, Text

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


class CreatedPartition(serializers.Serializer[Any]):
    """Where the group begins to read a partition."""

    partition = Int32(min_value=0)
    committed_offset = serializers.IntegerField(min_value=0)
    committed_metadata = serializers.CharField(allow_blank=True)


class CreatedTopic(serializers.Serializer[Any]):
    """Where the group begins to read a topic."""

    name = serializers.CharField()
    partitions = CreatedPartition(many=True)


class GroupCreated(serializers.Serializer[Any]):
    """A group as created."""

    group_id = serializers.CharField()
    created = serializers.BooleanField(help_text="false: the group already existed, without members or other offsets.")
    topics = CreatedTopic(many=True)
    config = serializers.DictField(child=SettingValue(allow_null=True), help_text="The settings of the request.")
