"""Requests and responses of the hold and kick endpoints."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from kcoord.rest.fields import Instant, Int32, Number, StrictSerializer, Text

MAX_REASON = 1_000


class Reason(Text):
    """Why an operator does something."""

    def __init__(self) -> None:
        super().__init__(
            required=False,
            allow_blank=True,
            default="",
            max_length=MAX_REASON,
            help_text="Why; recorded in the events of the group.",
        )


class NewHold(StrictSerializer):
    """How long members may not join, and why."""

    duration_ms = Number(min_value=1, help_text="At most 3600000 (an hour).")
    reason = Reason()


class HoldView(serializers.Serializer[Any]):
    """A hold: no member may join before it ends."""

    until = Instant(help_text="When the hold ends by itself.")
    by = serializers.CharField(help_text="Name of the token or account.")
    reason = serializers.CharField(allow_blank=True)


class HeldGroup(serializers.Serializer[Any]):
    """The result of holding a group."""

    group_id = serializers.CharField()
    hold = HoldView()
    removed_members = Int32(min_value=0, help_text="Number of members that were removed.")


class Kick(StrictSerializer):
    """Why a member is removed."""

    reason = Reason()
