"""Members of a consumer group that the real service coordinates, for pages to show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid5

from groups.core.model.commands import ConsumerHeartbeat
from groups.core.model.replies import ConsumerHeartbeatReply
from groups.engine.service import GroupService
from kcoord.process.off_loop import settled
from kcoord.protocol.errors import Error
from tests.frontend.seed import NAMESPACE


class ConsumerClient:
    """A member that heartbeats when it is told to, and remembers what it was told to have."""

    def __init__(self, service: GroupService, name: str, group_id: str = "ledger", **first: Any) -> None:
        self.service = service
        self.group_id = group_id
        self.member_id = str(uuid5(NAMESPACE, f"{group_id}/{name}"))
        self.instance_id: str | None = first.get("instance_id")
        self.epoch = 0
        self.assignment: Mapping[str, frozenset[int]] = {}
        self._first: dict[str, Any] = {
            "client_id": "ledger",
            "client_host": "10.0.0.9",
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_names": frozenset({"entries"}),
            "topic_partitions": {},
            **first,
        }

    async def join(self) -> ConsumerClient:
        """The first heartbeat."""
        return await self._send(self._first)

    async def beat(self, *, acknowledge: bool = False) -> ConsumerClient:
        """A heartbeat; with `acknowledge` it says that it uses what it was told to have and nothing else."""
        known = {"client_id": self._first["client_id"], "client_host": self._first["client_host"]}
        if acknowledge:
            known["topic_partitions"] = self.assignment
        return await self._send({**known, "instance_id": self.instance_id})

    async def leave(self, *, for_good: bool = True) -> None:
        """Go, or as a static member mean to come back."""
        self.epoch = -1 if for_good else -2
        await self._send({"instance_id": self.instance_id})

    async def _send(self, values: Mapping[str, Any]) -> ConsumerClient:
        reply: ConsumerHeartbeatReply = await settled(
            self.service.consumer_heartbeat(ConsumerHeartbeat(self.group_id, self.member_id, self.epoch, **values))
        )
        assert reply.error is Error.NONE, reply
        self.epoch = reply.member_epoch
        if reply.assignment is not None:
            self.assignment = reply.assignment
        return self


async def settle(*members: ConsumerClient) -> None:
    """Heartbeats until everybody has what it is meant to have."""
    for _ in range(4):
        for member in members:
            await member.beat(acknowledge=True)
