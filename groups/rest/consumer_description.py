"""A folded consumer group or share group as `GET /v1/groups/{group_id}` shows it.

Source: http-api.md 4; consumer.md 9.2 and 0.0 (an assignment contains what is pending
revocation). What Kafka keeps internal (member state, pending revocation, previous epoch) is shown too: it is why a
group is not stable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from groups.core.assignors import Assignor
from groups.core.consumer.target import preferred_assignor
from groups.core.model.consumer_group import ConsumerMember, EpochGroup, merged
from groups.core.model.types import Hold, Millis, TopicView
from groups.nodes.directory import CoordinatorNode
from groups.rest.description import NO_LABELS

PartitionsById = Mapping[str, Iterable[int]]


@dataclass(frozen=True, slots=True)
class TopicPartitionsDescription:
    """Partitions of one topic; `topic` is None if it was deleted."""

    topic_id: str
    topic: str | None
    partitions: list[int]


@dataclass(frozen=True, slots=True)
class ConsumerMemberDescription:
    """A member of a consumer group; instants are in ms."""

    member_id: str
    group_instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    member_type: str
    member_epoch: int
    previous_member_epoch: int
    state: str
    rebalance_timeout_ms: Millis
    subscribed_topic_names: list[str]
    subscribed_topic_regex: str
    server_assignor: str | None
    assignment: list[TopicPartitionsDescription]
    pending_revocation: list[TopicPartitionsDescription]
    target_assignment: list[TopicPartitionsDescription]
    session_expires_at: Millis | None
    rebalance_expires_at: Millis | None
    client_software_name: str | None = None
    client_software_version: str | None = None


@dataclass(frozen=True, slots=True)
class ConsumerGroupDescription:
    """A consumer group or share group; instants are in ms."""

    group_id: str
    type: str
    state: str
    state_since: Millis
    group_epoch: int
    assignment_epoch: int
    assignor: str
    coordinator: CoordinatorNode
    members: list[ConsumerMemberDescription]
    hold: Hold | None
    wake_at: Millis | None
    labels: Mapping[str, str]


def describe_consumer_group(
    group: EpochGroup,
    wake_at: Millis | None,
    coordinator: CoordinatorNode,
    topics: TopicView,
    assignors: Mapping[str, Assignor],
    hold: Hold | None = None,
    labels: Mapping[str, str] = NO_LABELS,
) -> ConsumerGroupDescription:
    """The description of a group; `assignors` are those it may use, the default first. `hold`: the one in force now."""
    return ConsumerGroupDescription(
        group_id=group.group_id,
        type=group.type,
        state=group.state.value,
        state_since=group.state_since,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor=preferred_assignor(group, assignors),
        coordinator=coordinator,
        members=[_member(group, member, topics) for member in group.members.values()],
        hold=hold,
        wake_at=wake_at,
        labels=labels,
    )


def _member(group: EpochGroup, member: ConsumerMember, topics: TopicView) -> ConsumerMemberDescription:
    session = group.timers.session.get(member.member_id)
    rebalance = group.timers.rebalance.get(member.member_id)
    return ConsumerMemberDescription(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_type="consumer" if member.classic is None else "classic",
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state.name.lower(),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        server_assignor=member.server_assignor,
        assignment=_by_topic(merged(member.assigned, member.pending_revocation), topics),
        pending_revocation=_by_topic(member.pending_revocation, topics),
        target_assignment=_by_topic(member.target, topics),
        session_expires_at=session.deadline if session else None,
        rebalance_expires_at=rebalance.deadline if rebalance else None,
    )


def _by_topic(partitions: PartitionsById, topics: TopicView) -> list[TopicPartitionsDescription]:
    found = []
    for topic_id, numbers in partitions.items():
        topic = topics.by_id.get(topic_id)
        found.append(TopicPartitionsDescription(topic_id, topic.name if topic else None, sorted(numbers)))
    return sorted(found, key=lambda entry: (entry.topic or "", entry.topic_id))
