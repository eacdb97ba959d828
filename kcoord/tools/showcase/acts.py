"""What operators do in the showcase, so that events, plans and commit histories have something to tell."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import quote

from kcoord.tools.showcase.cast import Behaviour, Part
from kcoord.tools.showcase.stage import Stage

BETWEEN_SECONDS = (15.0, 40.0)
SHORT_HOLD_MS = 20_000
REASONS = (
    "rollback of release 214",
    "records were loaded twice",
    "backfill asked for by analytics",
    "bug in the parser",
)

Act = Callable[[Stage, Part], Awaitable[None]]


async def reset_and_undo(stage: Stage, part: Part) -> None:
    """Reset a group without members by some records; half of the time this is undone."""
    by = -stage.chance.randint(100, 5_000)
    body = {"strategy": "shift-by", "by": by, "clamp": True, "reason": stage.chance.choice(REASONS)}
    plan = await stage.api.post(part.group_id, "offsets/plan", body)
    path = f"offsets/plans/{plan['id']}"
    await stage.api.post(part.group_id, f"{path}/apply", {})
    if stage.chance.random() < 1 / 2:
        await asyncio.sleep(stage.chance.uniform(*BETWEEN_SECONDS))
        await stage.api.post(part.group_id, f"{path}/undo", {})


async def remove_a_member(stage: Stage, part: Part) -> None:
    """Remove a member, which joins again."""
    group = await stage.api.request("GET", f"groups/{quote(part.group_id, safe='')}")
    members = group["members"]
    if members:
        member_id = quote(stage.chance.choice(members)["member_id"], safe="")
        await stage.api.post(part.group_id, f"members/{member_id}/kick", {"reason": "does not commit"})


async def add_partitions(stage: Stage, part: Part) -> None:
    """Add two partitions to a topic."""
    path = f"topics/{quote(part.topic.name, safe='')}"
    topic = await stage.api.request("GET", path)
    await stage.api.request("PATCH", path, {"partitions": topic["partitions"] + 2})


async def hold_for_a_moment(stage: Stage, part: Part) -> None:
    """Hold a working group for a short time."""
    await stage.api.post(part.group_id, "hold", {"duration_ms": SHORT_HOLD_MS, "reason": stage.chance.choice(REASONS)})


ACTS: Sequence[tuple[Act, Behaviour]] = (
    (reset_and_undo, Behaviour.EMPTY),
    (remove_a_member, Behaviour.STEADY),
    (add_partitions, Behaviour.STEADY),
    (hold_for_a_moment, Behaviour.ROLLING),
)
"""What is done, to groups of which behaviour."""


async def operate(stage: Stage, parts: Sequence[Part]) -> None:
    """Do one of these now and then, until cancelled."""
    while True:
        await asyncio.sleep(stage.chance.uniform(*BETWEEN_SECONDS))
        act, behaviour = stage.chance.choice(ACTS)
        part = stage.chance.choice([part for part in parts if part.behaviour is behaviour])
        await stage.attempt(part.group_id, act(stage, part))
