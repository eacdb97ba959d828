"""What an assignor is: the values it reads, the map it returns, the interface a custom one implements.

An assignor is a pure function of its arguments: the same members, subscriptions and partition counts give the same
assignment, whatever order they arrive in. Source: Kafka's `ConsumerPartitionAssignor`; KIP-54, KIP-429, KIP-881.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, runtime_checkable

TopicPartition = tuple[str, int]
"""(topic name, partition)."""

PartitionsPerTopic = Mapping[str, int]
"""Topic name -> number of partitions. A topic that is absent does not exist and is not assigned."""

PartitionRacks = Mapping[str, Sequence[Sequence[str]]]
"""Topic name -> for each partition, in order, the racks of its replicas."""

Partitions = Mapping[str, Sequence[int]]
"""Topic name -> partitions, ascending."""

Assignment = Mapping[str, Partitions]
"""Member id -> its partitions. Every member is a key; one that gets nothing has an empty map."""


class RebalanceProtocol(str, Enum):
    """How members move from one assignment to the next (KIP-429).

    EAGER: everything is revoked before the members join again. COOPERATIVE: members keep what they own while they
    join, so that a partition changes hands in two rebalances: revoked in the first, assigned in the second.
    """

    EAGER = "eager"
    COOPERATIVE = "cooperative"


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """What one member subscribes to and owns.

    Parameters: `member_id` as the coordinator knows it; `group_instance_id` of a static member (KIP-345); `topics`
    it subscribes to; `owned_partitions` topic -> partitions it had in generation `generation_id` (-1: unknown);
    `rack_id` where it runs (KIP-881; None or "": unknown); `user_data` opaque bytes for custom assignors.
    """

    member_id: str
    group_instance_id: str | None
    topics: Sequence[str]
    owned_partitions: Partitions = field(default_factory=dict)
    generation_id: int = -1
    rack_id: str | None = None
    user_data: bytes = b""


class Assignor(Protocol):
    """A partition assignor. A custom one is published as an entry point of the group "kcoord.assignors"."""

    @property
    def name(self) -> str:
        """The protocol name that members vote for."""

    @property
    def protocols(self) -> tuple[RebalanceProtocol, ...]:
        """The rebalance protocols it supports, preferred first."""

    def assign(
        self,
        partitions_per_topic: PartitionsPerTopic,
        subscriptions: Sequence[MemberSubscription],
        partition_racks: PartitionRacks | None = None,
    ) -> Assignment:
        """Distribute the partitions of the subscribed topics over their subscribers.

        Parameters: `partitions_per_topic` may name topics without subscribers; `partition_racks` None means
        that racks are not known. Returns an entry for every member.
        """


@runtime_checkable
class AssignorHooks(Protocol):
    """What an assignor that keeps state between rebalances implements in addition; clients check for it."""

    def subscription_user_data(self, topics: Sequence[str]) -> bytes:
        """The user data to send with a subscription to `topics`."""

    def on_assignment(self, partitions: Partitions, generation_id: int, user_data: bytes) -> None:
        """The member received `partitions` in generation `generation_id`."""
