"""Quotas of Kafka clients that join a group."""

from __future__ import annotations

from groups.api.metering import admit_member
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.wire.api import Call


async def admit_wire_member(call: Call, group_id: str, member_id: str, instance_id: str | None) -> None:
    """Count a JoinGroup that makes a member. Raises COORDINATOR_LOAD_IN_PROGRESS."""
    try:
        await admit_member(call.runtime, call.principal, group_id, member_id, instance_id)
    except ProtocolError as refused:
        raise as_clients_know_it(refused) from None


def as_clients_know_it(refused: ProtocolError) -> ProtocolError:
    """The error for a join, if a quota refuses it; other errors as they are.

    Differs from Kafka: it has no quota of members. Its clients end when a join is answered THROTTLING_QUOTA_EXCEEDED;
    after COORDINATOR_LOAD_IN_PROGRESS they join again.
    """
    if refused.error is not Error.THROTTLING_QUOTA_EXCEEDED:
        return refused
    return ProtocolError(Error.COORDINATOR_LOAD_IN_PROGRESS, refused.detail, retry_after_ms=refused.retry_after_ms)
