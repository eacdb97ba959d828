"""Find the coordinator of a group, and compute an assignment for a leader that has no assignor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groups.api import endpoints, handlers, wire
from groups.engine.assign import assign as compute
from groups.engine.assign import member_subscription
from groups.engine.availability import CoordinatorAvailability
from groups.nodes.directory import GroupCoordinator, NodeDirectory
from groups.topics import TopicService, partition_counts
from kcoord.access.quotas.budgets import Budget, Metering
from kcoord.access.rights import Operation
from kcoord.assignors import MemberSubscription
from kcoord.door.http.addresses import came_by
from kcoord.door.http.paths import check_group_id
from kcoord.door.http.problem import invalid
from kcoord.door.http.serving import Call, serve
from kcoord.process import off_loop
from kcoord.protocol.errors import Error, ProtocolError

MOST_KEYS = 1_000


@serve(endpoints.COORDINATOR, metering=Metering(Budget.READS))
async def coordinator(call: Call[None]) -> wire.CoordinatorResponse:
    """FindCoordinator for groups, several at once: the node that owns the coordinator partition of each.

    A stopped service is not available for any key; without the tables of offsets no key has a coordinator, except that
    keys the caller may not ask about are refused as such (offsets.md 8.1).
    """
    keys = call.query.get("group_id", ())
    if not 1 <= len(keys) <= MOST_KEYS:
        raise invalid(f"group_id: send 1 to {MOST_KEYS} group ids, for example ?group_id=a&group_id=b", "group_id")
    availability = call.runtime.get(CoordinatorAvailability)
    refused = {key: error for key in keys if (error := _refusal(call, key)) is not None}
    if len(refused) < len(set(keys)):
        if not availability.running:
            return wire.CoordinatorResponse([_none(key, Error.COORDINATOR_NOT_AVAILABLE) for key in keys])
        if not await availability.offsets_are_stored():
            refused = {**dict.fromkeys(keys, Error.COORDINATOR_NOT_AVAILABLE), **refused}
    directory = call.runtime.get(NodeDirectory)
    answers = []
    for key in keys:
        found = None if key in refused else await directory.coordinator_of(key, came_by())
        answers.append(
            _none(key, refused.get(key, Error.COORDINATOR_NOT_AVAILABLE)) if found is None else _coordinator(key, found)
        )
    return wire.CoordinatorResponse(answers)


def _refusal(call: Call[None], key: str) -> Error | None:
    """Why the caller gets no answer for the key; None: it gets one."""
    try:
        call.principal.require_group(Operation.DESCRIBE, check_group_id(key, may_be_empty=True))
    except ProtocolError as error:
        return error.error
    return None


def _none(key: str, error: Error) -> wire.Coordinator:
    return wire.Coordinator(key, -1, "", "", -1, "", error.code, error.name)


def _coordinator(key: str, found: GroupCoordinator) -> wire.Coordinator:
    return wire.Coordinator(
        key, found.partition, found.node_id, found.host, found.port, found.url, Error.NONE.code, Error.NONE.name
    )


@serve(endpoints.ASSIGN, is_big=True, metering=Metering(Budget.READS))
async def assign(call: Call[wire.AssignRequest]) -> wire.AssignResponse:
    """The assignment that an assignor gives some members. Topics the caller may not describe appear not to exist."""
    size = off_loop.PER_MEMBER * len(call.body.members)
    members = await off_loop.run(size, _subscriptions, call.body.members)
    names = {topic for member in members for topic in member.topics}
    visible = sorted(name for name in names if call.principal.may_topic(Operation.DESCRIBE, name))
    # A partition that is missing here would stay without an owner: nobody joins again because of it.
    partitions = partition_counts(await call.runtime.get(TopicService).current(), visible)
    return await off_loop.in_thread(_assigned, call.body.assignor, members, partitions)


def _subscriptions(members: Sequence[wire.AssignMember]) -> list[MemberSubscription]:
    return [
        member_subscription(
            member.member_id, member.group_instance_id, handlers.assign_subscription(member, f"members[{index}]")
        )
        for index, member in enumerate(members)
    ]


def _assigned(
    assignor: str, members: Sequence[MemberSubscription], partitions: Mapping[str, int]
) -> wire.AssignResponse:
    return wire.AssignResponse(
        [
            wire.MemberAssignment(member_id, {topic: list(found) for topic, found in by_topic.items()})
            for member_id, by_topic in compute(assignor, members, partitions)
        ]
    )
