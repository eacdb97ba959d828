"""The description of a group for a caller that may not describe all topics (http-api.md 7).

A consumer group that uses such a topic is not described at all (consumer.md 9.2). In the description of a classic group
such topics are left out.
Differs from Kafka: Kafka shows the bytes of classic members to every caller that may describe the group, whatever
topics they name.
"""

from __future__ import annotations

import dataclasses
from base64 import b64decode
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from groups.api.rest.consumer_description import ConsumerGroupView, ConsumerMemberView
from groups.api.rest.description import GroupView, MemberView, subscription_view
from kcoord.database.paging import Visible
from kcoord.protocol.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kcoord.protocol.errors import Error, ProtocolError

Partitions = Mapping[str, tuple[int, ...]]


def seen_consumer_group(described: ConsumerGroupView, visible: Visible) -> ConsumerGroupView:
    """The description of a consumer group all of whose topics are in `visible`, without partitions of deleted topics,
    which no longer have a name. Raises TOPIC_AUTHORIZATION_FAILED, which does not name the topic.
    """
    if visible.unlimited:
        return described
    if any(name not in visible for member in described.members for name in _named(member)):
        raise ProtocolError(
            Error.TOPIC_AUTHORIZATION_FAILED,
            f"members of group {described.group_id!r} use topics that the token may not DESCRIBE",
        )
    return replace(described, members=[_of_known_topics(member) for member in described.members])


def _named(member: ConsumerMemberView) -> Iterator[str]:
    yield from member.subscribed_topic_names
    for partitions in (member.assignment, member.pending_revocation, member.target_assignment):
        yield from (entry.topic for entry in partitions if entry.topic is not None)


def _of_known_topics(member: ConsumerMemberView) -> ConsumerMemberView:
    return replace(
        member,
        assignment=[entry for entry in member.assignment if entry.topic is not None],
        pending_revocation=[entry for entry in member.pending_revocation if entry.topic is not None],
        target_assignment=[entry for entry in member.target_assignment if entry.topic is not None],
    )


def seen_classic_group(described: GroupView, visible: Visible) -> GroupView:
    """The description of a classic group without topics that are not in `visible`.

    If the bytes of a member name such topics, or may do so, they are empty.
    """
    if visible.unlimited:
        return described
    return replace(described, members=tuple(_seen_member(member, visible) for member in described.members))


def _seen_member(member: MemberView, visible: Visible) -> MemberView:
    """Bytes are shown if they match what is shown beside them: other bytes may name topics, as the user data of Kafka's
    sticky assignors does.
    """
    partitions = None if member.partitions is None else _seen(member.partitions, visible)
    subscribed = None if member.subscription is None else decode_subscription(b64decode(member.metadata))
    subscription = None if subscribed is None else _seen_subscription(subscribed, visible)
    read = decode_assignment(b64decode(member.assignment))
    metadata = b"" if subscription is None else encode_subscription(subscription)
    assignment = b"" if read is None or partitions is None else encode_assignment(_plain(read, partitions))
    return replace(
        member,
        metadata=member.metadata if b64decode(member.metadata) == metadata else "",
        subscription=subscription_view(subscription),
        assignment=member.assignment if b64decode(member.assignment) == assignment else "",
        partitions=partitions,
    )


def _seen_subscription(subscription: Subscription, visible: Visible) -> Subscription:
    return dataclasses.replace(
        subscription,
        topics=tuple(topic for topic in subscription.topics if topic in visible),
        owned_partitions=_seen(subscription.owned_partitions, visible),
        user_data=None if subscription.user_data else subscription.user_data,
    )


def _plain(assignment: Assignment, partitions: Partitions) -> Assignment:
    user_data = None if assignment.user_data else assignment.user_data
    return dataclasses.replace(assignment, partitions=partitions, user_data=user_data)


def _seen(partitions: Partitions, visible: Visible) -> Partitions:
    return {topic: numbers for topic, numbers in partitions.items() if topic in visible}
