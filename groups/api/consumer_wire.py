"""The JSON of the consumer heartbeat, field by field. Absent means the same as null: unchanged, or not reported.

Source: http-api.md 2; consumer.md 2.1.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from groups.api.wire import Items, Request, Response
from groups.catalogue.topics import MAX_PARTITIONS
from kcoord.http.types import (
    INT32_MAX,
    ClientId,
    Expiry,
    GroupInstanceId,
    Int32,
    MemberId,
    Millis32,
    TopicId,
    TopicName,
)

Partition = Annotated[int, Meta(ge=0, le=INT32_MAX)]


class OwnedTopic(Request, frozen=True):
    """Partitions of one topic that the member still has.

    The topic by `topic_id` or by `topic`, its name; if both are given the id counts, so that an entry of an
    `assignment` can be sent back unchanged. A name refers to the topic that has it now: only an id tells a topic from a
    deleted one of the same name.
    """

    partitions: Annotated[list[Partition], Meta(max_length=MAX_PARTITIONS)]
    topic_id: TopicId | None = None
    topic: TopicName | None = None


class ConsumerHeartbeatRequest(Request, frozen=True):
    """ConsumerGroupHeartbeat, version 1. `member_epoch` 0 joins, -1 leaves, -2 leaves for a while.

    A `client_id` that is left out stays unchanged; an empty `subscribed_topic_regex` removes the expression.

    Differs from Kafka: a `rebalance_timeout_ms` below -1 is refused, and so is an `instance_id` with characters that no
    other call accepts.
    """

    member_id: MemberId
    member_epoch: Int32
    instance_id: GroupInstanceId | None = None
    rack_id: Annotated[str, Meta(max_length=255)] | None = None
    client_id: ClientId = ""
    rebalance_timeout_ms: (
        Annotated[int, Meta(ge=-1, le=INT32_MAX, description="Milliseconds; -1: unchanged.")] | None
    ) = None
    subscribed_topic_names: Annotated[list[TopicName], Items] | None = None
    subscribed_topic_regex: Annotated[str, Meta(description="RE2 syntax, matched against whole names.")] | None = None
    server_assignor: Annotated[str, Meta(max_length=255)] | None = None
    topic_partitions: Annotated[list[OwnedTopic], Items] | None = None
    max_wait_ms: Millis32 = 0


class AssignedTopic(Response, frozen=True):
    """Partitions of one topic. `topic` is null if the topic was deleted or the caller may not describe it."""

    topic_id: str
    topic: str | None
    partitions: list[Int32]


class ConsumerAssignment(Response, frozen=True):
    """All partitions that the member may use."""

    topic_partitions: list[AssignedTopic]


class ConsumerHeartbeatResponse(Response, frozen=True):
    """`assignment` null: unchanged. `session_expires_at` null: the member has left."""

    member_id: str
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    session_expires_at: Expiry | None
    assignment: ConsumerAssignment | None
    error_code: Int32 = 0
