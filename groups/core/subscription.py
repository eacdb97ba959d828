"""Which topics a group is subscribed to, as far as can be told (offsets specification, section 6.1).

It decides whose offsets may be deleted, and which of them retention leaves alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from groups.core.consumer.group import ConsumerGroup
from groups.core.group import Group
from groups.core.types import ClassicGroup, ConsumerProtocol

CONSUMER = "consumer"
"""The protocol type whose members say which topics they read."""


@dataclass(frozen=True, slots=True)
class SubscribedTopics:
    """The topics of a group's members. `names` None: they cannot be told, so it may be any topic."""

    names: frozenset[str] | None

    @property
    def known(self) -> bool:
        """It can be told."""
        return self.names is not None

    def __contains__(self, topic: str) -> bool:
        return self.names is None or topic in self.names


NONE = SubscribedTopics(frozenset())
ANY = SubscribedTopics(None)


def subscribed_topics(group: Group | None, protocol: ConsumerProtocol | None) -> SubscribedTopics:
    """What the members of a group read. `protocol` reads the bytes of classic members; without it nobody can tell.

    A group of another protocol type than `consumer`, and one without members, is subscribed to nothing.
    """
    if group is None:
        return NONE
    if isinstance(group, ConsumerGroup):
        return SubscribedTopics(frozenset(group.subscribed_topics()))
    if group.protocol_type != CONSUMER or not group.members:
        return NONE
    return _of_classic_members(group, protocol)


def _of_classic_members(group: ClassicGroup, protocol: ConsumerProtocol | None) -> SubscribedTopics:
    if group.protocol_name is None or protocol is None:
        return ANY
    names: set[str] = set()
    for member in group.members.values():
        metadata = next((p.metadata for p in member.protocols if p.name == group.protocol_name), None)
        subscription = protocol.decode_subscription(metadata) if metadata is not None else None
        if subscription is None:
            return ANY
        names.update(subscription.topics)
    return SubscribedTopics(frozenset(names))
