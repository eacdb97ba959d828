"""Assignor cases run through the project's own assignors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kcoord.assignors import MemberSubscription, get_assignor
from tests.conformance import server_assignors
from tests.conformance.assignment import Assignment
from tests.conformance.driver import BrokenPromise

CLIENT_PREFIX = "classic-"
"""How the convention tells client-side assignors (the classic protocol's) from server-side ones."""


def assign(raw: Mapping[str, Any]) -> Assignment:
    """The assignment that the case's assignor computes, whatever order the members come in.

    Raises NoDriver for an assignor the project does not have, BrokenPromise when the order made a difference.
    """
    if not raw["assignor"].startswith(CLIENT_PREFIX):
        return server_assignors.assign(raw)
    assignor = get_assignor(raw["assignor"].removeprefix(CLIENT_PREFIX))
    members = [_subscription(member_id, member) for member_id, member in raw["members"].items()]
    racks = raw.get("partition_racks")
    result = assignor.assign(raw["topics"], members, racks)
    if assignor.assign(raw["topics"], members[::-1], racks) != result:
        raise BrokenPromise("the assignment depends on the order of the members")
    return {
        member_id: {topic: list(numbers) for topic, numbers in partitions.items()}
        for member_id, partitions in result.items()
    }


def _subscription(member_id: str, member: Mapping[str, Any]) -> MemberSubscription:
    return MemberSubscription(
        member_id=member_id,
        group_instance_id=member.get("instance_id"),
        topics=member["topics"],
        owned_partitions=member["owned"],
        generation_id=member["generation"],
        rack_id=member["rack"],
    )
