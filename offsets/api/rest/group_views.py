"""Creating groups with start offsets (http-api.md 4).

Their list and their deletion are inherited; the list is read here, because it takes offsets and lag.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from drf_spectacular.utils import OpenApiExample
from rest_framework.request import Request
from rest_framework.response import Response

from groups.api.handlers import admit_group
from groups.api.rest import group_views
from kcoord.access.rights import Operation
from kcoord.control.rest.answers import shown
from kcoord.control.rest.schema import describe
from kcoord.door.http import paths
from kcoord.protocol.errors import Error, ProtocolError
from offsets.api.rest import group_serializers as s
from offsets.group_list import GroupListReads
from offsets.plans.creation import GroupCreation, NewGroup, StartOffset

_EXAMPLE = {
    "group_id": "billing",
    "topics": [{"name": "orders", "partitions": [{"partition": 0, "committed_offset": 4711}]}],
    "config": {"consumer.session.timeout.ms": 50_000},
}


class GroupsView(group_views.GroupsView):
    """`/v1/groups`."""

    group_list = GroupListReads

    @describe(
        "createGroup",
        "Create an empty group with start offsets and settings",
        tag="groups",
        audit="group.create",
        request=s.GroupToCreate,
        response=s.GroupCreated,
        status=201,
        errors=(
            Error.INVALID_GROUP_ID,
            Error.GROUP_AUTHORIZATION_FAILED,
            Error.TOPIC_AUTHORIZATION_FAILED,
            Error.UNKNOWN_TOPIC_OR_PARTITION,
            Error.OFFSET_METADATA_TOO_LARGE,
            Error.INVALID_CONFIG,
            Error.NON_EMPTY_GROUP,
        ),
        description="Creates all of it or nothing. Takes `alter-offsets` on the group, `read` on the topics and, for "
        "settings, `admin` on the group. A group that has members or offsets is refused, unless its "
        "offsets equal those of the request: sending the request again is safe.",
        examples=[OpenApiExample("A group", _EXAMPLE, request_only=True)],
    )
    def post(self, request: Request) -> Response:
        """Create a group."""
        self.query()
        given = self.given(s.GroupToCreate)
        group_id = paths.check_group_id(given["group_id"])
        topics, config = given.get("topics", ()), given.get("config", {})
        self.principal.require_group(Operation.ALTER_OFFSETS, group_id)
        if config:
            self.principal.require_group(Operation.ADMIN, group_id)
        self._require_topics(topics)
        new = NewGroup(group_id, _start_offsets(topics), config, self.principal.name)
        self.service(lambda runtime: admit_group(runtime, self.principal, group_id))
        made = self.service(lambda runtime: runtime.get(GroupCreation).create(new))
        content = {"group_id": group_id, "created": made.created, "topics": topics, "config": made.config}
        location = f"/v1/groups/{quote(group_id, safe='')}"
        return Response(shown(s.GroupCreated, content), status=201, headers={"Location": location})

    def _require_topics(self, topics: Sequence[Mapping[str, Any]]) -> None:
        """Checked before anything reveals whether they exist."""
        for index, topic in enumerate(topics):
            if not self.principal.may_topic(Operation.READ, topic["name"]):
                field = f"topics[{index}].name"
                raise ProtocolError(
                    Error.TOPIC_AUTHORIZATION_FAILED,
                    f"{field}: {self.principal.said} may not READ the topic",
                    fields={"field": field},
                )


def _start_offsets(topics: Sequence[Mapping[str, Any]]) -> list[StartOffset]:
    return [
        StartOffset(
            topic["name"],
            entry["partition"],
            entry["committed_offset"],
            entry["committed_metadata"],
            f"topics[{i}].partitions[{j}]",
        )
        for i, topic in enumerate(topics)
        for j, entry in enumerate(topic["partitions"])
    ]
