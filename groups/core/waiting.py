"""What a waiting request is answered: read from the group alone, so that any process can tell.

`decide` answers its own waiters with the same function, so the process that made a barrier fall and one that merely
looks at the rows afterwards say the same.
Source: classic.md 0.3, 2.6, 3.2, 7.2, 8.6; consumer.md 9.5.
"""

from __future__ import annotations

from groups.core.classic.responses import fenced_detail, joined, synced, unknown_detail
from groups.core.commands import ParkKind
from groups.core.consumer.group import ConsumerGroup
from groups.core.consumer.pending_answers import is_over
from groups.core.group import Group
from groups.core.replies import JoinReply, Parked, Rerun, SyncReply
from groups.core.types import ClassicGroup, ClassicMember, GroupState
from kcoord.protocol.errors import Error


def answer_for(group: Group | None, parked: Parked) -> JoinReply | SyncReply | Rerun | None:
    """The answer of a request that parked as `parked` says; None: it still waits.

    A group that has meanwhile moved past the barrier and prepares again answers REBALANCE_IN_PROGRESS: the client sends
    its join again and loses nothing. So does a group that went on in the consumer protocol. A heartbeat that waits is
    never answered from here: `Rerun` says that deciding it again will.
    """
    if parked.kind is ParkKind.HEARTBEAT:
        return None if isinstance(group, ConsumerGroup) and not is_over(group, parked) else Rerun()
    if isinstance(group, ConsumerGroup):
        return _converted(parked)
    if group is None:
        return _gone(parked, None)
    if group.state is GroupState.DEAD:
        return _refusal(parked, Error.NOT_COORDINATOR, "this node stopped coordinating the group: find its coordinator")
    member = group.members.get(parked.member_id)
    if member is None:
        return _gone(parked, group)
    if parked.kind is ParkKind.JOIN:
        return _join_answer(group, member, parked)
    return _sync_answer(group, member, parked)


def _join_answer(group: ClassicGroup, member: ClassicMember, parked: Parked) -> JoinReply | None:
    if member.awaiting_join or group.generation_id == parked.generation_id:
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


def _converted(parked: Parked) -> JoinReply | SyncReply:
    detail = "the group goes on in the consumer protocol: join again"
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
    # A member that is gone must not join with its old id again (classic.md 0.3, EXPIRE_SESSION; classic.md 5).
    member_id = "" if error is Error.UNKNOWN_MEMBER_ID else parked.member_id
    return JoinReply(error, member_id=member_id, detail=detail)
