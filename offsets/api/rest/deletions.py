"""OffsetDelete: deleting committed offsets of a group (http-api.md 4; offsets.md 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from drf_spectacular.utils import OpenApiExample
from msgspec import UNSET
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from groups.api.rest.group_views import NAMED, NamedGroupView
from kcoord.access.rights import Operation, Permission, Principal
from kcoord.control.rest.answers import Answer, Int32, error_name, shown
from kcoord.control.rest.fields import Number, StrictSerializer, Text
from kcoord.control.rest.schema import GROUP_ID, describe
from kcoord.door.http.types import INT32_MAX
from kcoord.metrics import COMMANDS
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.api import wire
from offsets.api.handlers import Named, Topics
from offsets.commits.deletion import OffsetDeletion
from offsets.core.deletion import OffsetDelete, OffsetDeleteReply

MOST_ITEMS = 10_000
"""Topics of a request, and partitions of one of them: the same limits as for a commit."""


class PartitionNumber(Number):
    """A partition as named in a request: its result says whether it exists."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(min_value=-INT32_MAX - 1, max_value=INT32_MAX, **kwargs)


class TopicToDelete(StrictSerializer):
    """Partitions of a topic, given by `name` or by `topic_id`."""

    name = Text(required=False, max_length=249)
    topic_id = Text(required=False, max_length=36, help_text="UUID of the topic, instead of its name.")
    partitions = serializers.ListField(child=PartitionNumber(), max_length=MOST_ITEMS)


class OffsetsToDelete(StrictSerializer):
    """The body of OffsetDelete."""

    topics = serializers.ListField(child=TopicToDelete(), max_length=MOST_ITEMS)


class DeletedPartition(Answer):
    """The result for one partition. NONE does not mean that an offset existed."""

    partition: Int32
    error_code: Int32
    error: Annotated[
        str,
        error_name(
            "NONE, GROUP_SUBSCRIBED_TO_TOPIC, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID or "
            "TOPIC_AUTHORIZATION_FAILED.",
        ),
    ]


class DeletedTopic(Answer):
    """A topic as requested; its unknown fields are null."""

    name: str | None
    topic_id: str | None
    partitions: list[DeletedPartition]


class DeletedOffsets(Answer):
    """A result for each partition, in the order of the request."""

    topics: list[DeletedTopic]


_EXAMPLE = {"topics": [{"name": "orders", "partitions": [0, 1]}]}


class DeleteOffsetsView(NamedGroupView):
    """`/v1/groups/{group_id}/offsets/delete`."""

    @describe(
        "deleteOffsets",
        "Delete committed offsets of a group",
        tag="offsets",
        takes=Permission.DELETE_GROUP,
        audit="offsets.delete",
        path=[GROUP_ID],
        request=OffsetsToDelete,
        response=DeletedOffsets,
        errors=(*NAMED, Error.GROUP_AUTHORIZATION_FAILED, Error.NON_EMPTY_GROUP),
        description="Takes `delete` on the group and `read` on the topics. Offsets of topics that members of "
        "the group subscribe to are kept: GROUP_SUBSCRIBED_TO_TOPIC. An error of the group fails "
        "the whole request.",
        examples=[OpenApiExample("Two partitions", _EXAMPLE, request_only=True)],
    )
    def post(self, request: Request, group_id: str) -> Response:
        """Delete the offsets of some partitions."""
        self.query()
        self.require(self.group_id)
        entries = self.given(OffsetsToDelete)["topics"]
        principal = self.principal

        async def work(runtime: Runtime) -> tuple[Sequence[Named], OffsetDeleteReply]:
            topics = await Topics(runtime, principal).resolve([_entry(entry) for entry in entries])
            command = _command(self.group_id, principal, topics, entries)
            reply = await runtime.get(OffsetDeletion).delete(command)
            COMMANDS.labels("delete_offsets", reply.error.name).inc()
            return topics, reply

        topics, reply = self.service(work)
        if reply.error is not Error.NONE:
            raise ProtocolError(reply.error, reply.detail)
        return Response(shown(DeletedOffsets, _answer(topics, entries, reply)))


def _entry(given: Mapping[str, Any]) -> wire.FetchTopic:
    return wire.FetchTopic(given["partitions"], given.get("name", UNSET), given.get("topic_id", UNSET))


def _command(
    group_id: str, principal: Principal, topics: Sequence[Named], entries: Sequence[Mapping[str, Any]]
) -> OffsetDelete:
    partitions = tuple(
        (topic.name, partition)
        for topic, entry in zip(topics, entries, strict=True)
        if topic.name is not None
        for partition in entry["partitions"]
    )
    names = {name for name, _ in partitions}
    denied = frozenset(name for name in names if not principal.may_topic(Operation.READ, name))
    return OffsetDelete(group_id, partitions, denied, principal.name)


def _answer(topics: Sequence[Named], entries: Sequence[Mapping[str, Any]], reply: OffsetDeleteReply) -> dict[str, Any]:
    """Results in the order of the request; a partition named twice has its one result twice."""
    results = {(topic, partition): error for topic, partition, error in reply.results}

    def result(name: str | None, partition: int) -> dict[str, Any]:
        error = Error.UNKNOWN_TOPIC_ID if name is None else results[name, partition]
        return {"partition": partition, "error_code": error.code, "error": error.name}

    return {
        "topics": [
            {
                "name": topic.name,
                "topic_id": topic.topic_id,
                "partitions": [result(topic.name, partition) for partition in entry["partitions"]],
            }
            for topic, entry in zip(topics, entries, strict=True)
        ]
    }
