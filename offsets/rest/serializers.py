"""Requests and responses of the control plane's offset endpoints."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from kcoord.rest.fields import Instant, Int32, NextCursor, Offset, PageQuery, Text
from offsets.core.retention import Kept


class OffsetQuery(PageQuery):
    """Parameters of the committed offsets of a group."""

    topic = Text(required=False, max_length=249, help_text="Only this topic.")


class CommittedPartitionView(serializers.Serializer[Any]):
    """What a group committed on a partition. Watermark and lag are null if no watermark was reported."""

    topic = serializers.CharField()
    partition = Int32(min_value=0)
    committed_offset = serializers.IntegerField(help_text="The next offset to read.")
    committed_leader_epoch = Int32(help_text="-1: unknown.")
    metadata = serializers.CharField(allow_blank=True, help_text="Metadata of the commit.")
    committed_at = Instant()
    owner = serializers.CharField(allow_null=True, help_text="Member id of the partition's owner; null: no owner.")
    log_start_offset = Offset(allow_null=True)
    log_end_offset = Offset(allow_null=True)
    lag = serializers.IntegerField(
        allow_null=True, min_value=0, help_text="Records of the log not read yet, as of `sampled_at`."
    )
    sampled_at = Instant(allow_null=True, help_text="When the watermark was reported.")
    expires_at = Instant(
        allow_null=True,
        help_text="The first run of retention after this instant removes it; null: it does not expire at present, "
        "see `kept`.",
    )
    kept = serializers.ChoiceField(
        [kept.value for kept in Kept],
        allow_null=True,
        help_text="Why it does not expire. pinned: an operator pinned it. rebalancing: the group is between "
        "two generations. members: the group has members that do not declare which topics they read. subscribed: a "
        "member reads the topic, or may read it. pending: an open transaction has a new offset for it.",
    )
    pinned = serializers.BooleanField(help_text="An operator pinned the topic or the group.")
    pending = serializers.BooleanField(help_text="An open transaction has an offset for the partition.")


class CommittedPage(serializers.Serializer[Any]):
    """A page of committed offsets, by topic and partition."""

    group_id = serializers.CharField()
    offsets = CommittedPartitionView(many=True)
    next_cursor = NextCursor()
