"""The answer to a request that waits in a classic group: read from the group alone, so that any process can compute it.

`release` answers the waiters of a decision with the same function, so the process that completed a barrier and one that
reads the rows afterwards give the same answer. Source: classic.md 0.3, 2.6, 3.2, 7.2, 8.6.
"""

from __future__ import annotations

from collections.abc import Iterable

from groups.core.classic.responses import fenced_detail, joined, synced, unknown_detail
from groups.core.model.commands import ParkKind
from groups.core.model.replies import Answer, JoinReply, Parked, SyncReply
from groups.core.model.turn import Turn
from groups.core.model.types import ClassicGroup, ClassicMember, GroupState
from kcoord.protocol.errors import Error


def release(turn: Turn, kind: ParkKind, waiting: Iterable[ClassicMember], generation_id: int) -> None:
    """Answer the requests that `waiting` had parked on `kind` in that generation; their barrier is complete."""
    for member in waiting:
        reply = answer_for(turn.classic_or_none, Parked(kind, member.member_id, member.instance_id, generation_id))
        assert reply is not None, f"{member.member_id} is released but still waits"
        turn.answers.append(Answer(kind, member.member_id, reply))


def release_converted(turn: Turn, group: ClassicGroup) -> None:
    """Answer all requests that were parked in `group`, which has just become a consumer group."""
    members = group.members.values()
    waiting = [(ParkKind.JOIN, member) for member in members if member.awaiting_join]
    waiting += [(ParkKind.SYNC, member) for member in members if member.awaiting_sync]
    for kind, member in waiting:
        reply = converted(Parked(kind, member.member_id, member.instance_id, group.generation_id))
        turn.answers.append(Answer(kind, member.member_id, reply))


def answer_for(group: ClassicGroup | None, parked: Parked) -> JoinReply | SyncReply | None:
    """The answer to a join or sync that parked as `parked` says; None: it still waits.

    A group that has since moved past the barrier and is preparing again answers REBALANCE_IN_PROGRESS: the client sends
    its join again and loses nothing.
    """
    if group is None:
        return _gone(parked, None)
    if group.state is GroupState.DEAD:
        return _refusal(parked, Error.NOT_COORDINATOR, "this node stopped coordinating the group: find its coordinator")
    member = group.members.get(parked.member_id)
    if member is None:
        return _gone(parked, group)
    if parked.kind is ParkKind.JOIN:
        return _join_answer(group, member)
    return _sync_answer(group, member, parked)


def _join_answer(group: ClassicGroup, member: ClassicMember) -> JoinReply | None:
    if member.awaiting_join:
        return None
    if group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
        return joined(group, member, session_deadline=member.session_deadline)
    return JoinReply(
        Error.REBALANCE_IN_PROGRESS,
        member_id=member.member_id,
        session_deadline=member.session_deadline,
        detail=f"the group completed generation {group.generation_id} and is rebalancing again: join again",
    )


def _sync_answer(group: ClassicGroup, member: ClassicMember, parked: Parked) -> SyncReply | None:
    if group.generation_id == parked.generation_id:
        if group.state is GroupState.COMPLETING_REBALANCE:
            return None
        if group.state is GroupState.STABLE:
            return synced(group, member, session_deadline=member.session_deadline)
    return SyncReply(
        Error.REBALANCE_IN_PROGRESS,
        session_deadline=member.session_deadline,
        detail="the group began a new rebalance before the leader's assignment arrived: join again",
    )


def converted(parked: Parked) -> JoinReply | SyncReply:
    detail = "the group now uses the consumer protocol: join again"
    if parked.kind is ParkKind.SYNC:
        return SyncReply(Error.REBALANCE_IN_PROGRESS, detail=detail)
    return JoinReply(Error.REBALANCE_IN_PROGRESS, member_id=parked.member_id, detail=detail)


def _gone(parked: Parked, group: ClassicGroup | None) -> JoinReply | SyncReply:
    instance_id = parked.group_instance_id
    if group is not None and instance_id is not None and instance_id in group.members.static:
        return _refusal(parked, Error.FENCED_INSTANCE_ID, fenced_detail(instance_id))
    return _refusal(parked, Error.UNKNOWN_MEMBER_ID, unknown_detail(parked.member_id))


def _refusal(parked: Parked, error: Error, detail: str) -> JoinReply | SyncReply:
    if parked.kind is ParkKind.SYNC:
        return SyncReply(error, detail=detail)
    # A removed member must not join with its old id again (classic.md 0.3, EXPIRE_SESSION; classic.md 5).
    member_id = "" if error is Error.UNKNOWN_MEMBER_ID else parked.member_id
    return JoinReply(error, member_id=member_id, detail=detail)
