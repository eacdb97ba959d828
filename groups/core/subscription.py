"""Which topics a group is subscribed to, as far as is known (offsets.md 6.1).

This decides which offsets may be deleted, and which of them retention keeps.
"""

from __future__ import annotations

from dataclasses import dataclass

from groups.core.model.consumer_group import EpochGroup, ShareGroup
from groups.core.model.group import Group
from groups.core.model.types import CONSUMER


@dataclass(frozen=True, slots=True)
class SubscribedTopics:
    """The topics of a group's members. `names` None: unknown, so it may be any topic."""

    names: frozenset[str] | None

    @property
    def known(self) -> bool:
        """The topics are known."""
        return self.names is not None

    def __contains__(self, topic: str) -> bool:
        return self.names is None or topic in self.names


NONE = SubscribedTopics(frozenset())
ANY = SubscribedTopics(None)


def subscribed_topics(group: Group | None) -> SubscribedTopics:
    """What the members of a group read. During a rebalance of a classic group, what they read before it counts.

    A group of another protocol type than `consumer` is subscribed to nothing, and neither is a share group: it commits
    nothing.
    """
    if group is None:
        return NONE
    if isinstance(group, ShareGroup):
        return NONE
    if isinstance(group, EpochGroup):
        return SubscribedTopics(frozenset(group.subscribed_topics()))
    if group.protocol_type != CONSUMER or (group.generation_topics is None and not group.members):
        return NONE
    return SubscribedTopics(group.generation_topics)
