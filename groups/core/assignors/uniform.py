"""`uniform`: everybody has about as many partitions, and keeps what it has where that is possible.

Source: consumer.md 5.5 and 5.6; Kafka's `UniformAssignor`.
"""

from __future__ import annotations

from collections.abc import Mapping

from groups.core.assignors import uniform_heterogeneous, uniform_homogeneous
from groups.core.assignors.base import GroupSpec, Partitions


class UniformAssignor:
    """The default of Kafka. Racks are not looked at."""

    name = "uniform"

    def assign(self, spec: GroupSpec, topics: Mapping[str, int]) -> Mapping[str, Partitions]:
        """See `Assignor`."""
        if not spec.members:
            return {}
        if spec.homogeneous:
            return uniform_homogeneous.assign(spec, topics)
        return uniform_heterogeneous.assign(spec, topics)
