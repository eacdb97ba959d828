"""A member of a share group: it has its assignment at once, and nothing to give up. Source: share.md 1."""

from __future__ import annotations

import uuid
from typing import Any

from kcoord.client.config import ConsumerConfig
from kcoord.client.core.condition import Condition
from kcoord.client.core.consumer_group.heartbeat import Member
from kcoord.client.core.consumer_group.membership import ConsumerMembership
from kcoord.client.core.consumer_group.participant import Participant
from kcoord.client.core.consumer_group.request import HeartbeatRequest, Subscribed
from kcoord.client.core.consumer_group.states import State
from kcoord.client.core.consumer_group.timer import ConsumerHeartbeatTimer
from kcoord.client.core.effects import Lanes
from kcoord.client.core.link import Link
from kcoord.client.types import TopicPartition


class ShareMembership(ConsumerMembership):
    """As in a consumer group, without reconciling."""

    def _settle(self) -> None:
        self.applied = self.target
        if self.state is not State.STABLE:
            self._to(State.STABLE)


class ShareRequest(HeartbeatRequest):
    """The heartbeat of share groups, which is answered at once."""

    path = "share-heartbeat"
    may_be_held = False

    def _fields(self, subscribed: Subscribed) -> dict[str, Any]:
        fields = super()._fields(subscribed)
        return {name: fields[name] for name in ("client_id", "subscribed_topic_names", "rack_id") if name in fields}

    def _owned(self, membership: ConsumerMembership) -> dict[str, Any]:
        return {}


class ShareMember(Participant):
    """What `poll` does for the group. It never waits."""

    def __init__(self, config: ConsumerConfig, link: Link, condition: Condition, lanes: Lanes) -> None:
        membership = ShareMembership(str(uuid.uuid4()))
        timer = ConsumerHeartbeatTimer(config, condition.clock())
        super().__init__(Member(config, link, condition, lanes, membership, timer, ShareRequest(config), Subscribed()))

    @property
    def member_id(self) -> str:
        """The id, which it keeps."""
        return self._membership.member_id

    @property
    def epoch(self) -> int:
        """The member epoch; 0 outside the group."""
        return self._membership.epoch if self._membership.may_commit else 0

    @property
    def stay(self) -> int:
        """Counts how often it joined: what was acquired before is released by the service when a stay ends."""
        return self._membership.stay

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        """The partitions that it is meant to work on."""
        return frozenset(partition.named for partition in self._membership.target.partitions)

    def poll(self, topics: frozenset[str]) -> None:
        """Take part in the group, subscribed to `topics`. Raises errors that are fatal or need reporting."""
        self._polled()
        self._member.subscribed = Subscribed(topics)
        self._heartbeat.start()
        self._join_if_out()

    async def leave(self, deadline: float) -> None:
        """Leave the group: the service releases what is still held."""
        if self._membership.prepare_leaving():
            await self._say_leave(deadline)
