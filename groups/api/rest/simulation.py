"""What would move if a group had other members, partitions, or another assignor (http-api.md 4)."""

from __future__ import annotations

from typing import Annotated

from drf_spectacular.utils import OpenApiExample
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from groups.readmodel import unknown_group
from groups.simulation import MOST_ADDED, MOST_PARTITIONS, Changes, Simulations
from kcoord.access.rights import Operation, Permission, Resource
from kcoord.control.rest.answers import Answer, From, Natural32, doc, shown
from kcoord.control.rest.fields import Number, StrictSerializer, Text
from kcoord.control.rest.schema import describe
from kcoord.control.rest.views import ControlView
from kcoord.door.http.paths import check_group_id
from kcoord.door.http.problem import invalid
from kcoord.protocol.errors import Error

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


_EXAMPLE = {"group_id": "example", "add_members": 2, "assignor": "sticky"}


class SimulateView(ControlView):
    """`/v1/assignments/simulate`."""

    @describe(
        "simulateAssignment",
        "Simulate the assignment of a group",
        tag="groups",
        takes=Permission.DESCRIBE_GROUP,
        request=SimulationRequest,
        response=SimulationView,
        errors=(
            Error.INVALID_GROUP_ID,
            Error.GROUP_ID_NOT_FOUND,
            Error.TOPIC_AUTHORIZATION_FAILED,
            Error.UNSUPPORTED_ASSIGNOR,
        ),
        description="Which partitions would change hands if the group had other members, topics other numbers of "
        "partitions, or another assignor. Nothing is changed. Topics that the caller may not describe are left out of "
        "a classic group; a consumer group that uses one is refused with TOPIC_AUTHORIZATION_FAILED. "
        "Racks of partitions are not considered; a custom assignor of members does not get its user data.",
        examples=[OpenApiExample("Two more members", _EXAMPLE, request_only=True)],
    )
    def post(self, request: Request) -> Response:
        """Simulate."""
        self.query()
        given = self.given(SimulationRequest)
        group_id = given["group_id"]
        check_group_id(group_id)
        if not self.principal.may_group(Operation.DESCRIBE, group_id):
            raise unknown_group(group_id)
        names = [topic["name"] for topic in given["topics"]]
        if len(set(names)) < len(names):
            raise invalid("topics: a topic is listed twice", "topics")
        changes = Changes(
            given["add_members"],
            tuple(given["remove_members"]),
            {topic["name"]: topic["partitions"] for topic in given["topics"]},
        )
        visible = self.visible(Resource.TOPIC)
        found = self.service(
            lambda runtime: runtime.get(Simulations).simulate(group_id, changes, given.get("assignor"), visible)
        )
        return Response(shown(SimulationView, {"group_id": group_id, "simulation": found}))
