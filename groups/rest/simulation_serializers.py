"""Request and response of the simulation endpoint."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from groups.simulation import MOST_ADDED, MOST_PARTITIONS
from kcoord.rest.fields import Int32, Number, StrictSerializer, Text

MOST_NAMED = 10_000


class SimulatedTopic(StrictSerializer):
    """A topic with another number of partitions."""

    name = Text(max_length=249)
    partitions = Number(min_value=1, max_value=MOST_PARTITIONS)


class SimulationRequest(StrictSerializer):
    """A group, and what would be different. Without any difference: what the assignor would do now."""

    group_id = Text(max_length=255)
    assignor = Text(
        required=False, allow_null=True, max_length=255, help_text="null or absent: the one that the group uses."
    )
    add_members = Number(
        required=False,
        default=0,
        min_value=0,
        max_value=MOST_ADDED,
        help_text="More members, with the subscription that most members have.",
    )
    remove_members = serializers.ListField(
        child=Text(max_length=300), required=False, default=list, max_length=MOST_NAMED, help_text="Ids of members."
    )
    topics = serializers.ListField(child=SimulatedTopic(), required=False, default=list, max_length=MOST_NAMED)


class SimulatedMember(serializers.Serializer[Any]):
    """A member, with numbers of partitions: null if what it subscribes to or owns cannot be read."""

    member_id = serializers.CharField()
    before = Int32(min_value=0, allow_null=True)
    after = Int32(min_value=0, allow_null=True)
    gained = Int32(min_value=0, allow_null=True)
    lost = Int32(min_value=0, allow_null=True)
    is_new = serializers.BooleanField(help_text="It exists in the simulation only.")
    is_removed = serializers.BooleanField(help_text="It does not exist in the simulation.")


class SimulatedMove(serializers.Serializer[Any]):
    """A partition whose owner changes."""

    topic = serializers.CharField()
    partition = Int32(min_value=0)
    owner = serializers.CharField(allow_null=True, help_text="null: nobody owns it now.")
    new_owner = serializers.CharField(allow_null=True, help_text="null: nobody would own it.")


class SimulationView(serializers.Serializer[Any]):
    """What would happen."""

    group_id = serializers.CharField()
    assignor = serializers.CharField()
    partitions = Int32(min_value=0, source="total", help_text="Partitions of the topics that members subscribe to.")
    moved = Int32(min_value=0, help_text="Partitions that a member would give up.")
    members = SimulatedMember(many=True)
    moves = SimulatedMove(many=True)
