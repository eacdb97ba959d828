"""The response of `GET /v1/groups/{group_id}` for a consumer group or a share group."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers

from groups import states
from groups.core.model.consumer_group import ConsumerGroupState, MemberState
from groups.models import Group
from groups.rest.consumer_description import TopicPartitionsDescription
from groups.rest.group_serializers import GroupCoordinator, GroupView, LabelsOfGroup
from groups.rest.operator_serializers import HoldView
from kcoord.rest.fields import Instant, Int32


class TopicPartitionsView(serializers.Serializer[Any]):
    """Partitions of one topic."""

    topic_id = serializers.CharField()
    topic = serializers.CharField(allow_null=True, help_text="null: the topic was deleted.")
    partitions = serializers.ListField(child=Int32(min_value=0))

    def to_representation(self, instance: TopicPartitionsDescription) -> dict[str, Any]:
        """As the fields say, without asking each: there may be hundreds of thousands."""
        return {"topic_id": instance.topic_id, "topic": instance.topic, "partitions": instance.partitions}


class ConsumerMemberView(serializers.Serializer[Any]):
    """A member of a consumer group."""

    member_id = serializers.CharField()
    group_instance_id = serializers.CharField(allow_null=True)
    rack_id = serializers.CharField(allow_null=True)
    client_id = serializers.CharField(allow_blank=True)
    client_host = serializers.CharField(allow_blank=True)
    member_type = serializers.ChoiceField(["consumer", "classic"], help_text="The protocol the member speaks.")
    member_epoch = Int32(help_text="-2: a static member that left temporarily.")
    previous_member_epoch = Int32()
    state = serializers.ChoiceField(
        [state.name.lower() for state in MemberState],
        help_text="stable; unrevoked_partitions: it must give up `pending_revocation` first; unreleased_partitions: it "
        "waits for partitions that others still have.",
    )
    rebalance_timeout_ms = Int32()
    subscribed_topic_names = serializers.ListField(child=serializers.CharField())
    subscribed_topic_regex = serializers.CharField(allow_blank=True)
    server_assignor = serializers.CharField(allow_null=True)
    assignment = TopicPartitionsView(many=True, help_text="What it owns, including what it must give up.")
    pending_revocation = TopicPartitionsView(
        many=True, help_text="The part of `assignment` that it must give up and has not given up yet."
    )
    target_assignment = TopicPartitionsView(many=True, help_text="Its target assignment.")
    session_expires_at = Instant(allow_null=True)
    rebalance_expires_at = Instant(
        allow_null=True, help_text="When it is removed unless it has given up `pending_revocation`."
    )
    client_software_name = serializers.CharField(
        allow_null=True, help_text="As a client of Kafka's protocol names itself; null: it did not, or uses HTTP."
    )
    client_software_version = serializers.CharField(allow_null=True)


class ConsumerGroupView(serializers.Serializer[Any]):
    """A group of the consumer protocol, its members, and what they wait for."""

    group_id = serializers.CharField()
    type = serializers.ChoiceField(Group.Type.values)
    state = serializers.ChoiceField([state.value for state in ConsumerGroupState])
    state_since = Instant()
    group_epoch = Int32(min_value=0)
    assignment_epoch = Int32(min_value=0, help_text="The group epoch the target was computed for.")
    assignor = serializers.CharField(help_text="The assignor that most members ask for, or the default.")
    coordinator = GroupCoordinator()
    members = ConsumerMemberView(many=True)
    hold = HoldView(allow_null=True, help_text="No member can join until it ends; null: the group is not held.")
    labels = LabelsOfGroup()
    wake_at = Instant(allow_null=True, help_text="When the next timer of the group is due.")


class ShareMemberView(serializers.Serializer[Any]):
    """A member of a share group."""

    member_id = serializers.CharField()
    rack_id = serializers.CharField(allow_null=True)
    client_id = serializers.CharField(allow_blank=True)
    client_host = serializers.CharField(allow_blank=True)
    member_epoch = Int32()
    previous_member_epoch = Int32()
    subscribed_topic_names = serializers.ListField(child=serializers.CharField())
    assignment = TopicPartitionsView(many=True, help_text="What it has; other members may have the same partitions.")
    target_assignment = TopicPartitionsView(many=True, help_text="What it has after its next heartbeat.")
    session_expires_at = Instant(allow_null=True)
    client_software_name = serializers.CharField(
        allow_null=True, help_text="As a client of Kafka's protocol names itself; null: it did not, or uses HTTP."
    )
    client_software_version = serializers.CharField(allow_null=True)


class ShareGroupView(serializers.Serializer[Any]):
    """A share group and its members."""

    group_id = serializers.CharField()
    type = serializers.ChoiceField(Group.Type.values)
    state = serializers.ChoiceField(states.SHARE_STATES)
    state_since = Instant()
    group_epoch = Int32(min_value=0)
    assignment_epoch = Int32(min_value=0, help_text="The group epoch the target was computed for.")
    assignor = serializers.CharField()
    coordinator = GroupCoordinator()
    members = ShareMemberView(many=True)
    hold = HoldView(allow_null=True, help_text="No member can join until it ends; null: the group is not held.")
    labels = LabelsOfGroup()
    wake_at = Instant(allow_null=True, help_text="When the next timer of the group is due.")


AnyGroupView = PolymorphicProxySerializer(
    component_name="GroupOfEitherProtocol",
    serializers={"classic": GroupView, "consumer": ConsumerGroupView, "share": ShareGroupView},
    resource_type_field_name="type",
)
"""A group of any type."""
