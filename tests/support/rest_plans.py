"""What tests of offset plans share: a topic whose log is known, commits, and the endpoints as functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx

from groups.topics import TopicService, Watermark

GROUP = "/v1/groups/g"


async def orders(topics: TopicService, partitions: int = 3) -> None:
    """A topic whose partitions each have offsets 10 to 100."""
    await topics.create("orders", partitions)
    await topics.set_watermarks("orders", [Watermark(p, 10, 100) for p in range(partitions)])


@dataclass(frozen=True, slots=True)
class Plans:
    """The endpoints of plans of one group."""

    api: httpx.AsyncClient
    group: str = GROUP

    async def commit(self, *offsets: tuple[int, int], topic: str = "orders", **who: Any) -> None:
        """Commit (partition, offset)s, as a simple consumer or as whom `who` says."""
        partitions = [{"partition": p, "committed_offset": o, "committed_metadata": f"at {o}"} for p, o in offsets]
        body = {"topics": [{"name": topic, "partitions": partitions}], **who}
        response = await self.api.post(f"{self.group}/offsets/commit", json=body)
        assert response.status_code == 200, response.text
        assert {p["error_code"] for t in response.json()["topics"] for p in t["partitions"]} == {0}

    async def committed(self) -> dict[tuple[str, int], int]:
        """What the group has committed; nothing where there is no group."""
        page = (await self.api.get(f"{self.group}/offsets")).json()
        return {(o["topic"], o["partition"]): o["committed_offset"] for o in page.get("offsets", [])}

    async def ask(self, strategy: str, **body: Any) -> httpx.Response:
        """The answer to a request for a plan."""
        return await self.api.post(f"{self.group}/offsets/plan", json={"strategy": strategy, **body})

    async def made(self, strategy: str, **body: Any) -> dict[str, Any]:
        """A plan."""
        response = await self.ask(strategy, **body)
        assert response.status_code == 201, response.text
        made: dict[str, Any] = response.json()
        return made

    async def apply(self, plan: dict[str, Any]) -> httpx.Response:
        """The answer to applying it."""
        return await self.api.post(f"{self.group}/offsets/plans/{plan['id']}/apply")

    async def undo(self, plan: dict[str, Any]) -> httpx.Response:
        """The answer to undoing it."""
        return await self.api.post(f"{self.group}/offsets/plans/{plan['id']}/undo")

    async def applied(self, strategy: str, **body: Any) -> dict[str, Any]:
        """A plan that is applied."""
        response = await self.apply(await self.made(strategy, **body))
        assert response.status_code == 200, response.text
        applied: dict[str, Any] = response.json()
        return applied


def news(plan: dict[str, Any]) -> dict[tuple[str, int], int | None]:
    """The new offsets of a plan."""
    return {(line["topic"], line["partition"]): line["new_offset"] for line in plan["partitions"]}
