"""The assignors a consumer votes for, and their interface to the group: subscriptions out, an assignment back.

Source: KIP-429; classic.md 11.2; Kafka's `ConsumerCoordinator`.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kcoord.assignors import (
    Assignment,
    Assignor,
    AssignorHooks,
    AssignorLoadError,
    FaultyAssignmentError,
    MemberSubscription,
    RebalanceProtocol,
    UnknownAssignorError,
    checked_assign,
    get_assignor,
)
from kcoord.client.core import wire
from kcoord.client.errors import IllegalStateError, InconsistentGroupProtocolError, InvalidConfigurationError

log = logging.getLogger("kcoord.client")

SETTING = "partition_assignment_strategy"


@dataclass(frozen=True, slots=True)
class Owned:
    """Partitions by topic, and the generation they were assigned in."""

    partitions: Mapping[str, Sequence[int]] = field(default_factory=dict)
    generation_id: int = -1


class Strategies:
    """The configured assignors, preferred first.

    `protocol` is the strongest rebalance protocol that all of them support. Raises InvalidConfigurationError.
    """

    def __init__(self, configured: Sequence[str | Assignor]) -> None:
        self._assignors: dict[str, Assignor] = {}
        for item in configured:
            assignor = _resolve(item)
            if assignor.name in self._assignors:
                raise InvalidConfigurationError(SETTING, f"{assignor.name!r} is listed twice")
            self._assignors[assignor.name] = assignor
        common = set.intersection(*(set(assignor.protocols) for assignor in self._assignors.values()))
        if not common:
            raise InvalidConfigurationError(
                SETTING, f"{', '.join(self._assignors)} support no rebalance protocol in common"
            )
        cooperative = RebalanceProtocol.COOPERATIVE in common
        self.protocol = RebalanceProtocol.COOPERATIVE if cooperative else RebalanceProtocol.EAGER

    def protocols(
        self, topics: Sequence[str], owned: Owned, remembered: Owned, rack: str | None
    ) -> list[dict[str, Any]]:
        """The `protocols` of a join.

        Parameters: `owned` what the member reads now; `remembered` what it was last assigned. An assignor that only
        supports the eager protocol gets what is remembered, so that it can be sticky though everything is revoked;
        a cooperative one must get what is really owned, as it withholds what others own.
        """
        listed = []
        for name, assignor in self._assignors.items():
            told = owned if RebalanceProtocol.COOPERATIVE in assignor.protocols else remembered
            data = assignor.subscription_user_data(topics) if isinstance(assignor, AssignorHooks) else None
            subscription = {
                "topics": sorted(topics),
                "owned_partitions": {topic: list(partitions) for topic, partitions in told.partitions.items()},
                "generation_id": told.generation_id,
                "rack_id": rack,
                "user_data": base64.b64encode(data).decode() if data is not None else None,
            }
            listed.append({"name": name, "subscription": subscription})
        return listed

    def assign(
        self, name: str, members: Sequence[wire.JoinedMember], partitions_per_topic: Mapping[str, int]
    ) -> Assignment:
        """The leader's work: run the assignor that the group voted for.

        Raises InconsistentGroupProtocolError if a member's subscription cannot be decoded or the assignor is not
        one of ours, IllegalStateError if the assignor returned an unusable assignment.
        """
        assignor = self._voted(name)
        subscriptions = [_subscription(member) for member in members]
        try:
            assignment = checked_assign(assignor, partitions_per_topic, subscriptions)
        except FaultyAssignmentError as error:
            raise IllegalStateError(str(error)) from error
        if self.protocol is RebalanceProtocol.COOPERATIVE:
            _refuse_moves_at_once(name, subscriptions, assignment)
        return assignment

    def assigned(self, name: str, partitions: Mapping[str, Sequence[int]], generation_id: int, data: bytes) -> None:
        """Tell the assignor, if it keeps state, what this member was assigned."""
        assignor = self._voted(name)
        if isinstance(assignor, AssignorHooks):
            assignor.on_assignment(partitions, generation_id, data)

    def _voted(self, name: str) -> Assignor:
        try:
            return self._assignors[name]
        except KeyError:
            raise InconsistentGroupProtocolError(
                f"the group uses the assignor {name!r}, this member offered {', '.join(self._assignors)}"
            ) from None


def topics_of(members: Sequence[wire.JoinedMember]) -> list[str]:
    """Every topic that a member subscribes to, in name order."""
    return sorted(
        {topic for member in members for topic in (member.subscription.topics if member.subscription else ())}
    )


def _resolve(item: str | Assignor) -> Assignor:
    if isinstance(item, str):
        try:
            return get_assignor(item)
        except (UnknownAssignorError, AssignorLoadError) as error:
            raise InvalidConfigurationError(SETTING, str(error)) from error
    missing = [name for name in ("name", "protocols", "assign") if not hasattr(item, name)]
    if missing:
        raise InvalidConfigurationError(SETTING, f"{item!r} is not an assignor: it has no {', '.join(missing)}")
    return item


def _subscription(member: wire.JoinedMember) -> MemberSubscription:
    told = member.subscription
    if told is None:
        raise InconsistentGroupProtocolError(
            f"the subscription of member {member.member_id} is not a ConsumerProtocol subscription"
        )
    return MemberSubscription(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        topics=told.topics,
        owned_partitions=told.owned_partitions or {},
        generation_id=-1 if told.generation_id is None else told.generation_id,
        rack_id=told.rack_id,
        user_data=base64.b64decode(told.user_data) if told.user_data else b"",
    )


def _refuse_moves_at_once(name: str, subscriptions: Sequence[MemberSubscription], assignment: Assignment) -> None:
    """A cooperative assignment must not give away what its owner has not revoked yet."""
    latest = max((member.generation_id for member in subscriptions), default=-1)
    owner = {
        (topic, partition): member.member_id
        for member in subscriptions
        if member.generation_id == latest
        for topic, partitions in member.owned_partitions.items()
        for partition in partitions
    }
    for member_id, topics in assignment.items():
        for topic, partitions in topics.items():
            for partition in partitions:
                if owner.get((topic, partition), member_id) != member_id:
                    raise IllegalStateError(
                        f"the assignor {name!r} gives {topic}-{partition} to {member_id} while "
                        f"{owner[topic, partition]} still owns it: a cooperative assignor must first revoke it"
                    )
