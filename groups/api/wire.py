"""The JSON of the membership calls, field by field. Names are those of Kafka's message schemas in snake_case.

In heartbeats with epochs, absent means the same as null: unchanged, or not reported.

Source: http-api.md 2; consumer.md 2.1; share.md 2.1.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from groups.topics import MAX_PARTITIONS
from kcoord.door.http.types import (
    INT32_MAX,
    ClientId,
    Expiry,
    GroupInstanceId,
    Int32,
    MemberId,
    Millis32,
    ProtocolName,
    ProtocolType,
    ResultName,
    TopicId,
    TopicName,
)

MOST_ITEMS = 10_000
"""Entries that one request may list; most requests reach the body limit long before."""

Items = Meta(max_length=MOST_ITEMS)


class Request(Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """Base of what clients send: an unknown field is an error. Defaults: see `kcoord.door.http.body`."""


class Response(Struct, frozen=True):
    """Base of what clients get."""


class Subscription(Request, frozen=True):
    """What a member of protocol type `consumer` subscribes to (ConsumerProtocolSubscription)."""

    topics: Annotated[list[TopicName], Items]
    owned_partitions: dict[TopicName, list[Int32]] = {}
    generation_id: Int32 = -1
    rack_id: Annotated[str, Meta(max_length=255)] | None = None
    user_data: bytes | None = None


class JoinProtocol(Request, frozen=True):
    """One protocol of a member: give either `metadata` or, for protocol type `consumer`, `subscription`."""

    name: Annotated[str, Meta(min_length=1, max_length=255)]
    metadata: bytes | UnsetType = UNSET
    subscription: Subscription | UnsetType = UNSET


class JoinRequest(Request, frozen=True):
    """JoinGroup. `member_id` "" asks for a new id; without `rebalance_timeout_ms` the session timeout is used.

    Differs from Kafka: a negative `rebalance_timeout_ms` is refused; Kafka treats it as a deadline that has passed.
    """

    session_timeout_ms: Int32
    protocol_type: ProtocolType
    protocols: Annotated[list[JoinProtocol], Items]
    member_id: MemberId = ""
    rebalance_timeout_ms: Millis32 | None = None
    group_instance_id: GroupInstanceId | None = None
    client_id: ClientId = ""
    reason: str | None = None
    max_wait_ms: Millis32 = 30_000


class SubscriptionView(Response, frozen=True):
    """A decoded subscription."""

    topics: list[str]
    owned_partitions: dict[str, list[Int32]]
    generation_id: Int32
    rack_id: str | None
    user_data: bytes | None


class JoinedMember(Response, frozen=True):
    """A member as reported to the leader. `subscription` is present if `metadata` decodes as one."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes
    subscription: SubscriptionView | UnsetType = UNSET


class JoinResponse(Response, frozen=True):
    """A completed join. `members` is empty for followers."""

    generation_id: Int32
    protocol_type: str | None
    protocol_name: str | None
    leader: str
    skip_assignment: bool
    member_id: str
    members: list[JoinedMember]
    session_expires_at: Expiry | None
    error_code: Int32 = 0


class SyncAssignment(Request, frozen=True):
    """What the leader gives one member: either `assignment`, or `partitions` with `user_data`."""

    member_id: MemberId
    assignment: bytes | UnsetType = UNSET
    partitions: dict[TopicName, list[Int32]] | UnsetType = UNSET
    user_data: bytes | None = None


class SyncRequest(Request, frozen=True):
    """SyncGroup. Followers send no assignments."""

    member_id: MemberId
    generation_id: Int32
    protocol_type: ProtocolType | None
    protocol_name: ProtocolName | None
    group_instance_id: GroupInstanceId | None = None
    assignments: Annotated[list[SyncAssignment], Items] = []
    max_wait_ms: Millis32 = 30_000


class SyncResponse(Response, frozen=True):
    """The member's assignment. `partitions` is null if the bytes are not a ConsumerProtocol assignment."""

    protocol_type: str | None
    protocol_name: str | None
    assignment: bytes
    partitions: dict[str, list[Int32]] | None
    session_expires_at: Expiry | None
    error_code: Int32 = 0


class HeartbeatRequest(Request, frozen=True):
    """Heartbeat."""

    member_id: MemberId
    generation_id: Int32
    group_instance_id: GroupInstanceId | None = None


class HeartbeatResponse(Response, frozen=True):
    """The member is alive until `session_expires_at`."""

    session_expires_at: Expiry | None
    error_code: Int32 = 0


class GroupHeartbeat(Request, frozen=True):
    """A heartbeat that names its group."""

    group_id: str
    member_id: MemberId
    generation_id: Int32
    group_instance_id: GroupInstanceId | None = None


class ManyHeartbeatsRequest(Request, frozen=True):
    """Heartbeats of many members, in one request."""

    heartbeats: Annotated[list[GroupHeartbeat], Meta(max_length=1_000)]


class GroupHeartbeatResult(Response, frozen=True):
    """The result of one of many heartbeats."""

    group_id: str
    member_id: str
    error_code: Int32
    error: ResultName
    detail: str | None
    session_expires_at: Expiry | None


class ManyHeartbeatsResponse(Response, frozen=True):
    """One result for each heartbeat, in the order of the request."""

    heartbeats: list[GroupHeartbeatResult]
    error_code: Int32 = 0


class LeavingMember(Request, frozen=True):
    """A member that leaves. With a `group_instance_id` and no `member_id` it is removed by an operator."""

    member_id: MemberId = ""
    group_instance_id: GroupInstanceId | None = None
    reason: str | None = None


class LeaveRequest(Request, frozen=True):
    """LeaveGroup."""

    members: Annotated[list[LeavingMember], Items]


class LeftMember(Response, frozen=True):
    """The result for one entry, with the ids as requested."""

    member_id: str
    group_instance_id: str | None
    error_code: Int32
    error: ResultName


class LeaveResponse(Response, frozen=True):
    """A result for each entry, in the order of the request."""

    members: list[LeftMember]
    error_code: Int32 = 0


class AssignMember(Request, frozen=True):
    """A member as a join returned it; `subscription` is read if given, else `metadata`."""

    member_id: MemberId
    group_instance_id: GroupInstanceId | None = None
    metadata: bytes | UnsetType = UNSET
    subscription: Subscription | UnsetType = UNSET


class AssignRequest(Request, frozen=True):
    """A computation: nothing is stored."""

    assignor: Annotated[str, Meta(description="range, roundrobin, sticky or cooperative-sticky.")]
    members: Annotated[list[AssignMember], Items]


class MemberAssignment(Response, frozen=True):
    """The partitions of one member, by topic."""

    member_id: str
    partitions: dict[str, list[Int32]]


class AssignResponse(Response, frozen=True):
    """An assignment for each member, ready to send in a sync."""

    assignments: list[MemberAssignment]
    error_code: Int32 = 0


class Coordinator(Response, frozen=True):
    """Where a group is coordinated. `partition` is its coordinator partition."""

    key: str
    partition: Int32
    node_id: str
    host: str
    port: Int32
    url: str
    error_code: Int32
    error: ResultName


class CoordinatorResponse(Response, frozen=True):
    """A coordinator for each requested group id, in that order."""

    coordinators: list[Coordinator]
    error_code: Int32 = 0


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


class ShareHeartbeatRequest(Request, frozen=True):
    """ShareGroupHeartbeat, version 1. `member_epoch` 0 joins, -1 leaves.

    The member makes its `member_id`: any text of 1 to 36 characters. A `client_id` that is left out stays unchanged.
    """

    member_id: MemberId
    member_epoch: Int32
    rack_id: Annotated[str, Meta(max_length=255)] | None = None
    client_id: ClientId = ""
    subscribed_topic_names: Annotated[list[TopicName], Items] | None = None
