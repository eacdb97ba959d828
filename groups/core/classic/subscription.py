"""What the members of a classic group subscribe to, according to their ConsumerProtocol metadata.

Source: offsets.md 6.1.
"""

from __future__ import annotations

from groups.core.model.types import ClassicGroup, ConsumerProtocol

CONSUMER = "consumer"
"""The protocol type whose members say which topics they read."""


def topics_of_generation(
    group: ClassicGroup, protocol_name: str | None, protocol: ConsumerProtocol | None
) -> frozenset[str] | None:
    """The topics that the members name for the protocol they agreed on; None: unknown.

    `protocol` reads their metadata; None: it cannot be read.
    """
    if group.protocol_type != CONSUMER:
        return None
    names: set[str] = set()
    for member in group.members.values():
        metadata = member.metadata_of(protocol_name)
        subscription = protocol.decode_subscription(metadata) if protocol is not None else None
        if subscription is None:
            return None
        names.update(subscription.topics)
    return frozenset(names)
