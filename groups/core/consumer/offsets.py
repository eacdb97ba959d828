"""Who may commit and fetch offsets of a consumer group (consumer.md 7)."""

from __future__ import annotations

from groups.core.consumer.members import unknown_member
from groups.core.model.commands import CommitOffsets
from groups.core.model.consumer_group import ConsumerGroup, ConsumerMember
from groups.core.model.group import require_unheld_offsets
from groups.core.model.replies import CommitReply
from groups.core.model.turn import Turn
from groups.core.model.types import TopicView
from kcoord.protocol.errors import Error, ProtocolError


def commit_offsets(turn: Turn, command: CommitOffsets) -> CommitReply:
    """consumer.md 7.1, rows 3 to 10. Renews no session. Raises `ProtocolError`."""
    group, epoch = turn.consumer, command.generation_id
    accepted = CommitReply(Error.NONE, generation_id=epoch)
    if epoch < 0 and not group.members:
        require_unheld_offsets(group)
        return accepted
    nobody = not command.member_id and command.group_instance_id is None
    if command.transactional and epoch == -1 and nobody:
        return accepted
    member = group.members.get(command.member_id)
    if member is None:
        raise unknown_member(command.member_id)
    if not command.knows_epochs and member.classic is None:
        raise ProtocolError(Error.STALE_MEMBER_EPOCH, f"member {member.member_id} speaks the consumer protocol")
    if epoch == member.member_epoch or _had_all_since(member, command, turn.env.topics):
        return accepted
    raise _stale(member, epoch)


def check_fetch(group: ConsumerGroup, member_id: str | None, member_epoch: int) -> None:
    """consumer.md 7.2: may this caller fetch offsets? Without a member id and with a negative epoch it is not a member.

    Raises `ProtocolError` UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH or, for a classic member, ILLEGAL_GENERATION.
    """
    if member_id is None and member_epoch < 0:
        return
    member = group.members.get(member_id or "")
    if member is None:
        raise unknown_member(member_id or "")
    if member_epoch != member.member_epoch:
        raise _stale(member, member_epoch)


def _had_all_since(member: ConsumerMember, command: CommitOffsets, topics: TopicView) -> bool:
    """Rows 8 and 10: an older epoch suffices for partitions that the member has had ever since, unbroken (KIP-1251).

    Only the partitions are checked: if nothing is to be stored, any older epoch suffices.
    """
    if command.partitions is None or command.generation_id >= member.member_epoch:
        return False
    for name, partitions in command.partitions.items():
        topic = topics.by_name.get(name)
        topic_id = topic.topic_id if topic is not None else ""
        had = {**member.assigned.get(topic_id, {}), **member.pending_revocation.get(topic_id, {})}
        if not all(p in had and had[p] <= command.generation_id for p in partitions):
            return False
    return True


def _stale(member: ConsumerMember, epoch: int) -> ProtocolError:
    return ProtocolError(
        Error.STALE_MEMBER_EPOCH if member.classic is None else Error.ILLEGAL_GENERATION,
        f"member {member.member_id} is at epoch {member.member_epoch}, not {epoch}",
    )
