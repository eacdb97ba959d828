"""Deletions of the offsets convention through the core, and leaving as it writes it.

Source: offsets.md 6 and 8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from groups.core.model.commands import Command, DeleteGroup, DeleteOffsets, LeaveGroup, LeavingMember
from groups.core.model.replies import DeleteOffsetsReply, Done, LeaveReply
from groups.core.model.types import ClassicGroup
from kcoord.protocol.errors import Error
from offsets.core.deletion import OffsetDelete, refuse, spare
from offsets.core.types import PartitionCounts
from tests.conformance import core_terms
from tests.conformance.driver import Response

Args = Mapping[str, Any]
Decide = Callable[[Command], Any]
"""Decides a command on its group; returns the reply."""
IsDenied = Callable[[str, str, str], bool]
"""Whether a check fails: operation, type and name of the resource."""
Remove = Callable[[str, str, int], None]
"""Takes away what a group has on a partition, committed or pending, if anything."""


def delete_offsets(
    args: Args, decide: Decide, remove: Remove, topics: PartitionCounts, denied: frozenset[str] = frozenset()
) -> Response:
    """OffsetDelete (offsets.md 6)."""
    partitions = tuple((topic, number) for topic, numbers in args["topics"].items() for number in numbers)
    refused, passed = refuse(OffsetDelete(args["group_id"], partitions, denied), topics)
    reply = decide(DeleteOffsets(args["group_id"], frozenset(topic for topic, _ in passed)))
    assert isinstance(reply, DeleteOffsetsReply)
    if reply.error is not Error.NONE:
        return {"error": reply.error.name, "partitions": {}}
    results, gone = spare(passed, reply.subscribed)
    for topic, partition in gone:
        remove(args["group_id"], topic, partition)
    answered: dict[str, dict[str, str]] = {}
    for topic, partition, error in refused + results:
        answered.setdefault(topic, {})[str(partition)] = error.name
    return {"error": "NONE", "partitions": answered}


def delete_groups(args: Args, decide: Decide, is_denied: IsDenied) -> Response:
    """DeleteGroups (offsets.md 8): a result for each, one after the other."""
    results = {}
    for group_id in dict.fromkeys(args["groups_names"]):
        if is_denied("DELETE", "GROUP", group_id):
            results[group_id] = Error.GROUP_AUTHORIZATION_FAILED.name
            continue
        reply = decide(DeleteGroup(group_id))
        assert isinstance(reply, Done)
        results[group_id] = reply.error.name
    return {"results": results}


def describe_groups(args: Args, classic: Callable[[str], ClassicGroup | None], is_denied: IsDenied) -> Response:
    """DescribeGroups (offsets.md 8.3): by id; of the metadata only whether there is any."""
    groups: dict[str, Response] = {}
    for group_id in args["groups"]:
        if is_denied("DESCRIBE", "GROUP", group_id):
            groups[group_id] = {"error": Error.GROUP_AUTHORIZATION_FAILED.name, "state": "", "members": {}}
            continue
        described = core_terms.described(classic(group_id))
        groups[group_id] = {
            **described,
            "protocol_data": described["protocol_name"],
            "members": {
                member["member_id"]: {**member, "metadata_present": bool(member["metadata"])}
                for member in described["members"]
            },
        }
    return {"groups": groups}


def leave(args: Args, decide: Decide) -> Response:
    """LeaveGroup with one member, its error at the top."""
    reply = decide(LeaveGroup(args["group_id"], (LeavingMember(args["member_id"], None),)))
    assert isinstance(reply, LeaveReply)
    (left,) = reply.members or (reply,)
    return {"error": left.error.name}
