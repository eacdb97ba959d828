"""Simulates assignments of groups as they are now. Reads only.

Source: http-api.md 4 (`POST /v1/assignments/simulate`); the assignors are those of classic members (Kafka's
`ConsumerPartitionAssignor`) and of the coordinator (consumer.md 5).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from groups.core.assignors import Assignor, AssignorFailed, GroupSpec, MemberSpec
from groups.core.consumer.target import preferred_assignor
from groups.core.model.consumer_group import ConsumerGroup, ShareGroup
from groups.core.model.group import Group
from groups.core.model.types import ClassicGroup, TopicView
from groups.engine.assign import assign as assign_classic
from groups.engine.decision_context import DecisionContext, DecisionContexts
from groups.engine.service import GroupService
from groups.readmodel import unknown_group
from groups.simulation.rules import Assign, Changes, Partitions, Simulation, Standing, simulate
from kcoord.assignors import MemberSubscription, known_assignors
from kcoord.process.runtime import Runtime
from kcoord.protocol.consumer_protocol import decode_assignment, decode_subscription
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.rest.paging import EVERYTHING, Visible

CONSUMER = "consumer"
MOST_ADDED = 10_000
MOST_PARTITIONS = 100_000


class Simulations:
    """Answers what would move. Methods may raise ProtocolError COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, runtime: Runtime) -> None:
        self._groups = runtime.get(GroupService)
        self._contexts = runtime.get(DecisionContexts)

    async def assignors(self, group_id: str) -> tuple[Sequence[str], str]:
        """The assignors that a group can be simulated with, and the one that it uses.

        Raises GROUP_ID_NOT_FOUND, INVALID_REQUEST for a share group.
        """
        group, world = await self._read(group_id)
        return _offered(group, world)

    async def _read(self, group_id: str) -> tuple[Group, DecisionContext]:
        group = (await self._groups.describe(group_id)).group
        if group is None:
            raise unknown_group(group_id)
        if isinstance(group, ShareGroup):
            told = f"group {group_id!r} is a share group, whose members share partitions: there is nothing to simulate"
            raise ProtocolError(Error.INVALID_REQUEST, told)
        return group, await self._contexts.context_of(group_id)

    async def simulate(
        self, group_id: str, changes: Changes, assignor: str | None = None, visible: Visible = EVERYTHING
    ) -> Simulation:
        """What the assignor (None: the one in use) would assign, beside what members own now.

        `visible`: the topics that the caller may describe; others are left out of a classic group. Raises
        GROUP_ID_NOT_FOUND; TOPIC_AUTHORIZATION_FAILED if members of a consumer group use other topics;
        UNSUPPORTED_ASSIGNOR, naming those that there are; INVALID_REQUEST, naming the field.
        """
        group, world = await self._read(group_id)
        offered, used = _offered(group, world)
        name = assignor or used
        if name not in offered:
            told = f"assignor: {name!r} is not offered for this group; use one of {', '.join(offered)}"
            raise ProtocolError(Error.UNSUPPORTED_ASSIGNOR, told, fields={"field": "assignor"})
        if isinstance(group, ConsumerGroup):
            members = _of_consumers(group, world.topics)
            if any(topic not in visible for member in members for topic in (*member.topics, *member.owned)):
                denied = f"members of group {group_id!r} use topics that the token may not DESCRIBE"
                raise ProtocolError(Error.TOPIC_AUTHORIZATION_FAILED, denied)
            run: Assign = partial(_assign_by_coordinator, world.assignors[name])
        else:
            assert isinstance(group, ClassicGroup)
            members = [_seen(member, visible) for member in _of_classic(group)]
            run = partial(_assign_by_leader, name)
        known = {topic: found.partitions for topic, found in world.topics.by_name.items() if topic in visible}
        # A large assignment takes seconds; the event loop must serve others meanwhile.
        return await asyncio.to_thread(simulate, members, known, changes, name, run)


def _offered(group: Group, world: DecisionContext) -> tuple[Sequence[str], str]:
    """The assignors for a group, and the one in use."""
    if isinstance(group, ConsumerGroup):
        return tuple(world.assignors), preferred_assignor(group, world.assignors)
    known = known_assignors()
    assert isinstance(group, ClassicGroup), "a share group is refused before"
    return known, group.protocol_name if group.protocol_name in known else known[0]


def _seen(member: Standing, visible: Visible) -> Standing:
    """A member without topics that the caller may not describe, as in the description of a classic group."""
    owned = {topic: partitions for topic, partitions in member.owned.items() if topic in visible}
    return replace(member, topics=frozenset(topic for topic in member.topics if topic in visible), owned=owned)


def _of_consumers(group: ConsumerGroup, topics: TopicView) -> list[Standing]:
    """Members with the topics that they subscribe to, and their targets: what they own once all have reconciled."""
    return [
        Standing(
            member_id,
            frozenset(group.subscription_of(member)),
            {
                topics.by_id[topic_id].name: sorted(partitions)
                for topic_id, partitions in member.target.items()
                if topic_id in topics.by_id
            },
            member.instance_id,
            member.rack_id,
        )
        for member_id, member in group.members.items()
    ]


def _of_classic(group: ClassicGroup) -> list[Standing]:
    """Members with what their metadata says. Raises INVALID_REQUEST for a group whose members do not share topics."""
    if group.protocol_type != CONSUMER:
        told = f"group {group.group_id!r} has members of the protocol type {group.protocol_type or 'none'!r}"
        text = f"group_id: {told}; only type 'consumer' can be simulated"
        raise ProtocolError(Error.INVALID_REQUEST, text, fields={"field": "group_id"})
    found = []
    for member in group.members.values():
        names = [protocol.name for protocol in member.protocols]
        wanted = group.protocol_name if group.protocol_name in names else names[0]
        metadata = next(protocol.metadata for protocol in member.protocols if protocol.name == wanted)
        subscription, assignment = decode_subscription(metadata), decode_assignment(member.assignment)
        found.append(
            Standing(
                member.member_id,
                frozenset(subscription.topics if subscription else ()),
                assignment.partitions if assignment else {},
                member.instance_id,
                subscription.rack_id if subscription else None,
                subscription is not None and (assignment is not None or not member.assignment),
            )
        )
    return found


def _assign_by_leader(name: str, members: Sequence[Standing], topics: Mapping[str, int]) -> Mapping[str, Partitions]:
    """As the leader of a classic group assigns."""
    subscriptions = [
        MemberSubscription(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            topics=tuple(sorted(member.topics)),
            owned_partitions=member.owned,
            generation_id=1,
            rack_id=member.rack_id,
        )
        for member in members
    ]
    return dict(assign_classic(name, subscriptions, topics))


def _assign_by_coordinator(
    assignor: Assignor, members: Sequence[Standing], topics: Mapping[str, int]
) -> Mapping[str, Partitions]:
    """As the coordinator computes the target of a consumer group; names serve as ids of topics."""
    specs = {
        member.member_id: MemberSpec(
            frozenset(topic for topic in member.topics if topic in topics),
            {topic: frozenset(owned) for topic, owned in member.owned.items() if topic in topics},
            member.instance_id,
            member.rack_id,
        )
        for member in sorted(members, key=lambda member: member.member_id)
    }
    homogeneous = len({spec.topics for spec in specs.values()}) <= 1
    try:
        targets = assignor.assign(GroupSpec(specs, homogeneous), topics)
    except AssignorFailed as error:
        raise ProtocolError(Error.UNKNOWN_SERVER_ERROR, f"assignor {assignor.name!r} failed: {error}") from error
    return {member_id: {t: sorted(p) for t, p in targets.get(member_id, {}).items()} for member_id in specs}
