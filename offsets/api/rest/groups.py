"""Creating groups with start offsets (http-api.md 4).

Their list and their deletion are inherited; the list is read here, because it takes offsets and lag.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote

from drf_spectacular.utils import OpenApiExample
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from groups.api.handlers import admit_group
from groups.api.rest import group_views
from groups.api.rest.configs import GroupConfigChange, SettingValue
from kcoord.access.rights import Operation, Permission
from kcoord.control.rest.answers import Answer, Natural, Natural32, doc, shown
from kcoord.control.rest.fields import Number, OffsetInput, StrictSerializer, Text
from kcoord.control.rest.schema import describe
from kcoord.door.http import paths
from kcoord.door.http.types import INT32_MAX
from kcoord.protocol.errors import Error, ProtocolError
from offsets.group_list import GroupListReads
from offsets.plans.creation import GroupCreation, NewGroup, StartOffset

MOST_ITEMS = 10_000
"""Topics of a request, and partitions of one of them: the same limits as for a commit."""


class StartPartition(StrictSerializer):
    """Where a group begins to read a partition."""

    partition = Number(min_value=0, max_value=INT32_MAX)
    committed_offset = OffsetInput(help_text="The first offset to read.")
    committed_metadata = Text(
        required=False, default="", allow_blank=True, help_text="Metadata to store with the offset."
    )


class StartTopic(StrictSerializer):
    """Where a group begins to read a topic."""

    name = Text(max_length=249)
    partitions = serializers.ListField(child=StartPartition(), max_length=MOST_ITEMS)


class GroupToCreate(StrictSerializer):
    """A group to create."""

    group_id = Text(allow_blank=True, help_text="1 to 255 characters, without '/' and control characters.")
    topics = serializers.ListField(
        child=StartTopic(),
        required=False,
        max_length=MOST_ITEMS,
        help_text="Start offsets. A group without offsets and members is removed by the next run of retention.",
    )
    config = GroupConfigChange(required=False, help_text="Settings of the group.")


class CreatedPartition(Answer):
    """Where the group begins to read a partition."""

    partition: Natural32
    committed_offset: Natural
    committed_metadata: str


class CreatedTopic(Answer):
    """Where the group begins to read a topic."""

    name: str
    partitions: list[CreatedPartition]


class GroupCreated(Answer):
    """A group as created."""

    group_id: str
    created: Annotated[bool, doc("false: the group already existed, without members or other offsets.")]
    topics: list[CreatedTopic]
    config: Annotated[dict[str, SettingValue | None], doc("The settings of the request.")]


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
        takes=Permission.ALTER_GROUP,
        audit="group.create",
        request=GroupToCreate,
        response=GroupCreated,
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
        given = self.given(GroupToCreate)
        group_id = paths.check_group_id(given["group_id"])
        topics, config = given.get("topics", ()), given.get("config", {})
        self.require(group_id)
        if config:
            self.principal.require_group(Operation.ADMIN, group_id)
        self._require_topics(topics)
        new = NewGroup(group_id, _start_offsets(topics), config, self.principal.name)
        self.service(lambda runtime: admit_group(runtime, self.principal, group_id))
        made = self.service(lambda runtime: runtime.get(GroupCreation).create(new))
        content = {"group_id": group_id, "created": made.created, "topics": topics, "config": made.config}
        location = f"/v1/groups/{quote(group_id, safe='')}"
        return Response(shown(GroupCreated, content), status=201, headers={"Location": location})

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
