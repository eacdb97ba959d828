"""Groups in a given state, for tests that read them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from groups.core.model.types import ClassicGroup, ClassicMember, GroupState, Members, Millis, Protocol
from kcoord.protocol.consumer_protocol import (
    Assignment,
    Subscription,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from tests.conftest import START_MS


def member(member_id: str, *partitions: int, topic: str = "orders", **changes: Any) -> ClassicMember:
    """A member of protocol type `consumer` that owns some partitions of a topic."""
    plain = ClassicMember(
        member_id=member_id,
        instance_id=None,
        client_id=f"client-{member_id}",
        client_host="192.0.2.1",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=300_000,
        protocol_type="consumer",
        protocols=(Protocol("range", encode_subscription(Subscription((topic,)))),),
        assignment=encode_assignment(Assignment({topic: partitions})) if partitions else b"",
        is_new=False,
        session_deadline=START_MS + 45_000,
        last_heartbeat_at=START_MS,
    )
    return replace(plain, **changes)


def group(group_id: str, state: GroupState, *members: ClassicMember, **changes: Any) -> ClassicGroup:
    """A group in `state`, in generation 1 if it has members; its first member leads."""
    plain = ClassicGroup(
        group_id=group_id,
        state=state,
        previous_state=GroupState.EMPTY,
        state_since=START_MS,
        generation_id=1 if members else 0,
        protocol_type="consumer" if members else None,
        protocol_name="range" if members else None,
        leader_id=members[0].member_id if members else None,
        members=Members(members),
        generation_topics=topics_of(members) if members else None,
    )
    return replace(plain, **changes)


def topics_of(members: tuple[ClassicMember, ...]) -> frozenset[str] | None:
    """What the members subscribe to; None where some subscription cannot be read."""
    topics: set[str] = set()
    for each in members:
        for protocol in each.protocols:
            subscription = decode_subscription(protocol.metadata)
            if subscription is None:
                return None
            topics.update(subscription.topics)
    return frozenset(topics)


def stable_group(group_id: str, members: int = 2, expires: Millis | None = START_MS + 45_000) -> ClassicGroup:
    """A Stable group whose members own a partition of `orders` each; their sessions run out at `expires`."""
    joined = (member(f"m{number}", number, session_deadline=expires) for number in range(members))
    return group(group_id, GroupState.STABLE, *joined)
