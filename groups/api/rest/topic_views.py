"""Topics and watermarks (http-api.md 3).

Writes need `admin` on the topic, reads `describe`. A topic that the caller may not describe appears not to exist.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote_to_bytes

from drf_spectacular.utils import OpenApiExample
from rest_framework.request import Request
from rest_framework.response import Response

from groups.api.rest import topic_serializers as s
from groups.topics import (
    Topic,
    TopicService,
    Watermark,
    admit_creation,
    admit_deletion,
    admit_growth,
    check_topic_name,
    unknown_topic,
)
from kcoord.access.rights import Operation, Permission, Resource
from kcoord.control.rest.answers import shown
from kcoord.control.rest.schema import TOPIC_NAME, describe
from kcoord.control.rest.views import ControlView, path_name
from kcoord.protocol.errors import Error, ProtocolError

_NAMED = (Error.INVALID_TOPIC_EXCEPTION, Error.UNKNOWN_TOPIC_OR_PARTITION)
_WRITES = (*_NAMED, Error.TOPIC_AUTHORIZATION_FAILED)

_EXAMPLE = {"name": "orders", "partitions": 12, "labels": {"team": "billing"}}


def topic_name_of(raw: bytes) -> str:
    """The topic name that a raw path segment stands for. Raises INVALID_TOPIC_EXCEPTION."""
    name = unquote_to_bytes(raw).decode("utf-8", "replace")
    check_topic_name(name)
    return name


class NamedTopicView(ControlView):
    """A view of one topic; `self.name` is its valid name."""

    name: str

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the token, then the name, before anything else in the request."""
        super().initial(request, *args, **kwargs)
        self.name = path_name(request, 2, kwargs["name"], topic_name_of)

    def require(self, name: str = "") -> None:
        """Raise unless the caller has what the operation takes: 404 if it may not even see the topic."""
        try:
            super().require(self.name)
        except ProtocolError:
            if self.principal.may_topic(Operation.DESCRIBE, self.name):
                raise
            raise unknown_topic(self.name) from None


class TopicsView(ControlView):
    """`/v1/topics`."""

    @describe(
        "listTopics",
        "List topics",
        tag="topics",
        takes=Permission.DESCRIBE_TOPIC,
        query=s.TopicQuery,
        response=s.TopicPage,
    )
    def get(self, request: Request) -> Response:
        """A page of the topics that the caller may describe."""
        query = self.query(s.TopicQuery)
        visible = self.visible(Resource.TOPIC)
        page = self.service(lambda runtime: runtime.get(TopicService).search(**query, visible=visible))
        return self.listed(s.TopicPage, "topics", page)

    @describe(
        "createTopic",
        "Create a topic",
        tag="topics",
        takes=Permission.ADMIN_TOPIC,
        audit="topic.create",
        request=s.NewTopic,
        response=s.TopicView,
        status=201,
        errors=(
            Error.INVALID_TOPIC_EXCEPTION,
            Error.INVALID_PARTITIONS,
            Error.TOPIC_ALREADY_EXISTS,
            Error.TOPIC_AUTHORIZATION_FAILED,
        ),
        examples=[OpenApiExample("A topic", _EXAMPLE, request_only=True)],
    )
    def post(self, request: Request) -> Response:
        """Create a topic."""
        self.query()
        given = self.given(s.NewTopic)
        check_topic_name(given["name"])
        self.require(given["name"])
        self.service(lambda runtime: admit_creation(runtime, self.principal, given["partitions"]))
        topic = self.service(
            lambda runtime: runtime.get(TopicService).create(given["name"], given["partitions"], given["labels"])
        )
        return Response(shown(s.TopicView, topic), status=201, headers={"Location": f"/v1/topics/{topic.name}"})


class TopicDetailView(NamedTopicView):
    """`/v1/topics/{name}`."""

    @describe(
        "getTopic",
        "Get a topic",
        tag="topics",
        takes=Permission.DESCRIBE_TOPIC,
        path=[TOPIC_NAME],
        response=s.TopicView,
        errors=_NAMED,
    )
    def get(self, request: Request, name: str) -> Response:
        """One topic."""
        self.query()
        self.require()
        return _answer(self.service(lambda runtime: runtime.get(TopicService).get(self.name)))

    @describe(
        "updateTopic",
        "Raise the number of partitions, replace the labels",
        tag="topics",
        takes=Permission.ADMIN_TOPIC,
        audit="topic.update",
        path=[TOPIC_NAME],
        request=s.TopicChange,
        response=s.TopicView,
        errors=(*_WRITES, Error.INVALID_PARTITIONS),
        description="The number of partitions can only grow: partitions are never taken away.",
    )
    def patch(self, request: Request, name: str) -> Response:
        """Change a topic."""
        self.query()
        given = self.given(s.TopicChange)
        self.require()
        self.service(lambda runtime: admit_growth(runtime, self.principal, self.name, given.get("partitions")))
        return _answer(self.service(lambda runtime: runtime.get(TopicService).update(self.name, **given)))

    @describe(
        "deleteTopic",
        "Delete a topic with its watermarks and offsets",
        tag="topics",
        takes=Permission.ADMIN_TOPIC,
        audit="topic.delete",
        path=[TOPIC_NAME],
        response=None,
        status=204,
        errors=_WRITES,
        description="Also deletes the committed offsets of groups on it; each deletion is recorded in the commit "
        "history. A topic created later with the same name starts without offsets.",
    )
    def delete(self, request: Request, name: str) -> Response:
        """Delete a topic."""
        self.query()
        self.require()
        principal = self.principal.name
        self.service(lambda runtime: admit_deletion(runtime, self.principal, self.name))
        self.service(lambda runtime: runtime.get(TopicService).delete(self.name, principal=principal))
        return Response(status=204)


class WatermarksView(NamedTopicView):
    """`/v1/topics/{name}/watermarks`."""

    @describe(
        "listWatermarks",
        "List a topic's watermarks",
        tag="topics",
        takes=Permission.DESCRIBE_TOPIC,
        path=[TOPIC_NAME],
        query=s.WatermarkQuery,
        response=s.WatermarkPage,
        errors=_NAMED,
    )
    def get(self, request: Request, name: str) -> Response:
        """A page of watermarks."""
        query = self.query(s.WatermarkQuery)
        self.require()
        page = self.service(lambda runtime: runtime.get(TopicService).watermarks(self.name, **query))
        return self.listed(s.WatermarkPage, "partitions", page, name=self.name)

    @describe(
        "reportWatermarks",
        "Report log start and end offsets",
        tag="topics",
        takes=Permission.ADMIN_TOPIC,
        path=[TOPIC_NAME],
        request=s.WatermarkReport,
        response=s.Watermarks,
        errors=_WRITES,
        description="For producers and probes. A report is recorded completely or not at all. An end before the known "
        "one does not count: it is kept as lower_end_offset with who reported it, unless truncated is true. A topic "
        "that was deleted and created starts without watermarks.",
        examples=[
            OpenApiExample(
                "One partition",
                {"partitions": [{"partition": 0, "log_start_offset": 0, "log_end_offset": 4711}]},
                request_only=True,
            )
        ],
    )
    def post(self, request: Request, name: str) -> Response:
        """Record watermarks as of now."""
        self.query()
        given = self.given(s.WatermarkReport)
        self.require()
        watermarks = [Watermark(**item) for item in given["partitions"]]
        principal = self.principal.name
        recorded = self.service(
            lambda runtime: runtime.get(TopicService).set_watermarks(
                self.name, watermarks, truncated=given["truncated"], principal=principal
            )
        )
        return Response(shown(s.Watermarks, {"name": self.name, "partitions": recorded}))


def _answer(topic: Topic) -> Response:
    return Response(shown(s.TopicView, topic))
