"""Nodes and the partitions they own, as one transaction saw them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from groups.core.model.types import Millis


class Node(NamedTuple):
    """One run of a server process. `id` is its incarnation; `url` "" if it does not know its address.

    `ended_at` None: it is registered, and may still be declared dead because its lease has run out.
    `broker_id` is what Kafka clients call it, `kafka_port` 0 if it does not listen for them.
    """

    id: int
    node_id: str
    url: str
    version: str
    started_at: Millis
    renewed_at: Millis
    expires_at: Millis
    ended_at: Millis | None
    end_reason: str | None
    broker_id: int = 0
    kafka_host: str = ""
    kafka_port: int = 0

    def is_live(self, now: Millis) -> bool:
        """It is registered, and its lease has not run out."""
        return self.ended_at is None and self.expires_at > now


class Partition(NamedTuple):
    """A coordinator partition. `state`: LOADING, ACTIVE or CLOSED; `load_ms`: how long its last loading took."""

    partition: int
    owner: int | None
    epoch: int
    gap: int
    state: str
    state_since: Millis
    active_since: Millis | None
    load_ms: Millis | None


@dataclass(frozen=True)
class View:
    """Registered nodes, and partitions, at the instant `now` of the database's clock; both in order of their keys."""

    now: Millis
    nodes: Sequence[Node]
    partitions: Sequence[Partition]

    @cached_property
    def live(self) -> Mapping[int, Node]:
        """The nodes whose leases have not run out, by incarnation."""
        return {node.id: node for node in self.nodes if node.is_live(self.now)}

    @cached_property
    def by_partition(self) -> Mapping[int, Partition]:
        """The partitions by number."""
        return {found.partition: found for found in self.partitions}

    @property
    def needs_care(self) -> bool:
        """A lease has run out, or a partition has no live owner."""
        return len(self.live) < len(self.nodes) or any(found.owner not in self.live for found in self.partitions)

    def owned_by(self, incarnation: int) -> list[Partition]:
        """The partitions of a node."""
        return [found for found in self.partitions if found.owner == incarnation]

    def owner_of(self, partition: int) -> Node | None:
        """The live node that owns a partition; None: no live node does."""
        found = self.by_partition.get(partition)
        return None if found is None or found.owner is None else self.live.get(found.owner)
