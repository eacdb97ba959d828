"""`GivenClassicGroup`: a group as if its members had joined and synced (offsets.md 0)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from groups.configs import CONSUMER_PROTOCOL as CODEC
from groups.core.classic.rebalance import topics_of_generation
from groups.core.model.types import ClassicGroup, ClassicMember, GroupState, JoinTimer, Members, Millis, Protocol
from kcoord.protocol.consumer_protocol import Subscription, encode_subscription

FOREVER_MS: Millis = 10**11
"""Three years: what the convention calls practically infinite."""

UNPARSABLE = b"\x00"
"""Bytes that no version of a ConsumerProtocol subscription has."""


def classic_group(args: Mapping[str, Any], now: Millis) -> ClassicGroup:
    """The group of a `GivenClassicGroup`: sessions armed and state entered at `now`."""
    state = GroupState(args["state"])
    name = args.get("protocol_name", "range")
    unparsable = args.get("unparsable_subscription", False)
    members = [
        _member(raw, args.get("protocol_type", "consumer"), name, state, now, unparsable=unparsable)
        for raw in args.get("members", ())
    ]
    preparing, completing = state is GroupState.PREPARING_REBALANCE, state is GroupState.COMPLETING_REBALANCE
    given = ClassicGroup(
        group_id=args["group_id"],
        state=state,
        previous_state=_PREVIOUS[state],
        state_since=now,
        generation_id=args.get("generation_id", 1),
        protocol_type=args.get("protocol_type", "consumer") or None,  # "" means absent (offsets.md 1)
        protocol_name=name if members else None,
        leader_id=members[0].member_id if members else None,
        join_timer=JoinTimer(now + FOREVER_MS) if preparing else None,
        sync_deadline=now + FOREVER_MS if completing else None,
        members=Members(members),
    )
    topics = topics_of_generation(given, given.protocol_name, CODEC)
    return replace(given, generation_topics=topics)


def forced(group: ClassicGroup, state: GroupState, now: Millis) -> ClassicGroup:
    """`ForceState`: the group as if requests had led it to `state` at `now`; its members are left alone."""
    return replace(
        group,
        state=state,
        previous_state=group.state,
        state_since=now,
        join_timer=JoinTimer(now + FOREVER_MS) if state is GroupState.PREPARING_REBALANCE else None,
        sync_deadline=now + FOREVER_MS if state is GroupState.COMPLETING_REBALANCE else None,
    )


_PREVIOUS = {
    GroupState.EMPTY: GroupState.PREPARING_REBALANCE,
    GroupState.PREPARING_REBALANCE: GroupState.STABLE,
    GroupState.COMPLETING_REBALANCE: GroupState.PREPARING_REBALANCE,
    GroupState.STABLE: GroupState.COMPLETING_REBALANCE,
    GroupState.DEAD: GroupState.EMPTY,
}


def _member(
    raw: Mapping[str, Any], protocol_type: str, name: str, state: GroupState, now: Millis, *, unparsable: bool
) -> ClassicMember:
    session_timeout_ms = raw.get("session_timeout_ms", FOREVER_MS)
    metadata = UNPARSABLE if unparsable else encode_subscription(Subscription(tuple(raw.get("subscribed_topics", ()))))
    return ClassicMember(
        member_id=raw["member_id"],
        instance_id=raw.get("group_instance_id"),
        client_id="conformance",
        client_host="127.0.0.1",
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=FOREVER_MS,
        protocol_type=protocol_type,
        protocols=(Protocol(name, metadata),),
        is_new=False,
        pending_sync=state is GroupState.COMPLETING_REBALANCE,
        session_deadline=now + session_timeout_ms,
        last_heartbeat_at=now,
    )
