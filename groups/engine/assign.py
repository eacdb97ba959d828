"""`POST /v1/assign`: an assignor for leaders that have no assignor.

Source: http-api.md 2, "sync".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from kcoord.assignors import (
    MemberSubscription,
    PartitionRacks,
    Partitions,
    PartitionsPerTopic,
    UnknownAssignorError,
    checked_assign,
    get_assignor,
)
from kcoord.protocol.consumer_protocol import Subscription
from kcoord.protocol.errors import Error, ProtocolError


def member_subscription(
    member_id: str, group_instance_id: str | None, subscription: Subscription
) -> MemberSubscription:
    """The input of the assignors, from a member as a join returned it."""
    return MemberSubscription(
        member_id=member_id,
        group_instance_id=group_instance_id,
        topics=subscription.topics,
        owned_partitions=subscription.owned_partitions,
        generation_id=subscription.generation_id,
        rack_id=subscription.rack_id,
        user_data=subscription.user_data or b"",
    )


def assign(
    assignor_name: str,
    members: Sequence[MemberSubscription],
    partitions_per_topic: PartitionsPerTopic,
    partition_racks: PartitionRacks | None = None,
) -> list[tuple[str, Partitions]]:
    """The partitions of each of `members`, in the given order. Subscribed topics that do not exist are ignored.

    Pure computation; with thousands of partitions it takes tens of milliseconds, so an event loop runs it in a thread.

    Raises `ProtocolError`: UNSUPPORTED_ASSIGNOR naming the valid ones; INVALID_REQUEST when a member is listed twice. A
    custom assignor that does not load or returns nonsense is not the caller's fault: `AssignorLoadError`,
    `FaultyAssignmentError`.
    """
    try:
        assignor = get_assignor(assignor_name)
    except UnknownAssignorError as error:
        raise ProtocolError(Error.UNSUPPORTED_ASSIGNOR, f"assignor: {error}") from error
    twice = [member_id for member_id, times in Counter(member.member_id for member in members).items() if times > 1]
    if twice:
        raise ProtocolError(Error.INVALID_REQUEST, f"members: {twice[0]!r} is listed more than once")
    assignment: Mapping[str, Partitions] = checked_assign(assignor, partitions_per_topic, members, partition_racks)
    return [(member.member_id, assignment[member.member_id]) for member in members]
