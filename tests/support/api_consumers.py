"""Members of consumer groups over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx

from groups.core.model.consumer_group import ConsumerGroup
from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.process.runtime import Runtime

BEAT = "/v1/groups/g/consumer-heartbeat"


def joining(member_id: str = "m1", **changes: Any) -> dict[str, Any]:
    """The first heartbeat of a member."""
    body = {
        "member_id": member_id,
        "member_epoch": 0,
        "client_id": "billing",
        "rebalance_timeout_ms": 30_000,
        "subscribed_topic_names": ["orders"],
        "server_assignor": "range",
        "topic_partitions": [],
    }
    return {**body, **changes}


@dataclass
class Consumers:
    """Heartbeats of group g that must succeed, and what became of them."""

    api: httpx.AsyncClient
    runtime: Runtime

    @property
    def service(self) -> GroupService:
        """The group service of this process."""
        return self.runtime.get(GroupService)

    async def beat(self, **body: Any) -> dict[str, Any]:
        """The answer of one heartbeat."""
        response = await self.api.post(BEAT, json=body)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    async def join(self, member_id: str = "m1", **changes: Any) -> dict[str, Any]:
        """The answer of a join."""
        return await self.beat(**joining(member_id, **changes))

    async def go_on(self, answer: dict[str, Any], **changes: Any) -> dict[str, Any]:
        """The answer of a heartbeat at the epoch of an earlier answer."""
        return await self.beat(member_id=answer["member_id"], member_epoch=answer["member_epoch"], **changes)

    async def topic(self, name: str, partitions: int = 3) -> str:
        """A new topic's id."""
        return str((await self.runtime.get(TopicService).create(name, partitions)).topic_id)

    async def group(self) -> ConsumerGroup:
        """The group as last committed."""
        found = (await self.service.describe("g")).group
        assert isinstance(found, ConsumerGroup)
        return found


def partitions(answer: dict[str, Any]) -> dict[str, list[int]] | None:
    """An assignment by topic name."""
    assignment = answer["assignment"]
    return assignment and {entry["topic"]: entry["partitions"] for entry in assignment["topic_partitions"]} | {}
