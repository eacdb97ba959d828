"""What would move if a group had other members, partitions, or another assignor (http-api.md 4)."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample
from rest_framework.request import Request
from rest_framework.response import Response

from groups.api.rest import simulation_serializers as s
from groups.readmodel import unknown_group
from groups.simulation import Changes, Simulations
from kcoord.access.rights import Operation, Resource
from kcoord.control.rest.answers import shown
from kcoord.control.rest.schema import describe
from kcoord.control.rest.views import ControlView
from kcoord.door.http.paths import check_group_id
from kcoord.door.http.problem import invalid
from kcoord.protocol.errors import Error

_EXAMPLE = {"group_id": "example", "add_members": 2, "assignor": "sticky"}


class SimulateView(ControlView):
    """`/v1/assignments/simulate`."""

    @describe(
        "simulateAssignment",
        "Simulate the assignment of a group",
        tag="groups",
        request=s.SimulationRequest,
        response=s.SimulationView,
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
        given = self.given(s.SimulationRequest)
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
        return Response(shown(s.SimulationView, {"group_id": group_id, "simulation": found}))
