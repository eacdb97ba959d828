"""The sender of a ConsumerGroupHeartbeat: an existing member, one that joins, or a static member that comes back.

Checks of the request and of the member epoch raise the `ProtocolError` that answers it.
Source: consumer.md 2.2 to 2.4, 3.1 to 3.3.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from groups.core.assignors import Partitions
from groups.core.consumer.target import regex_of
from groups.core.model.commands import ConsumerHeartbeat
from groups.core.model.consumer_group import DEPARTED_EPOCH, ConsumerMember, EpochGroup, is_subset
from groups.core.model.consumer_records import (
    ConsumerGroupCreated,
    ConsumerMemberJoined,
    ConsumerMemberReplaced,
    ConsumerMemberUpdated,
)
from groups.core.model.group import require_open
from groups.core.model.turn import Turn
from groups.core.model.types import Millis
from kcoord.protocol.errors import Error, ProtocolError


def check_heartbeat(command: ConsumerHeartbeat, assignors: Collection[str]) -> None:
    """consumer.md 2.2, rows 5 to 14. Raises INVALID_REQUEST naming the field, or UNSUPPORTED_ASSIGNOR."""
    require_text("member_id", command.member_id)
    require_text("group_id", command.group_id)
    require_text("instance_id", command.instance_id)
    require_text("rack_id", command.rack_id)
    if command.member_epoch == 0:
        _check_join(command)
    if command.member_epoch == DEPARTED_EPOCH and command.instance_id is None:
        raise _invalid(
            "instance_id is missing: only static members can leave with epoch -2; dynamic members leave with -1"
        )
    if command.member_epoch < DEPARTED_EPOCH:
        raise _invalid(f"member_epoch must be at least {DEPARTED_EPOCH}, not {command.member_epoch}")
    if command.server_assignor is not None and command.server_assignor not in assignors:
        raise ProtocolError(
            Error.UNSUPPORTED_ASSIGNOR,
            f"server_assignor is {command.server_assignor!r}, there are {', '.join(assignors)}",
        )


def _check_join(command: ConsumerHeartbeat) -> None:
    if command.rebalance_timeout_ms == -1:
        raise _invalid("rebalance_timeout_ms is required when a member joins (epoch 0)")
    if command.topic_partitions is None or command.topic_partitions:
        raise _invalid("topic_partitions must be an empty list when a member joins (epoch 0): it owns nothing yet")
    if command.subscribed_topic_names is None and command.subscribed_topic_regex is None:
        raise _invalid("subscribed_topic_names or subscribed_topic_regex is required when a member joins (epoch 0)")


def require_text(field: str, value: str | None) -> None:
    """INVALID_REQUEST for a text that is blank. None: it was not sent."""
    if value is not None and not value.strip():
        raise _invalid(f"{field} must not be empty")


def _invalid(detail: str) -> ProtocolError:
    return ProtocolError(Error.INVALID_REQUEST, detail)


OVERTAKEN_MS = 2_500
"""By how much a heartbeat must have been received before the member was last heard from. A client that gives up has
waited for longer. Clocks of processes differ by less, and a busy process that read nothing for a while counts what it
then reads from the beginning of that while (`kcoord.requests.current`)."""


def check_order(group: EpochGroup, member_id: str, age_ms: Millis, now: Millis) -> None:
    """COORDINATOR_NOT_AVAILABLE for a heartbeat that a later one of its member has overtaken: it changes nothing.

    A client whose heartbeat is not answered sends the next one, to another server. If the first is decided after that,
    because its server waited for Postgres, what it says of owned partitions is out of date: it may omit one that the
    member was given since, which counts as its release while the member still has it; a join or a leave may undo what
    came later. One that was held is recognised by its deadline (`groups.core.consumer.heartbeat.displaced`).

    Differs from Kafka: there requests of a connection are handled in order, and what arrives on an older connection is
    handled as if it were the latest.
    """
    session = group.timers.session.get(member_id)
    # A clock that was set back shows times in the future: nothing can be told from them.
    if session is None or session.armed_at > now:
        return
    if now - age_ms + OVERTAKEN_MS < session.armed_at:
        raise ProtocolError(
            Error.COORDINATOR_NOT_AVAILABLE,
            f"a later heartbeat of member {member_id} was handled before this one, which is {age_ms} ms old and was "
            "not carried out",
        )


def check_epoch(member: ConsumerMember, member_epoch: int, owned: Partitions | None) -> None:
    """consumer.md 2.4. FENCED_MEMBER_EPOCH unless the member sends its current epoch, or the previous one because it
    missed the response; in that case it must not own anything that it has lost since.
    """
    if member_epoch in (0, member.member_epoch):
        return
    missed_response = (
        0 < member_epoch < member.member_epoch
        and member_epoch == member.previous_member_epoch
        and owned is not None
        and is_subset(owned, member.assigned)
    )
    if not missed_response:
        raise fenced(member, member_epoch)


def fenced(member: ConsumerMember, member_epoch: int) -> ProtocolError:
    """FENCED_MEMBER_EPOCH."""
    return ProtocolError(
        Error.FENCED_MEMBER_EPOCH,
        f"member {member.member_id} is at epoch {member.member_epoch}, not {member_epoch}: "
        "give up all partitions and join again with epoch 0",
    )


def unknown_member(member_id: str) -> ProtocolError:
    """UNKNOWN_MEMBER_ID."""
    return ProtocolError(
        Error.UNKNOWN_MEMBER_ID, f"the group has no member {member_id!r} (any more): join again with epoch 0"
    )


def unknown_group(group_id: str) -> ProtocolError:
    """GROUP_ID_NOT_FOUND."""
    return ProtocolError(
        Error.GROUP_ID_NOT_FOUND, f"there is no consumer group {group_id!r}: join it with member_epoch 0"
    )


def holder_of(group: EpochGroup, instance_id: str, member_id: str) -> ConsumerMember:
    """The member that has the instance id, which must be `member_id`, else UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID."""
    holder = group.members.static.get(instance_id)
    if holder is None:
        raise ProtocolError(
            Error.UNKNOWN_MEMBER_ID,
            f"the group has no member with instance id {instance_id!r} (any more): join again with epoch 0",
        )
    if holder != member_id:
        raise ProtocolError(
            Error.FENCED_INSTANCE_ID,
            f"another member has the instance id {instance_id!r}: stop this one, "
            "or give each running member its own instance id",
        )
    return group.members[holder]


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
