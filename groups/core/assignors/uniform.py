"""`uniform`: all members have about the same number of partitions, and keep theirs where possible.

Source: consumer.md 5.5 and 5.6; Kafka's `UniformAssignor`.
"""

from __future__ import annotations

from collections.abc import Mapping

from groups.core.assignors import uniform_heterogeneous, uniform_homogeneous
from groups.core.assignors.base import GroupSpec, Partitions


class UniformAssignor:
    """Kafka's default. Racks are ignored."""

    name = "uniform"

    def assign(self, spec: GroupSpec, topics: Mapping[str, int]) -> Mapping[str, Partitions]:
        """See `Assignor`."""
        if not spec.members:
            return {}
        if spec.homogeneous:
            return uniform_homogeneous.assign(spec, topics)
        return uniform_heterogeneous.assign(spec, topics)
