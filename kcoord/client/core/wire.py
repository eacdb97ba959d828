"""The answers of the HTTP API as values. Unknown fields are ignored: the server may add some.

Source: http-api.md 1 to 3.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

Ranges = list[tuple[int, int]]
"""First and last offsets."""

Partitions = dict[str, list[int]]


class NamedCoordinator(msgspec.Struct, frozen=True):
    """The node that a NOT_COORDINATOR names."""

    node_id: str = ""
    host: str = ""
    port: int = 0
    url: str = ""


class Problem(msgspec.Struct, frozen=True):
    """An RFC 9457 problem body with the members this client uses."""

    error: str = ""
    error_code: int | None = None
    detail: str = ""
    title: str = ""
    action: str | None = None
    member_id: str | None = None
    request_id: str | None = None
    coordinator: NamedCoordinator | None = None


class CoordinatorEntry(msgspec.Struct, frozen=True):
    """Who coordinates one group."""

    key: str = ""
    url: str | None = None
    error_code: int = 0


class CoordinatorAnswer(msgspec.Struct, frozen=True):
    """FindCoordinator."""

    coordinators: list[CoordinatorEntry] = []


class Subscription(msgspec.Struct, frozen=True):
    """A member's subscription, as the leader reads it. `user_data` is base64."""

    topics: list[str] = []
    owned_partitions: Partitions | None = None
    generation_id: int | None = -1
    rack_id: str | None = None
    user_data: str | None = None


class ReportedWatermark(msgspec.Struct, frozen=True):
    """Where the log of a partition begins and ends, as it is reported."""

    partition: int
    log_start_offset: int
    log_end_offset: int


class ReportAnswer(msgspec.Struct, frozen=True):
    """The answer to a report: where the logs begin and end now. An earlier end than before is kept apart from that."""

    partitions: list[ReportedWatermark] = []


class JoinedMember(msgspec.Struct, frozen=True):
    """One member in a leader's join answer."""

    member_id: str
    group_instance_id: str | None = None
    subscription: Subscription | None = None


class JoinAnswer(msgspec.Struct, frozen=True):
    """JoinGroup."""

    generation_id: int
    member_id: str
    leader: str = ""
    protocol_type: str | None = None
    protocol_name: str | None = None
    skip_assignment: bool = False
    members: list[JoinedMember] = []


class SyncAnswer(msgspec.Struct, frozen=True):
    """SyncGroup. `assignment` and `user_data` are base64."""

    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: str | None = ""
    partitions: Partitions | None = None
    user_data: str | None = None


class HeartbeatAnswer(msgspec.Struct, frozen=True):
    """Heartbeat."""

    error_code: int = 0


class AssignedTopic(msgspec.Struct, frozen=True):
    """One topic of an assignment; `topic` is None for one that was deleted."""

    topic_id: str
    topic: str | None = None
    partitions: list[int] = []


class ConsumerAssignment(msgspec.Struct, frozen=True):
    """Everything that a member of a consumer group should have."""

    topic_partitions: list[AssignedTopic] = []


class ConsumerHeartbeatAnswer(msgspec.Struct, frozen=True):
    """ConsumerGroupHeartbeat. `assignment` None: unchanged."""

    member_epoch: int
    heartbeat_interval_ms: int = 0
    assignment: ConsumerAssignment | None = None


class AcquiredLock(msgspec.Struct, frozen=True):
    """Offsets that were acquired together: the right to settle them."""

    lock: int
    topic: str
    partition: int
    offsets: Ranges
    delivery_count: int = 1
    locked_until: datetime | None = None
    last_error: str | None = None


class SettledEntry(msgspec.Struct, frozen=True):
    """What came of one entry of a settlement, which is settled as a whole or not at all."""

    lock: int
    error_code: int = 0
    why: str | None = None
    held_by: str | None = None
    locked_until: datetime | None = None


class AcquireAnswer(msgspec.Struct, frozen=True):
    """What was acquired, for how long, and what came of the settlement that was sent along."""

    lock_ms: int
    locks: list[AcquiredLock] = []
    settled: list[SettledEntry] = []


class SettleAnswer(msgspec.Struct, frozen=True):
    """One result for each entry."""

    items: list[SettledEntry] = []


class LeftMember(msgspec.Struct, frozen=True):
    """One member in a leave answer."""

    member_id: str = ""
    error_code: int = 0


class LeaveAnswer(msgspec.Struct, frozen=True):
    """LeaveGroup."""

    error_code: int = 0
    members: list[LeftMember] = []


class CommittedPartition(msgspec.Struct, frozen=True):
    """One partition in a commit answer."""

    partition: int
    error_code: int = 0


class CommittedTopic(msgspec.Struct, frozen=True):
    """One topic in a commit answer; `name` is None for an id that no topic has."""

    name: str | None = None
    topic_id: str | None = None
    partitions: list[CommittedPartition] = []


class LostCommits(msgspec.Struct, frozen=True):
    """What was acknowledged between these instants may be gone."""

    since: str
    until: str


class CommitAnswer(msgspec.Struct, frozen=True):
    """OffsetCommit."""

    topics: list[CommittedTopic] = []
    committed_offsets_lost: LostCommits | None = None


class FetchedPartition(msgspec.Struct, frozen=True):
    """One partition in an offset fetch answer; `committed_offset` -1: nothing committed."""

    partition: int
    committed_offset: int = -1
    committed_leader_epoch: int | None = -1
    metadata: str | None = ""
    error_code: int = 0


class FetchedTopic(msgspec.Struct, frozen=True):
    """One topic in an offset fetch answer; `topic_id` is None for a name that no topic has."""

    name: str
    topic_id: str | None = None
    partitions: list[FetchedPartition] = []


class FetchAnswer(msgspec.Struct, frozen=True):
    """OffsetFetch."""

    error_code: int = 0
    topics: list[FetchedTopic] = []
    committed_offsets_lost: LostCommits | None = None


class TopicAnswer(msgspec.Struct, frozen=True):
    """One topic of the catalogue."""

    name: str
    partitions: int
    topic_id: str | None = None
