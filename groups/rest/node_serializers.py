"""Responses of the node endpoints."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from groups.models import CoordinatorNode, CoordinatorPartition, PartitionChange
from kcoord.rest.fields import Instant, Int32
from kcoord.setting_table import BY_NAME, ROUTING


class NodeView(serializers.Serializer[Any]):
    """One run of a server process as a coordinator node."""

    node_id = serializers.CharField(help_text="The server's name; it keeps it over restarts.")
    incarnation = serializers.IntegerField(help_text="Number of this run; a restart has a higher one.")
    url = serializers.CharField(
        allow_null=True, help_text="Where clients reach it; null: at the address by which their requests come."
    )
    version = serializers.CharField(help_text="The release it runs.")
    started_at = Instant(help_text="When it registered.")
    last_seen_at = Instant(help_text="When it last renewed its lease.")
    lease_expires_at = Instant(help_text="When its lease runs out, or did, unless it is renewed.")
    live = serializers.BooleanField(help_text="Its lease has not run out.")
    ended_at = Instant(allow_null=True, help_text="When it left, or was declared dead; null: it is registered.")
    end_reason = serializers.ChoiceField(
        CoordinatorNode.EndReason.values,
        allow_null=True,
        help_text="stopped: it left. lapsed: its lease ran out.",
    )
    partitions = serializers.ListField(
        child=Int32(min_value=0), help_text="The coordinator partitions that it owns, ascending."
    )


class NodeList(serializers.Serializer[Any]):
    """Nodes."""

    nodes = NodeView(many=True)
    routing = serializers.ChoiceField(
        BY_NAME[ROUTING].choices,
        help_text="any: every node answers for every group. owner: only the owner of a group's partition.",
    )


class CoordinatorPartitionView(serializers.Serializer[Any]):
    """A coordinator partition: the groups whose ids hash to its number."""

    partition = Int32(min_value=0)
    state = serializers.ChoiceField(
        CoordinatorPartition.State.values,
        help_text="CLOSED: no live node owns it, and no member of its groups expires.",
    )
    node_id = serializers.CharField(allow_null=True, help_text="The live node that owns it; null: none does.")
    epoch = serializers.IntegerField(help_text="Grows with every change of the owner.")
    gap = serializers.IntegerField(help_text="Grows whenever sessions could not be counted and started over.")
    since = Instant(help_text="Since when it has been in this state.")
    load_ms = serializers.IntegerField(
        allow_null=True, min_value=0, help_text="How long its last loading took, in ms; null: it was never loaded."
    )


class PartitionChangeView(serializers.Serializer[Any]):
    """A change of the owner of a coordinator partition."""

    at = Instant()
    partition = Int32(min_value=0)
    epoch = serializers.IntegerField(help_text="The epoch that began.")
    gap = serializers.IntegerField()
    from_node_id = serializers.CharField(allow_null=True, help_text="null: nobody owned it.")
    to_node_id = serializers.CharField(allow_null=True, help_text="null: nobody owns it.")
    reason = serializers.ChoiceField(
        PartitionChange.Reason.values,
        help_text="taken: nobody owned it. lapsed, stopped: how its owner ended. balanced: handed over to "
        "spread partitions evenly.",
    )
    gap_ms = serializers.IntegerField(
        allow_null=True, min_value=0, help_text="How long nobody owned it, in ms; null: it was handed over directly."
    )


class CoordinatorPartitionList(serializers.Serializer[Any]):
    """Partitions in order, and the changes of their owners, newest first."""

    partitions = CoordinatorPartitionView(many=True)
    changes = PartitionChangeView(many=True)
