"""Groups that change their protocol: the only module that knows the rules of both protocols.

A classic group continues as a consumer group when a member of the consumer protocol joins it; a consumer group
continues as a classic one when only classic members are left. Source: consumer.md 2.3 and 9.4 to 9.7;
KIP-848, "Migration".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from groups.core.classic.join import join_group
from groups.core.classic.members import full_session, sessions_of_all
from groups.core.classic.rebalance import prepare, release_converted, select_protocol, topics_of_generation
from groups.core.consumer.classic_members import PROTOCOL_TYPE, join_member, protocol_of
from groups.core.consumer.leaving import drop_members
from groups.core.consumer.leaving import remove_members as remove_without_conversion
from groups.core.consumer.members import unknown_group
from groups.core.consumer.target import metadata_hash
from groups.core.model.commands import ConsumerHeartbeat, JoinGroup
from groups.core.model.consumer_group import (
    Assigned,
    ClassicMetadata,
    ConsumerGroup,
    ConsumerMember,
    ConsumerMembers,
    EpochGroup,
    Timers,
    plain,
)
from groups.core.model.persistent import DeadlineMap, Timer
from groups.core.model.records import GroupConverted
from groups.core.model.replies import JoinReply, Parked
from groups.core.model.turn import Turn
from groups.core.model.types import (
    Cause,
    ClassicGroup,
    ClassicMember,
    ConsumerProtocol,
    GroupState,
    Members,
    Subscription,
    TopicView,
)
from kcoord.protocol.errors import Error, ProtocolError

# -- from classic to consumer


def upgrade(turn: Turn, command: ConsumerHeartbeat) -> None:
    """Make a classic group a consumer group for a member that joins it (consumer.md 2.3, rows 3 to 5, and 9.5).

    Raises `ProtocolError`: what is wrong with the request, COORDINATOR_NOT_AVAILABLE for a group that is being
    unloaded, or GROUP_ID_NOT_FOUND if the group stays classic.
    """
    group = turn.classic
    if group.state is GroupState.DEAD:
        raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, f"group {group.group_id!r} is being unloaded: try again")
    if command.member_epoch != 0:
        raise unknown_group(command.group_id)
    if group.state is GroupState.EMPTY:
        turn.emit(GroupConverted(ConsumerGroup(group.group_id, state_since=turn.now), turn.now))
        return
    protocol = turn.env.consumer_protocol
    reason = _why_not_upgrade(turn, group)
    if protocol is None or reason:
        raise ProtocolError(
            Error.GROUP_ID_NOT_FOUND,
            f"group {group.group_id!r} uses the classic protocol and cannot be converted: {reason}",
        )
    turn.emit(GroupConverted(_as_consumer_group(turn, group, protocol), turn.now))
    release_converted(turn, group)


def _why_not_upgrade(turn: Turn, group: ClassicGroup) -> str:
    """Why the group cannot continue as a consumer group, "" if it can."""
    protocol, config = turn.env.consumer_protocol, turn.config
    if not config.consumer_migration_policy.upgrades:
        return f"group.consumer.migration.policy is {config.consumer_migration_policy.value}"
    if group.protocol_type != PROTOCOL_TYPE or protocol is None:
        return f"its protocol type is {group.protocol_type!r}"
    if len(group.members) > config.consumer_max_size:
        return f"it has {len(group.members)} members, group.consumer.max.size is {config.consumer_max_size}"
    for member in group.members.values():
        if protocol.decode_subscription(_metadata(group, member)) is None:
            return f"the metadata of member {member.member_id} is not a ConsumerProtocol subscription"
        assignment = protocol.decode_assignment(member.assignment)
        if member.assignment and assignment is None:
            return f"the assignment of member {member.member_id} is not a ConsumerProtocol assignment"
        if assignment is not None and assignment.user_data:
            return f"the assignment of member {member.member_id} carries data of a custom assignor"
    return ""


def _as_consumer_group(turn: Turn, group: ClassicGroup, protocol: ConsumerProtocol) -> ConsumerGroup:
    """All members at the epoch of the last generation, with what they were assigned then."""
    owned: set[tuple[str, int]] = set()
    members = [
        _as_consumer_member(group, member, protocol, turn.env.topics, owned)
        for _, member in sorted(group.members.items())
    ]
    timers = {member_id: Timer(deadline, turn.now) for member_id, deadline in sessions_of_all(group, turn.now).items()}
    upgraded = ConsumerGroup(
        group_id=group.group_id,
        state_since=turn.now,
        group_epoch=group.generation_id,
        assignment_epoch=group.generation_id,
        metadata_version=turn.env.topics.version,
        members=ConsumerMembers(members),
        timers=Timers(session=DeadlineMap(timers)),
    )
    return replace(upgraded, metadata_hash=metadata_hash(upgraded, turn.env.topics))


def _as_consumer_member(
    group: ClassicGroup,
    member: ClassicMember,
    protocol: ConsumerProtocol,
    topics: TopicView,
    owned: set[tuple[str, int]],
) -> ConsumerMember:
    subscription = protocol.decode_subscription(_metadata(group, member))
    assert subscription is not None, "an upgrade is refused where a subscription cannot be read"
    assigned = _assigned(protocol, member.assignment, group.generation_id, topics, owned)
    return ConsumerMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        subscribed_topic_names=frozenset(subscription.topics),
        classic=ClassicMetadata(member.session_timeout_ms, member.protocols),
        member_epoch=group.generation_id,
        previous_member_epoch=group.generation_id,
        assigned=assigned,
        target=plain(assigned),
    )


def _assigned(
    protocol: ConsumerProtocol, data: bytes, epoch: int, topics: TopicView, owned: set[tuple[str, int]]
) -> Assigned:
    """What the bytes assign, for topics that exist.

    Differs from Kafka: a leader may have assigned a partition twice; the member with the smaller id keeps it.
    """
    assignment = protocol.decode_assignment(data)
    assigned: dict[str, dict[int, int]] = {}
    for name, partitions in assignment.partitions.items() if assignment is not None else ():
        topic = topics.by_name.get(name)
        for p in partitions if topic is not None else ():
            assert topic is not None
            if (topic.topic_id, p) not in owned and 0 <= p < topic.partitions:
                owned.add((topic.topic_id, p))
                assigned.setdefault(topic.topic_id, {})[p] = epoch
    return assigned


def _metadata(group: ClassicGroup, member: ClassicMember) -> bytes:
    """The member's metadata for the group's protocol; before one is chosen, for the member's preferred protocol."""
    listed = {protocol.name: protocol.metadata for protocol in reversed(member.protocols)}
    return listed.get(group.protocol_name or "", member.protocols[0].metadata)


# -- from consumer to classic


def join_consumer_group(turn: Turn, command: JoinGroup) -> JoinReply | Parked:
    """JoinGroup into a consumer group: an empty one becomes a classic group, under every policy. Raises
    `ProtocolError`.
    """
    group = turn.consumer
    if not group.members:
        return _join_empty_group(turn, command)
    holder = _holder(group, command)
    reply = join_member(turn, command)
    if holder is None or holder.classic is not None or not _may_downgrade(turn, turn.consumer, ()):
        return reply
    member = turn.consumer.members[reply.member_id]
    _downgrade(turn)
    if holder.subscribed_topic_names != member.subscribed_topic_names or holder.subscribed_topic_regex:
        prepare(turn, Cause.STATIC_MEMBER_REPLACED, reply.member_id, command.reason or "")
    # Differs from Kafka: Kafka answers generation 0 if the subscription changed (consumer.md 0.0 and 9.6, trigger B).
    return replace(reply, generation_id=turn.classic.generation_id)


def _join_empty_group(turn: Turn, command: JoinGroup) -> JoinReply | Parked:
    turn.emit(GroupConverted(ClassicGroup(turn.consumer.group_id, state_since=turn.now), turn.now))
    try:
        return join_group(turn, command)
    except ProtocolError as refusal:
        if refusal.error is not Error.MEMBER_ID_REQUIRED:
            raise
        # The id that was handed out is part of the classic group; any other refusal leaves the group as it was.
        return JoinReply(refusal.error, member_id=str(refusal.fields["member_id"]), detail=refusal.detail)


def _holder(group: EpochGroup, command: JoinGroup) -> ConsumerMember | None:
    """The static member that this join replaces."""
    member_id = group.members.static.get(command.group_instance_id or "")
    return group.members[member_id] if member_id is not None else None


def remove_members(turn: Turn, member_ids: Sequence[str], cause: Cause, *, by: str = "", detail: str = "") -> None:
    """consumer.md 3.5: remove members; where only classic members are left, the group continues as a classic group and
    rebalances (consumer.md 9.6, trigger A). `by`: the principal that kicks them; `detail`: its reason.
    """
    if _may_downgrade(turn, turn.consumer, member_ids):
        drop_members(turn, member_ids, cause, by=by, detail=detail)
        _downgrade(turn)
        prepare(turn, cause, member_ids[0], detail)
    else:
        remove_without_conversion(turn, member_ids, cause, by=by, detail=detail)


def _may_downgrade(turn: Turn, group: EpochGroup, leaving: Sequence[str]) -> bool:
    """consumer.md 9.6: would the removal of `leaving`, none of them classic, leave only classic members?"""
    size = len(group.members) - len(leaving)
    return (
        turn.config.consumer_migration_policy.downgrades
        and turn.env.consumer_protocol is not None
        and 0 < size == group.members.classic
        and size <= turn.config.max_size
        and all(group.members[member_id].classic is None for member_id in leaving)
    )


def _downgrade(turn: Turn) -> None:
    """Make a group of classic members a classic group: Stable, with the target as the assignment."""
    group, protocol = turn.consumer, protocol_of(turn)
    members = Members(
        _as_classic_member(turn, member, member.classic, protocol)
        for member in group.members.values()
        if member.classic is not None
    )
    downgraded = ClassicGroup(
        group_id=group.group_id,
        state=GroupState.STABLE,
        previous_state=GroupState.COMPLETING_REBALANCE,
        state_since=turn.now,
        generation_id=group.group_epoch,
        protocol_type=PROTOCOL_TYPE,
        leader_id=next(iter(members)),
        members=members,
    )
    name = select_protocol(downgraded, members[next(iter(members))])
    topics = topics_of_generation(downgraded, name, protocol)
    turn.emit(GroupConverted(replace(downgraded, protocol_name=name, generation_topics=topics), turn.now))


def _as_classic_member(
    turn: Turn, member: ConsumerMember, metadata: ClassicMetadata, protocol: ConsumerProtocol
) -> ClassicMember:
    subscription = protocol.decode_subscription(metadata.protocols[0].metadata)
    return ClassicMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=metadata.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocol_type=PROTOCOL_TYPE,
        protocols=metadata.protocols,
        assignment=protocol.encode_assignment(_by_name(member, turn.env.topics), _version(subscription)),
        is_new=False,
        session_deadline=full_session(turn.now, metadata.session_timeout_ms),
        last_heartbeat_at=turn.now,
    )


def _by_name(member: ConsumerMember, topics: TopicView) -> Mapping[str, tuple[int, ...]]:
    return {
        topics.by_id[topic_id].name: tuple(partitions)
        for topic_id, partitions in member.target.items()
        if topic_id in topics.by_id
    }


def _version(subscription: Subscription | None) -> int:
    return subscription.version if subscription is not None else 0
