"""Members of a consumer group that still use the classic protocol: JoinGroup, SyncGroup and Heartbeat.

They do not wait for each other: a join is answered at once with the member's epoch as generation, and the coordinator
computes the assignment. A heartbeat tells them when to join again. Source: consumer.md 9.7.
"""

from __future__ import annotations

from dataclasses import replace

from groups.core.assignors import Partitions
from groups.core.consumer.heartbeat import advance, unreleased
from groups.core.consumer.members import (
    holder_of,
    is_new,
    replace_static_member,
    require_room,
    store_member,
    unknown_member,
)
from groups.core.consumer.target import RegexChange, update_target
from groups.core.model.commands import Heartbeat, JoinGroup, SyncGroup
from groups.core.model.consumer_group import ClassicMetadata, ConsumerMember, EpochGroup, MemberState, TimerKind
from groups.core.model.consumer_records import TimerArmed, TimerCancelled
from groups.core.model.replies import HeartbeatReply, JoinReply, SyncReply
from groups.core.model.turn import Turn
from groups.core.model.types import ConsumerProtocol, Millis, Subscription, TopicView
from kcoord.protocol.errors import Error, ProtocolError

PROTOCOL_TYPE = "consumer"


def join_member(turn: Turn, command: JoinGroup) -> JoinReply:
    """JoinGroup into a consumer group that has members. Raises `ProtocolError`.

    The member is checked before its metadata is read, and metadata that cannot be read is INCONSISTENT_GROUP_PROTOCOL.
    """
    require_room(turn, command.member_id)
    _check_protocols(turn, command)
    before = _joining_member(turn, command)
    subscription = _subscription(turn, command)
    joins = is_new(turn.consumer, before)
    updated = replace(
        before,
        instance_id=command.group_instance_id if command.group_instance_id is not None else before.instance_id,
        rack_id=subscription.rack_id if subscription.rack_id is not None else before.rack_id,
        client_id=command.client_id,
        client_host=command.client_host,
        rebalance_timeout_ms=command.rebalance_timeout_ms,
        subscribed_topic_names=frozenset(subscription.topics),
        subscribed_topic_regex="",
        topic_rights="",
        classic=ClassicMetadata(command.session_timeout_ms, command.protocols),
    )
    store_member(turn, before, updated)
    change = RegexChange.UPDATED_AND_RESOLVED if before.subscribed_topic_regex else RegexChange.NO_CHANGE
    owned = _by_id(subscription, turn.env.topics)
    advance(turn, updated.member_id, before, change, owned, joins=joins)
    deadline = _arm(turn, TimerKind.SESSION, updated.member_id, command.session_timeout_ms)
    _arm(turn, TimerKind.SYNC, updated.member_id, command.rebalance_timeout_ms)
    _cancel(turn, TimerKind.JOIN, updated.member_id)
    return JoinReply(
        Error.NONE,
        member_id=updated.member_id,
        generation_id=turn.consumer.members[updated.member_id].member_epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=command.protocols[0].name,
        session_deadline=deadline,
    )


def protocol_of(turn: Turn) -> ConsumerProtocol:
    """How subscriptions are read. INCONSISTENT_GROUP_PROTOCOL if they cannot be read."""
    if turn.env.consumer_protocol is None:
        raise _inconsistent("this server does not let members of the classic protocol join consumer groups")
    return turn.env.consumer_protocol


def _check_protocols(turn: Turn, command: JoinGroup) -> None:
    """Does the member share a protocol with all other classic members? Raises INCONSISTENT_GROUP_PROTOCOL."""
    members = turn.consumer.members
    names = [protocol.name for protocol in command.protocols]
    if command.protocol_type != PROTOCOL_TYPE or not names:
        raise _inconsistent(f"protocol_type is {command.protocol_type!r} with protocols {names}, not {PROTOCOL_TYPE!r}")
    if not any(members.classic_protocols.get(name, 0) == members.classic for name in names):
        raise _inconsistent(f"no protocol of {', '.join(names)} is supported by all classic members of the group")


def _subscription(turn: Turn, command: JoinGroup) -> Subscription:
    """What the member subscribes to. Raises INCONSISTENT_GROUP_PROTOCOL."""
    first = command.protocols[0]
    subscription = protocol_of(turn).decode_subscription(first.metadata)
    if subscription is None:
        raise _inconsistent(f"the metadata of protocol {first.name!r} is not a ConsumerProtocol subscription")
    return subscription


def _joining_member(turn: Turn, command: JoinGroup) -> ConsumerMember:
    group, member_id, instance_id = turn.consumer, command.member_id, command.group_instance_id
    if instance_id is None:
        if not member_id:
            fresh = turn.env.fresh_id(command.client_id)
            raise ProtocolError(
                Error.MEMBER_ID_REQUIRED, "join again with the member_id of this response", fields={"member_id": fresh}
            )
        return group.members.get(member_id) or ConsumerMember(member_id)
    if member_id:
        return holder_of(group, instance_id, member_id)
    member_id = turn.env.fresh_id(instance_id)
    holder = group.members.static.get(instance_id)
    if holder is None:
        return ConsumerMember(member_id)
    return replace_static_member(turn, group.members[holder], member_id)


def _by_id(subscription: Subscription, topics: TopicView) -> Partitions:
    """What the member reports as owned; a client that gives up everything before it joins reports nothing."""
    return {
        topics.by_name[name].topic_id: frozenset(partitions)
        for name, partitions in subscription.owned_partitions.items()
        if name in topics.by_name and partitions
    }


def sync_member(turn: Turn, command: SyncGroup) -> SyncReply:
    """SyncGroup: what the member has now. Raises `ProtocolError`."""
    group = turn.consumer
    member, metadata = _classic_member(group, command.member_id, command.group_instance_id)
    _check_generation(member, command.generation_id)
    for field, asked, current in (
        ("protocol_type", command.protocol_type, PROTOCOL_TYPE),
        ("protocol_name", command.protocol_name, metadata.protocols[0].name),
    ):
        if asked is not None and asked != current:
            raise _inconsistent(f"{field} is {asked!r}, the member joined with {current!r}")
    if group.assignment_epoch > member.member_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        detail = _ask_to_join(turn, member)
        return SyncReply(Error.REBALANCE_IN_PROGRESS, detail=detail)
    protocol, topics = protocol_of(turn), turn.env.topics
    subscription = protocol.decode_subscription(metadata.protocols[0].metadata)
    assigned = {
        topics.by_id[topic_id].name: tuple(partitions)
        for topic_id, partitions in member.assigned.items()
        if topic_id in topics.by_id
    }
    _cancel(turn, TimerKind.SYNC, member.member_id)
    return SyncReply(
        Error.NONE,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=metadata.protocols[0].name,
        assignment=protocol.encode_assignment(assigned, subscription.version if subscription is not None else 0),
        session_deadline=_arm(turn, TimerKind.SESSION, member.member_id, metadata.session_timeout_ms),
    )


def heartbeat_member(turn: Turn, command: Heartbeat) -> HeartbeatReply:
    """Heartbeat: keep the session, and tell the member when it must join again. Raises `ProtocolError`.

    While the group epoch is ahead of the target there is nothing to join for yet.
    """
    group = turn.consumer
    member, metadata = _classic_member(group, command.member_id, command.group_instance_id)
    _check_generation(member, command.generation_id)
    deadline = _arm(turn, TimerKind.SESSION, member.member_id, metadata.session_timeout_ms)
    released = member.state is MemberState.UNRELEASED_PARTITIONS and all(
        group.members.owner_of(topic_id, p) is None for topic_id, p in unreleased(member)
    )
    if member.member_epoch < group.assignment_epoch or member.state is MemberState.UNREVOKED_PARTITIONS or released:
        detail = _ask_to_join(turn, member)
        return HeartbeatReply(Error.REBALANCE_IN_PROGRESS, session_deadline=deadline, detail=detail)
    if group.members.classic == len(group.members):
        # Differs from Kafka: targets are computed by heartbeats of the consumer protocol, and no member sends them
        # here.
        update_target(turn)
    return HeartbeatReply(Error.NONE, session_deadline=deadline)


def _classic_member(
    group: EpochGroup, member_id: str, instance_id: str | None
) -> tuple[ConsumerMember, ClassicMetadata]:
    member = holder_of(group, instance_id, member_id) if instance_id is not None else group.members.get(member_id)
    if member is None or member.classic is None:
        raise unknown_member(member_id)
    return member, member.classic


def _check_generation(member: ConsumerMember, generation_id: int) -> None:
    if generation_id != member.member_epoch:
        raise ProtocolError(
            Error.ILLEGAL_GENERATION,
            f"member {member.member_id} is at generation {member.member_epoch}, not {generation_id}: join again",
        )


def _ask_to_join(turn: Turn, member: ConsumerMember) -> str:
    """The member must join within its rebalance timeout from the first notification; returns the error it gets."""
    if member.member_id not in turn.consumer.timers.join:
        _arm(turn, TimerKind.JOIN, member.member_id, member.rebalance_timeout_ms)
    return f"the group has a new assignment for member {member.member_id}: join again"


def _arm(turn: Turn, kind: TimerKind, member_id: str, delay: Millis) -> Millis:
    deadline = turn.now + max(delay, 0)
    turn.emit(TimerArmed(kind, member_id, deadline, turn.now))
    return deadline


def _cancel(turn: Turn, kind: TimerKind, member_id: str) -> None:
    if member_id in turn.consumer.timers.of(kind):
        turn.emit(TimerCancelled(kind, member_id, turn.now))


def _inconsistent(detail: str) -> ProtocolError:
    return ProtocolError(Error.INCONSISTENT_GROUP_PROTOCOL, detail)
