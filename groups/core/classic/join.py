"""JoinGroup (classic.md 2), and the replacement of a static member (7.2; KIP-345).

A static member is replaced by a JoinGroup without a member id and with an instance id that the group knows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from groups.core.classic.members import (
    accepts,
    full_session,
    joined,
    require_alive,
    require_group_id,
    session_of_new_member,
    session_while_joining_again,
    session_while_parked,
    supports,
    unknown_member,
    validated_member,
)
from groups.core.classic.rebalance import (
    in_initial_rebalance,
    maybe_complete,
    prepare,
    rebalance,
    release,
    remove,
    select_protocol,
)
from groups.core.classic.state import ANSWERS, Api
from groups.core.model.commands import JoinGroup, ParkKind
from groups.core.model.group import require_open
from groups.core.model.records import GroupCreated, MemberAdded, MemberPending, MemberReplaced, MemberUpdated
from groups.core.model.replies import JoinReply, Parked
from groups.core.model.turn import Turn
from groups.core.model.types import Cause, ClassicGroup, ClassicMember, GroupConfig, GroupState
from kcoord.protocol.errors import Error, ProblemFields, ProtocolError


def join_group(turn: Turn, command: JoinGroup) -> JoinReply | Parked:
    """Admit a member, or park it until the next generation (classic.md 2.1 and 2.2).

    Raises `ProtocolError` with `member_id` among its fields if the answer carries one.
    """
    if turn.classic_or_none is None:
        if command.member_id:
            raise unknown_member(command.member_id)
        turn.emit(GroupCreated(command.group_id, turn.now, turn.env.gap))
    require_open(turn.classic, turn.now)
    if not accepts(turn.classic, command.member_id, turn.config.max_size):
        remove(turn, command.member_id, Cause.GROUP_FULL)
        raise ProtocolError(
            Error.GROUP_MAX_SIZE_REACHED,
            f"group {command.group_id!r} has reached its limit of {turn.config.max_size} members",
            fields={"member_id": ""},
        )
    if command.member_id:
        return _join_with_id(turn, command)
    return _join_without_id(turn, command)


def check_join(command: JoinGroup, config: GroupConfig) -> None:
    """The checks of the request itself, before any group is looked at. Raises `ProtocolError`."""
    echo: ProblemFields = {"member_id": command.member_id}
    require_group_id(command.group_id, echo)
    if not config.min_session_timeout_ms <= command.session_timeout_ms <= config.max_session_timeout_ms:
        raise ProtocolError(
            Error.INVALID_SESSION_TIMEOUT,
            f"session_timeout_ms is {command.session_timeout_ms}, allowed: "
            f"{config.min_session_timeout_ms} to {config.max_session_timeout_ms}",
            fields=echo,
        )
    # Differs from Kafka: a protocol listed twice would count twice and block the completion of the join (classic.md
    # 13.1 item 5).
    times = Counter(protocol.name for protocol in command.protocols)
    repeated = next((name for name in times if times[name] > 1), None)
    if repeated is not None:
        raise ProtocolError(Error.INVALID_REQUEST, f"protocols: {repeated!r} is listed more than once", fields=echo)


def _join_without_id(turn: Turn, command: JoinGroup) -> JoinReply | Parked:
    """classic.md 2.3."""
    group = turn.classic
    require_alive(group, "")
    _require_support(group, command)
    instance_id = command.group_instance_id
    member_id = turn.env.fresh_id(instance_id if instance_id is not None else command.client_id)
    if instance_id is None:
        turn.emit(MemberPending(member_id, full_session(turn.now, command.session_timeout_ms)))
        raise ProtocolError(
            Error.MEMBER_ID_REQUIRED, "join again with the member_id of this response", fields={"member_id": member_id}
        )
    if instance_id in group.members.static:
        return replace_static_member(turn, command, member_id)
    return _add(turn, command, member_id)


def _join_with_id(turn: Turn, command: JoinGroup) -> JoinReply | Parked:
    """classic.md 2.4."""
    group = turn.classic
    require_alive(group, command.member_id)
    _require_support(group, command)
    if command.member_id in group.pending_join:
        if command.group_instance_id is not None:
            raise ProtocolError(
                Error.UNKNOWN_SERVER_ERROR,
                f"member id {command.member_id!r} was given to a dynamic member: join without group_instance_id",
                fields={"member_id": ""},
            )
        return _add(turn, command, command.member_id)
    member = validated_member(group, command.member_id, command.group_instance_id)
    return _rejoin(turn, command, member)


def _rejoin(turn: Turn, command: JoinGroup, member: ClassicMember) -> JoinReply | Parked:
    group = turn.classic
    if ANSWERS[Api.JOIN, group.state].parks:
        parked = _update(turn, command, member)
        maybe_complete(turn)
        return parked
    if command.protocols != member.protocols:
        cause = Cause.PROTOCOLS_CHANGED
    elif group.state is GroupState.STABLE and group.leader_id == member.member_id:
        cause = Cause.LEADER_REJOINED
    else:
        return joined(group, member)
    parked = _update(turn, command, member)
    prepare(turn, cause, member.member_id, command.reason or "")
    return parked


def _require_support(group: ClassicGroup, command: JoinGroup) -> None:
    names = [protocol.name for protocol in command.protocols]
    if supports(group, command.protocol_type, names):
        return
    if not command.protocol_type or not names:
        detail = "protocol_type and protocols must not be empty"
    elif command.protocol_type != group.protocol_type:
        detail = f"the group's protocol type is {group.protocol_type!r}, the member's {command.protocol_type!r}"
    else:
        detail = f"no protocol of {', '.join(names)} is supported by all {len(group.members)} members of the group"
    raise ProtocolError(Error.INCONSISTENT_GROUP_PROTOCOL, detail, fields={"member_id": command.member_id})


def _add(turn: Turn, command: JoinGroup, member_id: str) -> Parked:
    """ADD (classic.md 0.3)."""
    parked_until = turn.now + command.max_wait_ms
    group = turn.classic
    parked = Parked(ParkKind.JOIN, member_id, command.group_instance_id, group.generation_id, parked_until)
    turn.emit(
        MemberAdded(
            ClassicMember(
                member_id=member_id,
                instance_id=command.group_instance_id,
                client_id=command.client_id,
                client_host=command.client_host,
                session_timeout_ms=command.session_timeout_ms,
                rebalance_timeout_ms=command.rebalance_timeout_ms,
                protocol_type=command.protocol_type,
                protocols=command.protocols,
                join_parked_until=parked_until,
                session_deadline=session_of_new_member(turn.now),
            ),
            leader_id=group.leader_id if group.leader_id is not None else member_id,
            protocol_type=command.protocol_type,  # SUPPORTS: that of the other members, if there are any
            new_member_added=in_initial_rebalance(group),
        )
    )
    rebalance(turn, Cause.MEMBER_JOINED, member_id, command.reason or "")
    return parked


def _update(turn: Turn, command: JoinGroup, member: ClassicMember) -> Parked:
    """UPDATE (classic.md 0.3)."""
    group, now = turn.classic, turn.now
    parked_until = now + command.max_wait_ms
    deadline = session_while_joining_again(group, member, now, parked_until, command.session_timeout_ms)
    turn.emit(
        MemberUpdated(
            member.member_id,
            protocols=command.protocols,
            session_timeout_ms=command.session_timeout_ms,
            rebalance_timeout_ms=command.rebalance_timeout_ms,
            join_parked_until=parked_until,
            session_deadline=deadline,
        )
    )
    return Parked(ParkKind.JOIN, member.member_id, member.instance_id, group.generation_id, parked_until)


def replace_static_member(turn: Turn, command: JoinGroup, member_id: str) -> JoinReply | Parked:
    """Continue under `member_id` with everything the old member had; only a change of protocol needs a rebalance."""
    assert command.group_instance_id is not None
    before = turn.classic
    old = before.members[before.members.static[command.group_instance_id]]
    _take_over(turn, command, old, member_id)
    group = turn.classic
    if group.state is GroupState.STABLE and _keeps_protocol(group):
        answer = joined(
            group,
            group.members[member_id],
            session_deadline=group.members[member_id].session_deadline,
            skip_assignment=group.leader_id == member_id,
        )
        return replace(answer, replaced_id=old.member_id)
    parked = _park(turn, command, member_id)
    if group.state is GroupState.PREPARING_REBALANCE:
        maybe_complete(turn)
    else:
        prepare(turn, Cause.STATIC_MEMBER_REPLACED, member_id, command.reason or "")
    return parked


def _take_over(turn: Turn, command: JoinGroup, old: ClassicMember, member_id: str) -> None:
    """Steps 1 to 3. The first session has the OLD timeout.

    Differs from Kafka: a sync that the old id owes is owed by the new one; Kafka leaves it with the old id, whose
    absence then starts a needless rebalance (classic.md 13.1 item 6).
    """
    group = turn.classic
    member = replace(
        old,
        member_id=member_id,
        protocols=command.protocols,
        session_timeout_ms=command.session_timeout_ms,
        rebalance_timeout_ms=command.rebalance_timeout_ms,
        is_new=False,
        sync_parked_until=None,
        session_deadline=full_session(turn.now, old.session_timeout_ms),
    )
    leads = group.leader_id == old.member_id
    turn.emit(MemberReplaced(old.member_id, member, leader_id=member_id if leads else group.leader_id))
    if old.awaiting_join:
        release(turn, ParkKind.JOIN, [old], group.generation_id)
    if old.awaiting_sync:
        release(turn, ParkKind.SYNC, [old], group.generation_id)


def _park(turn: Turn, command: JoinGroup, member_id: str) -> Parked:
    group = turn.classic
    member = group.members[member_id]
    parked_until = turn.now + command.max_wait_ms
    turn.emit(
        MemberUpdated(
            member_id,
            protocols=member.protocols,
            session_timeout_ms=member.session_timeout_ms,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            join_parked_until=parked_until,
            session_deadline=session_while_parked(member, parked_until, member.session_timeout_ms),
        )
    )
    return Parked(ParkKind.JOIN, member_id, member.instance_id, group.generation_id, parked_until)


def _keeps_protocol(group: ClassicGroup) -> bool:
    assert group.leader_id is not None
    return select_protocol(group, group.members[group.leader_id]) == group.protocol_name
