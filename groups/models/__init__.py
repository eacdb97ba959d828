"""The schema of groups: fields, constraints, indexes.

Models serve migrations, admin, pages and tests. The protocol's rows are written only by the stores, in SQL, so these
models refuse to be saved or deleted (`ProtocolOwned`). Children of a group go with it in the database itself
(`on delete cascade`, see `0001_tables.sql`): Django's own cascade would never see the store's deletes.
"""

from groups.models.catalogue import GroupConfigOverride, GroupLabels, Revision, Topic, Watermark
from groups.models.membership import (
    Assignment,
    ClientSoftware,
    ConsumerMember,
    Event,
    GenerationTopics,
    Group,
    Member,
    PendingMember,
    group_key,
)
from groups.models.nodes import CoordinatorNode, CoordinatorPartition, PartitionChange
from kcoord.database.fields import ProtocolOwned

__all__ = [
    "Assignment",
    "ClientSoftware",
    "ConsumerMember",
    "CoordinatorNode",
    "CoordinatorPartition",
    "Event",
    "GenerationTopics",
    "Group",
    "GroupConfigOverride",
    "GroupLabels",
    "Member",
    "PartitionChange",
    "PendingMember",
    "ProtocolOwned",
    "Revision",
    "Topic",
    "Watermark",
    "group_key",
]
