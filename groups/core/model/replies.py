"""Replies: the answers to commands, errors included.

`session_deadline` is set if the request renewed the member's session. `detail` is for people. `retry_after_ms` is set
if an error says when to retry.
Source: classic.md 2.6, 3, 4, 5.
"""

from __future__ import annotations

from groups.core.assignors import Partitions
from groups.core.model.commands import Parked, ParkKind
from groups.core.model.types import Hold, Millis, message
from kcoord.protocol.errors import Error

__all__ = [
    "Answer",
    "CommitReply",
    "ConsumerHeartbeatReply",
    "DeleteOffsetsReply",
    "Done",
    "HeartbeatReply",
    "HoldReply",
    "JoinReply",
    "JoinedMember",
    "LeaveReply",
    "LeftMember",
    "Parked",
    "Reply",
    "Rerun",
    "SyncReply",
]


@message
class JoinedMember:
    """A member as reported to the leader; `metadata` is for the selected protocol."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@message
class JoinReply:
    """JoinGroup's answer (classic.md 2.6). `replaced_id`: the old id of a static member that has returned."""

    error: Error
    member_id: str
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()
    session_deadline: Millis | None = None
    detail: str = ""
    retry_after_ms: Millis | None = None
    replaced_id: str = ""


@message
class SyncReply:
    """SyncGroup's answer. Errors carry no assignment and null protocol fields (classic.md 3.1)."""

    error: Error
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""
    session_deadline: Millis | None = None
    detail: str = ""


@message
class HeartbeatReply:
    """Heartbeat's answer (classic.md 4)."""

    error: Error
    session_deadline: Millis | None = None
    detail: str = ""


@message
class LeftMember:
    """The result of one entry of a LeaveGroup; ids are echoed as requested.

    For a member that left by instance id alone, a consumer group adds the member id.
    """

    member_id: str
    group_instance_id: str | None
    error: Error


@message
class LeaveReply:
    """LeaveGroup's answer (classic.md 5)."""

    error: Error
    members: tuple[LeftMember, ...] = ()
    detail: str = ""


@message
class CommitReply:
    """Whether a commit is accepted. On success the offsets are written in the same transaction."""

    error: Error
    generation_id: int = -1
    session_deadline: Millis | None = None
    detail: str = ""


@message
class DeleteOffsetsReply:
    """Whether offsets may be deleted; those on `subscribed` topics may not (offsets.md 6)."""

    error: Error
    subscribed: frozenset[str] = frozenset()
    detail: str = ""


@message
class Done:
    """The answer to commands that only report success or an error."""

    error: Error = Error.NONE
    detail: str = ""


@message
class HoldReply:
    """The answer to a HoldGroup: the hold, and how many members it removed."""

    error: Error
    hold: Hold | None = None
    removed: int = 0
    detail: str = ""


@message
class ConsumerHeartbeatReply:
    """The answer of ConsumerGroupHeartbeat and of ShareGroupHeartbeat (consumer.md 2.6; share.md 2.3).

    `assignment` by topic id; None means unchanged, empty means that the member owns nothing.
    """

    error: Error
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: Millis = 0
    assignment: Partitions | None = None
    session_deadline: Millis | None = None
    detail: str = ""
    retry_after_ms: Millis | None = None


Reply = (
    JoinReply
    | SyncReply
    | HeartbeatReply
    | LeaveReply
    | CommitReply
    | DeleteOffsetsReply
    | ConsumerHeartbeatReply
    | HoldReply
    | Done
)


@message
class Rerun:
    """A waiting heartbeat's wait is over. Decide it again with `resumes`; that gives the answer."""


@message
class Answer:
    """The answer to a parked request: every request that `member_id` has parked on `kind` gets `reply`."""

    kind: ParkKind
    member_id: str
    reply: JoinReply | SyncReply
