"""The answers of the HTTP API, as far as the tool reads them. Unlisted fields are ignored."""

from __future__ import annotations

from msgspec import Struct


class GroupVerdict(Struct, frozen=True):
    """Why a group needs attention."""

    verdict: str


class GroupLine(Struct, frozen=True):
    """A group in the list. `verdicts`: the worst first; an older service says nothing about them."""

    group_id: str
    type: str
    state: str
    protocol_type: str
    verdicts: list[GroupVerdict] = []


class GroupPage(Struct, frozen=True):
    """A page of the list."""

    groups: list[GroupLine]
    next_cursor: str | None


class Node(Struct, frozen=True):
    """A server of the service; `url` None: its own address is not known."""

    node_id: str
    url: str | None = None
    live: bool = True


class Nodes(Struct, frozen=True):
    """The servers of the service. `routing` "any": each of them answers for all groups."""

    nodes: list[Node] = []
    routing: str | None = None


class Coordinator(Struct, frozen=True):
    """Where a group is coordinated."""

    node_id: str
    host: str
    port: int


class TopicPartitions(Struct, frozen=True):
    """Partitions of a topic; `topic` None: it was deleted."""

    topic: str | None
    partitions: list[int]


class Member(Struct, frozen=True):
    """A member of a group of either protocol: `partitions` is for the classic one, the later fields for the other."""

    member_id: str
    client_id: str
    client_host: str
    group_instance_id: str | None = None
    partitions: dict[str, list[int]] | None = None
    member_type: str | None = None
    member_epoch: int | None = None
    assignment: list[TopicPartitions] | str = ""
    target_assignment: list[TopicPartitions] = []


class Group(Struct, frozen=True):
    """A group of either protocol: `protocol_type` and `protocol_name` are for the classic one."""

    group_id: str
    type: str
    state: str
    coordinator: Coordinator
    members: list[Member]
    protocol_type: str = ""
    protocol_name: str = ""
    assignor: str = ""
    group_epoch: int | None = None
    assignment_epoch: int | None = None


class GroupLabels(Struct, frozen=True):
    """The labels of a group."""

    labels: dict[str, str]


class CommittedPartition(Struct, frozen=True):
    """A committed offset; `log_end_offset` None: not reported."""

    topic: str
    partition: int
    committed_offset: int
    committed_leader_epoch: int
    log_end_offset: int | None


class CommittedPage(Struct, frozen=True):
    """A page of committed offsets."""

    offsets: list[CommittedPartition]
    next_cursor: str | None


class SharePartition(Struct, frozen=True):
    """How far a share group is with a partition; None: not decided yet."""

    topic: str
    partition: int
    start_offset: int | None
    end_offset: int
    lag: int | None
    acquired: int
    retry: int
    delayed: int
    dead: int


class ShareOffsets(Struct, frozen=True):
    """All partitions that a share group has begun."""

    partitions: list[SharePartition]


class Watermark(Struct, frozen=True):
    """Where a partition's log begins and ends. `lower_end_offset`: an earlier end, reported by `lower_by`."""

    partition: int
    log_start_offset: int
    log_end_offset: int
    lower_end_offset: int | None = None
    lower_by: str = ""


class Reported(Struct, frozen=True):
    """The answer to a report of watermarks; it repeats them."""


class WatermarkPage(Struct, frozen=True):
    """A page of a topic's watermarks."""

    partitions: list[Watermark]
    next_cursor: str | None


class Topic(Struct, frozen=True):
    """A topic."""

    name: str
    partitions: int


class PlannedPartition(Struct, frozen=True):
    """A partition of a plan. `new_offset` None: the committed offset is removed; `old_offset` None: it had none."""

    topic: str
    partition: int
    old_offset: int | None
    new_offset: int | None
    note: str | None = None


class Plan(Struct, frozen=True):
    """An offset plan, with a page of its lines."""

    id: str
    state: str
    partitions: list[PlannedPartition]
    next_cursor: str | None


class DeletedGroup(Struct, frozen=True):
    """The result for one group to be deleted."""

    group_id: str
    error_code: int
    error: str
    detail: str | None = None


class DeletedGroups(Struct, frozen=True):
    """The result for each."""

    groups: list[DeletedGroup]


class DeletedPartition(Struct, frozen=True):
    """The result for one offset to be deleted."""

    partition: int
    error_code: int
    error: str


class DeletedTopic(Struct, frozen=True):
    """The results for a topic's offsets."""

    name: str
    partitions: list[DeletedPartition]


class DeletedOffsets(Struct, frozen=True):
    """The result for each offset."""

    topics: list[DeletedTopic]
