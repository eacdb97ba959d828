"""Whether there is news for a member: what a waiting heartbeat waits for.

Read from the group alone, so that any process can compute it. Source: http-api.md "Waiting".
"""

from __future__ import annotations

from groups.core.consumer.reconcile import unreleased
from groups.core.model.consumer_group import EpochGroup
from groups.core.model.consumer_state import ConsumerMember, MemberState
from groups.core.model.replies import Parked


def has_pending_answer(group: EpochGroup, member: ConsumerMember, *, target_deferred: bool) -> bool:
    """Would a heartbeat of this member that reports nothing change anything for it?

    `target_deferred`: a target that the group awaits may not be computed yet.
    """
    if group.awaits_target and not target_deferred:
        return True
    match member.state:
        case MemberState.UNREVOKED_PARTITIONS:
            return False
        case MemberState.UNRELEASED_PARTITIONS if member.member_epoch == group.assignment_epoch:
            return any(group.members.owner_of(topic_id, p) is None for topic_id, p in unreleased(member))
        case _:
            return not member.reconciled_to(group.assignment_epoch)


def is_over(group: EpochGroup, parked: Parked) -> bool:
    """Is there a reason to rerun the heartbeat that parked as `parked` says?"""
    member = group.members.get(parked.member_id)
    return (
        member is None
        or member.member_epoch != parked.generation_id
        or is_displaced(group, parked)
        or has_pending_answer(group, member, target_deferred=parked.again_in_ms is not None)
    )


def is_displaced(group: EpochGroup, parked: Parked) -> bool:
    """Has the member that is still in the group sent another heartbeat since this one began to wait?"""
    session = group.timers.session.get(parked.member_id)
    return session is not None and session.deadline != parked.session_deadline
