"""What an assignor is given and what it returns.

Source: consumer.md 5.3; Kafka's `ConsumerGroupPartitionAssignor`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

Partitions = Mapping[str, frozenset[int]]
"""Topic id -> partitions. A topic without partitions is absent."""


class AssignorFailed(Exception):
    """An assignor cannot compute an assignment; the text says why. The group keeps the target it has."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """A member as an assignor sees it: `topics` are the ids it subscribes to, `target` is what it should have now."""

    topics: frozenset[str]
    target: Partitions = field(default_factory=dict)
    instance_id: str | None = None
    rack_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """All members by id, in ascending order of id. `homogeneous`: all of them subscribe to the same topics."""

    members: Mapping[str, MemberSpec]
    homogeneous: bool


class Assignor(Protocol):
    """Decides which member should have which partitions."""

    @property
    def name(self) -> str:
        """The name that members request it by (`server_assignor`)."""
        ...

    def assign(self, spec: GroupSpec, topics: Mapping[str, int]) -> Mapping[str, Partitions]:
        """The target of each member; a member that is left out gets nothing.

        Parameters: `spec` the members; `topics` the number of partitions of each subscribed topic by id, in the order
        of the topics' names. The same arguments give the same result. Raises `AssignorFailed`.
        """
        ...
