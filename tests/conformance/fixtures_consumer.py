"""The consumer group that cases of the offsets convention take as given (offsets.md 0)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from groups.core.consumer.target import metadata_hash
from groups.core.model.consumer_group import ClassicMetadata, ConsumerGroup, ConsumerMember, ConsumerMembers, Timers
from groups.core.model.persistent import DeadlineMap, Timer
from groups.core.model.types import Millis, Protocol, TopicView
from kcoord.protocol.consumer_protocol import Subscription, encode_subscription
from tests.conformance.fixtures import FOREVER_MS


def consumer_group(
    args: Mapping[str, Any], session_timeout_ms: Millis, topics: TopicView, now: Millis
) -> ConsumerGroup:
    """The group of a `GivenConsumerGroup`: sessions armed, the topics looked at and the target computed at `now`.

    The convention names no partitions, so nobody has any.
    """
    members = [_member(raw, session_timeout_ms) for raw in args.get("members", ())]
    group = ConsumerGroup(
        group_id=args["group_id"],
        state_since=now,
        group_epoch=args["group_epoch"],
        assignment_epoch=args.get("assignment_epoch", args["group_epoch"]),
        assignment_timestamp=now,
        metadata_version=topics.version,
        members=ConsumerMembers(members),
        timers=Timers(
            session=DeadlineMap({member.member_id: Timer(now + session_timeout_ms, now) for member in members})
        ),
    )
    return replace(group, metadata_hash=metadata_hash(group, topics))


def _member(raw: Mapping[str, Any], session_timeout_ms: Millis) -> ConsumerMember:
    names = raw.get("subscribed_topic_names", ())
    metadata = Protocol("range", encode_subscription(Subscription(tuple(names))))
    return ConsumerMember(
        member_id=raw["member_id"],
        client_id="conformance",
        client_host="127.0.0.1",
        rebalance_timeout_ms=FOREVER_MS,
        subscribed_topic_names=frozenset(names),
        classic=ClassicMetadata(session_timeout_ms, (metadata,)) if raw.get("use_classic_protocol") else None,
        member_epoch=raw["member_epoch"],
        previous_member_epoch=raw["member_epoch"],
    )
