"""Assignor cases run through the assignors of the coordinator's core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groups.core.assignors import BUILT_IN, GroupSpec, MemberSpec
from tests.conformance.assignment import Assignment
from tests.conformance.driver import NoDriver


def assign(raw: Mapping[str, Any]) -> Assignment:
    """The assignment that the case's assignor computes. Topic names stand for topic ids."""
    assignor = BUILT_IN.get(raw["assignor"])
    if assignor is None:
        raise NoDriver(f"no driver for server assignor {raw['assignor']}")
    members = {member_id: _member(raw["members"][member_id], raw["topics"]) for member_id in sorted(raw["members"])}
    homogeneous = len({member.topics for member in members.values()}) == 1
    if "subscription_type" in raw:
        homogeneous = raw["subscription_type"] == "HOMOGENEOUS"
    subscribed = {topic for member in members.values() for topic in member.topics}
    topics = {topic: raw["topics"][topic] for topic in sorted(subscribed)}
    targets = assignor.assign(GroupSpec(members, homogeneous=homogeneous), topics)
    return {
        member_id: {topic: sorted(numbers) for topic, numbers in targets.get(member_id, {}).items()}
        for member_id in members
    }


def _member(raw: Mapping[str, Any], topics: Mapping[str, int]) -> MemberSpec:
    return MemberSpec(
        topics=frozenset(topic for topic in raw["topics"] if topic in topics),
        target={topic: frozenset(numbers) for topic, numbers in raw["owned"].items()},
        instance_id=raw.get("instance_id"),
        rack_id=raw["rack"],
    )
