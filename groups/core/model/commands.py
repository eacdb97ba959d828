"""Commands: requests of members, operators and timers to a group.

One frozen value per API. `max_wait_ms` bounds how long the request itself is held when it parks.
Source: http-api.md 2; classic.md 0.1; consumer.md 2.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from groups.core.assignors import Partitions
from groups.core.model.types import UNLIMITED, GroupState, Millis, Protocol, TopicRights, message


class ParkKind(str, Enum):
    """What a request can wait for: a barrier of the classic protocol, or anything new for a consumer member."""

    JOIN = "join"
    SYNC = "sync"
    HEARTBEAT = "heartbeat"


@message
class Parked:
    """Not answered yet: the member waits for a barrier, a consumer member for anything new.

    `group_instance_id` is the member's. `generation_id` is the group's when the request parked, for a heartbeat the
    member's epoch; from it and the group alone any process can tell whether the wait is over (`waiting.answer_for`).
    `parked_until`: how long this request is held; it also tells it from a later one of the same member (`AbandonWait`).
    `session_deadline`: for a heartbeat, when the session that it suspends ends; a later heartbeat sets another.
    `again_in_ms`: for a heartbeat that waits for a target which may not be computed before then: when to rerun it;
    None: it may be held for as long as it asked.
    """

    kind: ParkKind
    member_id: str
    group_instance_id: str | None
    generation_id: int
    parked_until: Millis = 0
    session_deadline: Millis = 0
    again_in_ms: Millis | None = None


@message
class JoinGroup:
    """JoinGroup, version 9. `member_id` "" asks for a new id."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: Millis
    rebalance_timeout_ms: Millis
    protocol_type: str
    protocols: tuple[Protocol, ...]
    reason: str | None = None
    max_wait_ms: Millis = 30_000


@message
class SyncGroup:
    """SyncGroup, version 5. `protocol_type` and `protocol_name` None mean "do not check" (classic.md 3.1 row 1)."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    assignments: Mapping[str, bytes]
    max_wait_ms: Millis = 30_000


@message
class Heartbeat:
    """Heartbeat, version 4."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id: int


@message
class LeavingMember:
    """One entry of a LeaveGroup."""

    member_id: str
    group_instance_id: str | None
    reason: str | None = None


@message
class LeaveGroup:
    """LeaveGroup, version 5: a batch, each entry answered separately."""

    group_id: str
    members: tuple[LeavingMember, ...]


@message
class CommitOffsets:
    """The membership half of an OffsetCommit: may this caller commit now? (classic.md 6, "OffsetCommit validation").

    `transactional`: a TxnOffsetCommit, which needs no member, is not stopped by a rebalance and renews no session; its
    errors for an empty group id and an unknown group are TxnOffsetCommit's. `partitions`: what would be stored, by
    topic name; a member of a consumer group may commit with an older epoch what it has had since then. None: unknown,
    and no older epoch is accepted. `knows_epochs`: the client is as new as members of the consumer protocol have to be.
    """

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id: int
    transactional: bool = False
    partitions: Mapping[str, frozenset[int]] | None = None
    knows_epochs: bool = True


@message
class DeleteOffsets:
    """The group's half of an OffsetDelete: may offsets on these topics be deleted? (offsets.md 6.)"""

    group_id: str
    topics: frozenset[str]


@message
class ResetOffsets:
    """The group's half of an operator setting offsets. `create`: create the group if it is missing."""

    group_id: str
    create: bool = False


@message
class DeleteGroup:
    """DeleteGroups for one group (classic.md 8.1)."""

    group_id: str


@message
class HoldGroup:
    """Remove all members and refuse joins for `duration_ms`; if the group is already held, counting again from now.

    `principal`: who requests it. `reason`: why, for the events and for members that are refused.
    """

    group_id: str
    duration_ms: Millis
    principal: str
    reason: str


@message
class ReleaseHold:
    """Let members in again before the hold ends by itself. `principal`: who requests it."""

    group_id: str
    principal: str


@message
class KickMember:
    """Remove one member, or one pending id, as if it had left. `principal`: who requests it; `reason`: why."""

    group_id: str
    member_id: str
    principal: str
    reason: str


@message
class Tick:
    """Only time passes: expire what is overdue."""

    group_id: str


@message
class AbandonWait:
    """The connection of a parked request ended before its answer: the session counts from now.

    The member still counts as joined (it may come back with the same request); it only loses the suspension of its
    session that the held request provided. `parked_until` is that of its `Parked`: if a newer request has replaced the
    abandoned one, the command does nothing. None: whatever is parked now.
    """

    group_id: str
    member_id: str
    kind: ParkKind
    parked_until: Millis | None = None


@message
class ForceState:
    """Test fixture: put a group into a state no request leads to (Dead)."""

    group_id: str
    state: GroupState


@message
class ConsumerHeartbeat:
    """ConsumerGroupHeartbeat, version 1 (consumer.md 2.1). None: unchanged, or not reported.

    `topic_partitions`: what the member still has, by topic id. `member_epoch` 0 joins, -1 leaves, -2 leaves for a
    while. With `max_wait_ms` above 0 the request waits for something new for this member. `resumes`: the `Parked` it
    got when it began to wait, if it is decided again; it does nothing if the member has sent another heartbeat since.
    `rights`: which topics the caller, and so the regular expression of the member, may describe. `age_ms`: how long
    before the decision the request was received.
    """

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: Millis = -1
    subscribed_topic_names: frozenset[str] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: Partitions | None = None
    max_wait_ms: Millis = 0
    resumes: Parked | None = None
    rights: TopicRights = UNLIMITED
    age_ms: Millis = 0


@message
class ShareHeartbeat:
    """ShareGroupHeartbeat, version 1 (share.md 2.1). None: unchanged.

    `member_epoch` 0 joins, -1 leaves. `age_ms`: as that of a `ConsumerHeartbeat`.
    """

    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] | None = None
    age_ms: Millis = 0


@message
class ResetShare:
    """The group's half of an operator setting or deleting where a share group's partitions begin (share.md 7.8).

    `create`: create the group if it is missing.
    """

    group_id: str
    create: bool = False


@message
class ApplyTarget:
    """The result of a `ComputeTarget`: the target of each member it was computed for, or None and what went wrong."""

    group_id: str
    group_epoch: int
    assignor: str
    targets: Mapping[str, Partitions] | None
    failure: str = ""


@message
class ApplyRegexResolution:
    """The result of a `ResolveRegexes`, whose `topics_version` and `started_at` it repeats: regex -> topic names.

    `rights`: the key of the rights with which they were matched.
    """

    group_id: str
    topics: Mapping[str, frozenset[str]]
    topics_version: int
    started_at: Millis
    rights: str = ""


ClassicCommand = (
    JoinGroup
    | SyncGroup
    | Heartbeat
    | LeaveGroup
    | CommitOffsets
    | DeleteOffsets
    | ResetOffsets
    | DeleteGroup
    | HoldGroup
    | ReleaseHold
    | KickMember
    | Tick
    | AbandonWait
    | ForceState
    | ApplyTarget
    | ApplyRegexResolution
)
"""The commands that a classic group may get. Background results may arrive after the group changed its protocol."""

Command = ClassicCommand | ConsumerHeartbeat | ShareHeartbeat | ResetShare
