"""The sender of a heartbeat: an existing member, one that joins, or a static member that comes back.

Source: consumer.md 2.3, 3.1 to 3.3.
"""

from __future__ import annotations

from dataclasses import replace

from groups.core.consumer.checks import check_epoch, holder_of, unknown_group, unknown_member
from groups.core.consumer.regexes import regex_of
from groups.core.model.commands import ConsumerHeartbeat
from groups.core.model.consumer_group import EpochGroup
from groups.core.model.consumer_records import (
    ConsumerGroupCreated,
    ConsumerMemberJoined,
    ConsumerMemberReplaced,
    ConsumerMemberUpdated,
)
from groups.core.model.consumer_state import DEPARTED_EPOCH, ConsumerMember
from groups.core.model.holds import require_open
from groups.core.model.turn import Turn
from kcoord.protocol.errors import Error, ProtocolError


def find_group(turn: Turn, command: ConsumerHeartbeat) -> None:
    """consumer.md 2.3, rows 1, 2 and 6: the group, created if it is missing and the member joins. Raises
    `ProtocolError` GROUP_ID_NOT_FOUND, COORDINATOR_LOAD_IN_PROGRESS for a group that is held, or
    GROUP_MAX_SIZE_REACHED.
    """
    if turn.group is None:
        if command.member_epoch != 0:
            raise unknown_group(command.group_id)
        turn.emit(ConsumerGroupCreated(command.group_id, turn.now, turn.env.gap))
    elif command.member_epoch == 0:
        require_open(turn.consumer, turn.now)
    require_room(turn, command.member_id)


def require_room(turn: Turn, member_id: str) -> None:
    """GROUP_MAX_SIZE_REACHED for a stranger in a full group, also for a static member that returns with a new id."""
    members, limit = turn.consumer.members, turn.limits.max_size
    if len(members) >= limit and member_id not in members:
        raise ProtocolError(
            Error.GROUP_MAX_SIZE_REACHED,
            f"group {turn.consumer.group_id!r} has reached its limit of {limit} members",
        )


def find_member(turn: Turn, command: ConsumerHeartbeat) -> ConsumerMember:
    """The member as it was before this heartbeat; one that joins is returned without being stored.

    A static member that comes back takes the place of the old one here. Raises `ProtocolError`.
    """
    if command.instance_id is not None:
        return _static_member(turn, command, command.instance_id)
    member = turn.consumer.members.get(command.member_id)
    if member is not None:
        check_epoch(member, command.member_epoch, command.topic_partitions)
        return member
    if command.member_epoch != 0:
        raise unknown_member(command.member_id)
    return ConsumerMember(command.member_id)


def _static_member(turn: Turn, command: ConsumerHeartbeat, instance_id: str) -> ConsumerMember:
    """consumer.md 3.2. The instance id is checked before the member id."""
    group = turn.consumer
    if command.member_epoch != 0:
        member = holder_of(group, instance_id, command.member_id)
        check_epoch(member, command.member_epoch, command.topic_partitions)
        return member
    holder_id = group.members.static.get(instance_id)
    if holder_id is None:
        return group.members.get(command.member_id) or ConsumerMember(command.member_id)
    holder = group.members[holder_id]
    if holder.member_epoch != DEPARTED_EPOCH and holder.classic is None:
        session = group.timers.session.get(holder_id)
        raise ProtocolError(
            Error.UNRELEASED_INSTANCE_ID,
            f"the instance id {instance_id!r} belongs to an active member: stop that "
            "member, or wait until its session ends",
            retry_after_ms=session.deadline - turn.now if session is not None else None,
        )
    return replace_static_member(turn, holder, command.member_id)


def replace_static_member(turn: Turn, holder: ConsumerMember, member_id: str) -> ConsumerMember:
    """consumer.md 3.3: a copy of the old member, with its partitions and its target, at epoch 0."""
    if member_id != holder.member_id and member_id in turn.consumer.members:
        # Differs from Kafka: Kafka would overwrite the other member, whose partitions no member could get again.
        raise ProtocolError(
            Error.UNRELEASED_INSTANCE_ID,
            f"{member_id!r} is in use by a member without instance id {holder.instance_id!r}: leave first, or use "
            "another id",
        )
    member = replace(holder, member_id=member_id, member_epoch=0, previous_member_epoch=0)
    turn.emit(ConsumerMemberReplaced(holder.member_id, member, turn.now))
    return member


def update_member(turn: Turn, before: ConsumerMember, command: ConsumerHeartbeat) -> None:
    """consumer.md 2.5, step 1: what the request says replaces what was known. `before`: as `find_member` found it.

    Differs from Kafka: a request without a client id leaves it unchanged; in Kafka the connection always has one.
    """
    names = command.subscribed_topic_names
    regex = regex_of(command, before)
    store_member(
        turn,
        before,
        replace(
            before,
            instance_id=command.instance_id if command.instance_id is not None else before.instance_id,
            rack_id=command.rack_id if command.rack_id is not None else before.rack_id,
            client_id=command.client_id or before.client_id,
            client_host=command.client_host,
            rebalance_timeout_ms=command.rebalance_timeout_ms
            if command.rebalance_timeout_ms != -1
            else before.rebalance_timeout_ms,
            subscribed_topic_names=names if names is not None else before.subscribed_topic_names,
            subscribed_topic_regex=regex,
            topic_rights=command.rights.key if regex else "",
            server_assignor=command.server_assignor if command.server_assignor is not None else before.server_assignor,
            classic=None,
        ),
    )


def store_member(turn: Turn, before: ConsumerMember, updated: ConsumerMember) -> None:
    """Add the member, or change it if it differs from `before`."""
    if is_new(turn.consumer, before):
        turn.emit(ConsumerMemberJoined(updated, turn.now))
    elif updated != before:
        turn.emit(ConsumerMemberUpdated(updated, turn.now))


def is_new(group: EpochGroup, member: ConsumerMember) -> bool:
    """Is this a member that the group does not have yet?"""
    return member.member_id not in group.members
