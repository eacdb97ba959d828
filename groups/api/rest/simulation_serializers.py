"""Request and response of the simulation endpoint."""

from __future__ import annotations

from typing import Annotated

from rest_framework import serializers

from groups.simulation import MOST_ADDED, MOST_PARTITIONS
from kcoord.control.rest.answers import Answer, From, Natural32, doc
from kcoord.control.rest.fields import Number, StrictSerializer, Text

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


class SimulatedMember(Answer):
    """A member, with numbers of partitions: null if what it subscribes to or owns cannot be read."""

    member_id: str
    before: Natural32 | None
    after: Natural32 | None
    gained: Natural32 | None
    lost: Natural32 | None
    is_new: Annotated[bool, doc("It exists in the simulation only.")]
    is_removed: Annotated[bool, doc("It does not exist in the simulation.")]


class SimulatedMove(Answer):
    """A partition whose owner changes."""

    topic: str
    partition: Natural32
    owner: Annotated[str | None, doc("null: nobody owns it now.")]
    new_owner: Annotated[str | None, doc("null: nobody would own it.")]


class SimulationView(Answer):
    """What would happen."""

    group_id: str
    assignor: Annotated[str, From("simulation.assignor")]
    partitions: Annotated[
        Natural32, From("simulation.total"), doc("Partitions of the topics that members subscribe to.")
    ]
    moved: Annotated[Natural32, From("simulation.moved"), doc("Partitions that a member would give up.")]
    members: Annotated[list[SimulatedMember], From("simulation.members")]
    moves: Annotated[list[SimulatedMove], From("simulation.moves")]
