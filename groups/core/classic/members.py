"""The sender of a request of the classic protocol: may it do that, what it is answered, and when its session ends.

Each check raises the `ProtocolError` that answers the request. Instants and lengths are in milliseconds. Each function
about deadlines of sessions returns one; the caller puts it into a record.

Source: classic.md 0.3 (VALIDATE_MEMBER, SUPPORTS, ACCEPT), the check orders of classic.md 2, 3, 4 and 6, 2.3, 2.5, 2.6
and 3.2; architecture.md 4, "Fast lanes".

Differs from Kafka: in Kafka the session of a member cannot expire while one of its requests is parked. Here it ends one
session timeout after the last instant at which the request may be held, so that a member whose server process was
killed is detected too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from groups.core.classic.state import ANSWERS, Api
from groups.core.model.commands import Heartbeat
from groups.core.model.records import SessionRenewed
from groups.core.model.replies import HeartbeatReply, JoinedMember, JoinReply, SyncReply
from groups.core.model.turn import Turn
from groups.core.model.types import ClassicGroup, ClassicMember, GroupState, Millis
from kcoord.protocol.errors import Error, ProblemFields, ProtocolError


def joined(
    group: ClassicGroup,
    member: ClassicMember,
    *,
    session_deadline: Millis | None = None,
    skip_assignment: bool = False,
) -> JoinReply:
    """The success answer of a join for the group's current generation; the leader gets all members (classic.md 2.6)."""
    assert group.leader_id is not None, "a group with a generation and members has a leader"
    return JoinReply(
        Error.NONE,
        member_id=member.member_id,
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id,
        skip_assignment=skip_assignment,
        members=_members(group) if group.leader_id == member.member_id else (),
        session_deadline=session_deadline,
    )


def synced(group: ClassicGroup, member: ClassicMember, *, session_deadline: Millis | None = None) -> SyncReply:
    """The success answer of a sync: the stored assignment of `member`."""
    return SyncReply(
        Error.NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
        session_deadline=session_deadline,
    )


def unknown_detail(member_id: str) -> str:
    """Explains UNKNOWN_MEMBER_ID, and what to do."""
    return f"the group has no member {member_id!r} (any more): join with an empty member id"


def fenced_detail(instance_id: str) -> str:
    """Explains FENCED_INSTANCE_ID, and what to do."""
    return (
        f"another member joined with group instance id {instance_id!r}: stop this one, "
        "or give each running member its own instance id"
    )


def _members(group: ClassicGroup) -> tuple[JoinedMember, ...]:
    return tuple(
        JoinedMember(member.member_id, member.instance_id, member.metadata_of(group.protocol_name))
        for member in group.members.values()
    )


def require_group_id(group_id: str, fields: ProblemFields | None = None) -> None:
    """INVALID_GROUP_ID for the empty id; a blank one is an id."""
    if not group_id:
        raise ProtocolError(Error.INVALID_GROUP_ID, "group_id must not be empty", fields=fields)


def require_alive(group: ClassicGroup, member_id: str) -> None:
    """COORDINATOR_NOT_AVAILABLE for a Dead group, before anything about the member is looked at."""
    if group.state is GroupState.DEAD:
        raise ProtocolError(
            Error.COORDINATOR_NOT_AVAILABLE,
            f"group {group.group_id!r} is being unloaded: find its coordinator and try again",
            fields={"member_id": member_id},
        )


def unknown_member(member_id: str) -> ProtocolError:
    """UNKNOWN_MEMBER_ID with the member id echoed."""
    return ProtocolError(Error.UNKNOWN_MEMBER_ID, unknown_detail(member_id), fields={"member_id": member_id})


def validated_member(group: ClassicGroup, member_id: str, instance_id: str | None) -> ClassicMember:
    """VALIDATE_MEMBER: the member, or UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.

    The instance id is judged first; a static member that omits its instance id passes.
    """
    if instance_id is not None:
        holder = group.members.static.get(instance_id)
        if holder is None:
            raise unknown_member(member_id)
        if holder != member_id:
            raise ProtocolError(Error.FENCED_INSTANCE_ID, fenced_detail(instance_id), fields={"member_id": member_id})
    member = group.members.get(member_id)
    if member is None:
        raise unknown_member(member_id)
    return member


def require_generation(group: ClassicGroup, member_id: str, generation_id: int) -> None:
    """ILLEGAL_GENERATION unless the caller names the group's generation."""
    if generation_id != group.generation_id:
        raise ProtocolError(
            Error.ILLEGAL_GENERATION,
            f"member {member_id} is at generation {generation_id}, the group is at {group.generation_id}: join again",
            fields={"member_id": member_id},
        )


def refused(error: Error, api: Api, group: ClassicGroup) -> ProtocolError:
    """The error that the table of answers gives for this API in the group's state."""
    why = {
        Error.REBALANCE_IN_PROGRESS: "is rebalancing: join again",
        Error.COORDINATOR_NOT_AVAILABLE: "is being unloaded: find its coordinator and try again",
        Error.NON_EMPTY_GROUP: f"is {group.state.value} with {len(group.members)} members: stop them first",
        Error.GROUP_ID_NOT_FOUND: "does not exist",
    }[error]
    asked = "" if api is Api.DELETE else f"{api.value}: "  # the request path already says what the operator wants
    return ProtocolError(error, f"{asked}group {group.group_id!r} {why}")


def supports(group: ClassicGroup, protocol_type: str, names: Iterable[str]) -> bool:
    """SUPPORTS: may a member with this type and these protocols be in the group?

    An Empty group accepts any type. Otherwise one name must be listed by every member; the requester's own old list
    counts too, and without members only the type counts.
    """
    if group.state is GroupState.EMPTY:
        return bool(protocol_type) and any(True for _ in names)
    size = len(group.members)
    return protocol_type == group.protocol_type and any(group.members.support.get(name, 0) == size for name in names)


def accepts(group: ClassicGroup, member_id: str, max_size: int) -> bool:
    """ACCEPT: the size gate of JoinGroup.

    A static member that comes back without its id ("") does not count as a member here, so its restart is refused when
    the group is exactly full: Kafka's answer, kept (classic.md 13.1 item 3).
    """
    match group.state:
        case GroupState.EMPTY | GroupState.DEAD:
            return True
        case GroupState.PREPARING_REBALANCE:
            member = group.members.get(member_id)
            return (member is not None and member.awaiting_join) or group.members.awaiting_join < max_size
        case _:
            return member_id in group.members or len(group.members) < max_size


NEW_MEMBER_JOIN_TIMEOUT_MS: Millis = 300_000
"""How long a member that never completed a join may stay parked (classic.md 10.1, a constant)."""


def full_session(now: Millis, session_timeout_ms: Millis) -> Millis:
    """A whole session from now. A member id that was handed out may wait as long before it joins (classic.md 2.3)."""
    return now + session_timeout_ms


def renewed_session(member: ClassicMember, now: Millis) -> Millis:
    """After a heartbeat or a commit.

    A parked request keeps the later deadline that it has; for a new member the session replaces its limit.
    """
    deadline = full_session(now, member.session_timeout_ms)
    parked = member.awaiting_join or member.awaiting_sync
    return max(deadline, _present(member)) if parked and not member.is_new else deadline


def session_of_new_member(now: Millis) -> Millis:
    """While the first join of a member is parked."""
    return now + NEW_MEMBER_JOIN_TIMEOUT_MS


def session_while_parked(member: ClassicMember, parked_until: Millis, session_timeout_ms: Millis) -> Millis:
    """While a request of a member that is not new is held until `parked_until`."""
    return max(_present(member), parked_until + session_timeout_ms)


def session_while_joining_again(
    group: ClassicGroup, member: ClassicMember, now: Millis, parked_until: Millis, session_timeout_ms: Millis
) -> Millis:
    """While another join of a member is held until `parked_until`; `session_timeout_ms` is what this join requests.

    A new member's join is not held beyond its fixed limit. Sending it again renews neither the limit nor the session of
    a heartbeat; it restores what an abandoned wait took away. The rebalance began no later than the limit.
    """
    held = session_while_parked(member, parked_until, session_timeout_ms)
    if not member.is_new:
        return held
    if member.join_parked_until is not None and member.join_parked_until > now:
        return _present(member)
    return max(_present(member), min(held, group.state_since + NEW_MEMBER_JOIN_TIMEOUT_MS))


def abandoned_session(member: ClassicMember, now: Millis) -> Millis:
    """After the connection of a parked request is gone: a whole session, but never later than before."""
    return min(full_session(now, member.session_timeout_ms), _present(member))


def sessions_of_all(group: ClassicGroup, now: Millis) -> Mapping[str, Millis]:
    """Whole sessions for all members, by member id: a generation starts."""
    return {member.member_id: full_session(now, member.session_timeout_ms) for member in group.members.values()}


def restarted_sessions(group: ClassicGroup, now: Millis) -> Mapping[str, Millis]:
    """Whole sessions at least for all members that have one, by member id: sessions could not be counted before."""
    return {
        member.member_id: max(member.session_deadline, full_session(now, member.session_timeout_ms))
        for member in group.members.values()
        if member.session_deadline is not None
    }


def sessions_of_waiting(group: ClassicGroup, now: Millis) -> Mapping[str, Millis]:
    """Whole sessions for the members whose parked sync is answered now, by member id.

    One that has sent another join meanwhile keeps the session that covers it.
    """
    return {
        member.member_id: full_session(now, member.session_timeout_ms)
        for member in group.members.values()
        if member.awaiting_sync and not member.awaiting_join
    }


def _present(member: ClassicMember) -> Millis:
    assert member.session_deadline is not None, "only the members of a Dead group have no session"
    return member.session_deadline


def renewal(group: ClassicGroup, command: Heartbeat, now: Millis) -> Millis | None:
    """The deadline (ms) to which it extends the session of its member; None: it has to be decided.

    Only if nothing is overdue in the group.
    """
    if group.state is not GroupState.STABLE or group.generation_id != command.generation_id:
        return None
    try:
        member = validated_member(group, command.member_id, command.group_instance_id)
    except ProtocolError:
        return None
    if member.is_new or member.awaiting_join or member.awaiting_sync:
        return None
    deadline = full_session(now, member.session_timeout_ms)
    before = member.session_deadline
    return deadline if before is not None and before <= deadline else None


def heartbeat(turn: Turn, command: Heartbeat) -> HeartbeatReply:
    """Renew the session, also while the group rebalances (classic.md 4). Raises `ProtocolError`."""
    if turn.classic_or_none is None:
        raise unknown_member(command.member_id)
    group = turn.classic_or_none
    require_alive(group, command.member_id)
    member = validated_member(group, command.member_id, command.group_instance_id)
    require_generation(group, command.member_id, command.generation_id)
    verdict = ANSWERS[Api.HEARTBEAT, group.state]
    deadline = renew(turn, member) if verdict.renews else None
    if verdict.error is not Error.NONE:
        refusal = refused(verdict.error, Api.HEARTBEAT, group)
        return HeartbeatReply(verdict.error, session_deadline=deadline, detail=refusal.detail)
    return HeartbeatReply(Error.NONE, session_deadline=deadline)


def renew(turn: Turn, member: ClassicMember) -> Millis:
    """Start the session of a member again; returns its deadline in milliseconds."""
    deadline = renewed_session(member, turn.now)
    turn.emit(SessionRenewed(member.member_id, deadline, turn.now))
    return deadline
