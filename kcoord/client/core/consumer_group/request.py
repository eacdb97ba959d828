"""The content of a heartbeat: everything when it joins or after a failure, else only what changed (11.2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kcoord.client.config import ConsumerConfig
from kcoord.client.core.consumer_group.membership import ConsumerMembership, TopicIdPartition
from kcoord.client.core.consumer_group.states import State


@dataclass(frozen=True, slots=True)
class Subscribed:
    """What the member subscribes to: topics by name, and those that match a pattern ("" for none)."""

    topics: frozenset[str] = frozenset()
    pattern: str = ""


class HeartbeatRequest:
    """Builds the bodies of one member's heartbeats, and remembers what was sent to the service.

    `path` says where they go, `may_be_held` whether the service can hold them until there is condition.
    """

    path = "consumer-heartbeat"
    may_be_held = True

    def __init__(self, config: ConsumerConfig) -> None:
        self._config = config
        self._told: dict[str, Any] = {}
        self._told_number: int | None = None

    def forget(self) -> None:
        """It is unknown what arrived: the next one is a full one, and the service repeats the assignment."""
        self._told = {}
        self._told_number = None

    @property
    def is_full(self) -> bool:
        """The next one is a full one."""
        return not self._told

    def body(self, membership: ConsumerMembership, subscribed: Subscribed, max_wait_ms: int) -> dict[str, Any]:
        """The next request, for a member in a state that sends heartbeats."""
        if membership.state is State.JOINING:
            self.forget()
        body = self._identity(membership, membership.epoch)
        if self.may_be_held:
            body["max_wait_ms"] = max_wait_ms
        fields = self._fields(subscribed)
        body |= {name: value for name, value in fields.items() if name not in self._told or self._told[name] != value}
        self._told = fields
        return body | self._owned(membership)

    def _owned(self, membership: ConsumerMembership) -> dict[str, Any]:
        if membership.applied.number != self._told_number:
            self._told_number = membership.applied.number
            return {"topic_partitions": by_topic_id(membership.owned)}
        return {}

    def leave(self, membership: ConsumerMembership) -> dict[str, Any]:
        """The request of a leaving member."""
        return self._identity(membership, membership.leave_epoch)

    def _identity(self, membership: ConsumerMembership, epoch: int) -> dict[str, Any]:
        identity: dict[str, Any] = {"member_id": membership.member_id, "member_epoch": epoch}
        if self._config.group_instance_id is not None:
            identity["instance_id"] = self._config.group_instance_id
        return identity

    def _fields(self, subscribed: Subscribed) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "client_id": self._config.client_id,
            "rebalance_timeout_ms": self._config.max_poll_interval_ms,
            "subscribed_topic_names": sorted(subscribed.topics),
            # Empty, not absent: the service must forget a pattern when the user drops it.
            "subscribed_topic_regex": subscribed.pattern,
        }
        if self._config.client_rack is not None:
            fields["rack_id"] = self._config.client_rack
        if self._config.group_remote_assignor is not None:
            fields["server_assignor"] = self._config.group_remote_assignor
        return fields


def by_topic_id(partitions: Iterable[TopicIdPartition]) -> list[dict[str, Any]]:
    """Partitions in the form that a heartbeat reports."""
    topics: dict[str, list[int]] = {}
    for topic_id, _, partition in sorted(partitions):
        topics.setdefault(topic_id, []).append(partition)
    return [{"topic_id": topic_id, "partitions": numbers} for topic_id, numbers in topics.items()]
