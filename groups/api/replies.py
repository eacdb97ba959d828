"""From a reply with an error to the problem response, and the count of both."""

from __future__ import annotations

from groups.core.model.replies import ConsumerHeartbeatReply, HeartbeatReply, JoinReply, LeaveReply, SyncReply
from kcoord.http.types import rfc3339
from kcoord.metrics import commands
from kcoord.protocol.errors import Error, ProblemFields, ProtocolError


def raise_for_error(
    command: str, reply: JoinReply | SyncReply | HeartbeatReply | LeaveReply | ConsumerHeartbeatReply
) -> None:
    """Count the reply of `command`; raise it as ProtocolError if it is an error.

    Every problem of a join carries the `member_id` of the reply. If the session was renewed despite the error (a
    heartbeat during a rebalance), `session_expires_at` says so.
    """
    commands(command, reply.error.name).inc()
    if reply.error is Error.NONE:
        return
    fields: ProblemFields = {}
    if isinstance(reply, JoinReply):
        fields["member_id"] = reply.member_id
    expires_at = None if isinstance(reply, LeaveReply) else rfc3339(reply.session_deadline)
    if expires_at is not None:
        fields["session_expires_at"] = expires_at
    retry_after_ms = reply.retry_after_ms if isinstance(reply, JoinReply | ConsumerHeartbeatReply) else None
    raise ProtocolError(reply.error, reply.detail, fields=fields, retry_after_ms=retry_after_ms)
