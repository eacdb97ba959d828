"""A folded consumer group or share group as `GET /v1/groups/{group_id}` shows it.

Source: http-api.md 4; consumer.md 9.2 and 0.0 (an assignment contains what is pending
revocation). What Kafka keeps internal (member state, pending revocation, previous epoch) is shown too: it is why a
group is not stable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

from groups import states
from groups.api.rest.description import NO_LABELS, AnyGroup, AnyMember, GroupView, hold_view
from groups.core.assignors import Assignor
from groups.core.consumer.target import preferred_assignor
from groups.core.model.consumer_group import ConsumerGroupState, ConsumerMember, EpochGroup, MemberState, merged
from groups.core.model.types import Hold, Millis, TopicView
from groups.nodes.directory import GroupCoordinator
from kcoord.control.rest.answers import Answer, Instant, Int32, Natural32, doc, one_kind_of, one_of

PartitionsById = Mapping[str, Iterable[int]]


class TopicPartitionsView(Answer):
    """Partitions of one topic."""

    topic_id: str
    topic: Annotated[str | None, doc("null: the topic was deleted.")]
    partitions: list[Natural32]


class ShareMemberView(AnyMember, kw_only=True):
    """A member of a share group."""

    rack_id: str | None
    member_epoch: Int32
    previous_member_epoch: Int32
    subscribed_topic_names: list[str]
    assignment: Annotated[list[TopicPartitionsView], doc("What it has; other members may have the same partitions.")]
    target_assignment: Annotated[list[TopicPartitionsView], doc("What it has after its next heartbeat.")]


class ConsumerMemberView(ShareMemberView, kw_only=True):
    """A member of a consumer group."""

    group_instance_id: str | None
    member_type: Annotated[str, one_of(["consumer", "classic"], "The protocol the member speaks.")]
    member_epoch: Annotated[Int32, doc("-2: a static member that left temporarily.")]
    state: Annotated[
        str,
        one_of(
            [state.name.lower() for state in MemberState],
            "stable; unrevoked_partitions: it must give up `pending_revocation` first; unreleased_partitions: it "
            "waits for partitions that others still have.",
        ),
    ]
    rebalance_timeout_ms: Int32
    subscribed_topic_regex: str
    server_assignor: str | None
    assignment: Annotated[list[TopicPartitionsView], doc("What it owns, including what it must give up.")]
    pending_revocation: Annotated[
        list[TopicPartitionsView],
        doc("The part of `assignment` that it must give up and has not given up yet."),
    ]
    target_assignment: Annotated[list[TopicPartitionsView], doc("Its target assignment.")]
    rebalance_expires_at: Annotated[
        Instant | None, doc("When it is removed unless it has given up `pending_revocation`.")
    ]


class ConsumerGroupView(AnyGroup, kw_only=True):
    """A group of the consumer protocol, its members, and what they wait for."""

    state: Annotated[str, one_of([state.value for state in ConsumerGroupState])]
    assignor: Annotated[str, doc("The assignor that most members ask for, or the default.")]
    group_epoch: Natural32
    assignment_epoch: Annotated[Natural32, doc("The group epoch the target was computed for.")]
    members: list[ConsumerMemberView]


class ShareGroupView(AnyGroup, kw_only=True):
    """A share group and its members."""

    state: Annotated[str, one_of(states.SHARE_STATES)]
    group_epoch: Natural32
    assignment_epoch: Annotated[Natural32, doc("The group epoch the target was computed for.")]
    assignor: str
    members: list[ShareMemberView]


KINDS: Mapping[str, type] = {
    states.CLASSIC: GroupView,
    states.CONSUMER: ConsumerGroupView,
    states.SHARE: ShareGroupView,
}
"""What declares the response, by the type of the group."""
ANY_GROUP = one_kind_of("GroupOfEitherProtocol", "type", KINDS)


def describe_consumer_group(
    group: EpochGroup,
    wake_at: Millis | None,
    coordinator: GroupCoordinator,
    topics: TopicView,
    assignors: Mapping[str, Assignor],
    hold: Hold | None = None,
    labels: Mapping[str, str] = NO_LABELS,
) -> ConsumerGroupView:
    """The description of a group; `assignors` are those it may use, the default first. `hold`: the one in force now."""
    return ConsumerGroupView(
        group_id=group.group_id,
        type=group.type,
        state=group.state.value,
        state_since=group.state_since,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor=preferred_assignor(group, assignors),
        coordinator=coordinator,
        members=[_member(group, member, topics) for member in group.members.values()],
        hold=hold_view(hold),
        wake_at=wake_at,
        labels=labels,
    )


def _member(group: EpochGroup, member: ConsumerMember, topics: TopicView) -> ConsumerMemberView:
    session = group.timers.session.get(member.member_id)
    rebalance = group.timers.rebalance.get(member.member_id)
    return ConsumerMemberView(
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


def _by_topic(partitions: PartitionsById, topics: TopicView) -> list[TopicPartitionsView]:
    found = []
    for topic_id, numbers in partitions.items():
        topic = topics.by_id.get(topic_id)
        found.append(TopicPartitionsView(topic_id, topic.name if topic else None, sorted(numbers)))
    return sorted(found, key=lambda entry: (entry.topic or "", entry.topic_id))
