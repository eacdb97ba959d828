"""The assignors that run in the coordinator, for groups of the consumer protocol and share groups.

Pure functions of their arguments, like everything in the core. Source: consumer.md 5; KIP-848.
"""

from __future__ import annotations

from collections.abc import Mapping

from groups.core.assignors.base import Assignor, AssignorFailed, GroupSpec, MemberSpec, Partitions
from groups.core.assignors.range import RangeAssignor
from groups.core.assignors.simple import SimpleAssignor
from groups.core.assignors.uniform import UniformAssignor

__all__ = [
    "BUILT_IN",
    "SHARE",
    "Assignor",
    "AssignorFailed",
    "GroupSpec",
    "MemberSpec",
    "Partitions",
    "RangeAssignor",
    "SimpleAssignor",
    "UniformAssignor",
]

BUILT_IN: Mapping[str, Assignor] = {"uniform": UniformAssignor(), "range": RangeAssignor()}
"""By name, in the order of Kafka's default `group.consumer.assignors`: the first is the default."""

SHARE: Mapping[str, Assignor] = {"simple": SimpleAssignor()}
"""Those of share groups, which cannot choose: Kafka's `group.share.assignors` has no other."""
