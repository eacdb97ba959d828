"""Who is there and who owns what, as one transaction saw it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from groups.core.model.types import Millis


class Node(NamedTuple):
    """A node that was not declared dead. `id` is its incarnation; `url` "" if it does not know its address."""

    id: int
    node_id: str
    url: str
    version: str
    started_at: Millis
    renewed_at: Millis
    expires_at: Millis


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
    """Nodes and partitions at the instant `now` of the database's clock; both in ascending order of their keys."""

    now: Millis
    nodes: Sequence[Node]
    partitions: Sequence[Partition]

    @cached_property
    def live(self) -> Mapping[int, Node]:
        """The nodes whose leases have not run out, by incarnation."""
        return {node.id: node for node in self.nodes if node.expires_at > self.now}

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
