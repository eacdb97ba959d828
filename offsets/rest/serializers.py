"""What the offset endpoints of the control plane take and give."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from kcoord.rest_fields import Instant, NextCursor, Offset, PageQuery, Text


class OffsetQuery(PageQuery):
    """Parameters of the committed offsets of a group."""

    topic = Text(required=False, max_length=249, help_text="Only this topic.")


class CommittedPartitionView(serializers.Serializer[Any]):
    """What a group committed on a partition. Watermark and lag are null where no watermark was reported."""

    topic = serializers.CharField()
    partition = serializers.IntegerField(min_value=0)
    committed_offset = serializers.IntegerField(help_text="The next offset to read.")
    committed_leader_epoch = serializers.IntegerField(help_text="-1: not known.")
    metadata = serializers.CharField(allow_blank=True, help_text="What the committer wrote beside it.")
    committed_at = Instant()
    owner = serializers.CharField(
        allow_null=True, help_text="Member id of the partition's owner; null: nobody owns it."
    )
    log_start_offset = Offset(allow_null=True)
    log_end_offset = Offset(allow_null=True)
    lag = serializers.IntegerField(
        allow_null=True, min_value=0, help_text="Records of the log that are not read yet, as of `sampled_at`."
    )
    sampled_at = Instant(allow_null=True, help_text="When the watermark was reported.")


class CommittedPage(serializers.Serializer[Any]):
    """A page of committed offsets, by topic and partition."""

    group_id = serializers.CharField()
    offsets = CommittedPartitionView(many=True)
    next_cursor = NextCursor()
