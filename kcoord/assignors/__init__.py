"""Client-side assignors: who reads which partition.

Pure and without dependencies: the leader of a group runs them, in the Python client or on the server for a client
that has none (`POST /v1/assign`).
"""

from kcoord.assignors.assignor import (
    Assignment,
    Assignor,
    AssignorHooks,
    MemberSubscription,
    PartitionRacks,
    Partitions,
    PartitionsPerTopic,
    RebalanceProtocol,
    TopicPartition,
)
from kcoord.assignors.checked import FaultyAssignmentError, checked_assign
from kcoord.assignors.range_assignor import RangeAssignor
from kcoord.assignors.registry import AssignorLoadError, UnknownAssignorError, get_assignor, known_assignors
from kcoord.assignors.roundrobin import RoundRobinAssignor
from kcoord.assignors.sticky import CooperativeStickyAssignor, StickyAssignor

__all__ = [
    "Assignment",
    "Assignor",
    "AssignorHooks",
    "AssignorLoadError",
    "CooperativeStickyAssignor",
    "FaultyAssignmentError",
    "MemberSubscription",
    "PartitionRacks",
    "Partitions",
    "PartitionsPerTopic",
    "RangeAssignor",
    "RebalanceProtocol",
    "RoundRobinAssignor",
    "StickyAssignor",
    "TopicPartition",
    "UnknownAssignorError",
    "checked_assign",
    "get_assignor",
    "known_assignors",
]
