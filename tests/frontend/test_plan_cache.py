"""No page, and no lag of `/v1`, keeps a plan for any group: such a plan takes seconds for a large one."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from django.test import Client

from frontend.ui.page import member_url
from kcoord.access.tokens import ALL_RULES, create_token
from kcoord.database.pool import Connection, Database
from tests.frontend.plan_seed import put_plan
from tests.frontend.seed import Seed, now_ms, working_group

LARGE = re.compile(r"\b(groups_assignment|groups_watermark|offsets_committedoffset|offsets_plannedoffset|\w+sample)\b")
"""Tables of which one group may have many rows."""
KEPT = {"offsets.plan_lines_page"}
"""A page of one plan by its key, which is read in the same way however many lines the plan has."""


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of statements on large tables that were not planned for their parameters, in the order of their use."""
    found: list[str] = []
    planned: set[int] = set()
    snapshot, execute = Database.snapshot, psycopg.AsyncCursor.execute

    @asynccontextmanager
    async def watched(self: Database, *, keep_plans: bool = False) -> AsyncIterator[Connection]:
        async with snapshot(self, keep_plans=keep_plans) as connection:
            if not keep_plans:
                planned.add(id(connection))
            yield connection
            planned.discard(id(connection))

    async def noted(self: psycopg.AsyncCursor[Any], query: Any, *rest: Any, **options: Any) -> Any:
        text = query.decode() if isinstance(query, bytes) else str(query)
        if LARGE.search(text) and id(self.connection) not in planned:
            found.append(text.partition(" */")[0].removeprefix("/* "))
        return await execute(self, query, *rest, **options)

    monkeypatch.setattr(Database, "snapshot", watched)
    monkeypatch.setattr(psycopg.AsyncCursor, "execute", noted)
    return found


@pytest.mark.parametrize(
    "path",
    [
        "/groups/billing", "/groups/billing?tab=members&sort=lag", "/groups/billing?tab=offsets&sort=lag", "{member}",
        "/topics/orders", "/groups/billing/reset", "{plan}", "/groups/billing/delete-offsets",
        "/groups/billing/snapshot.json", "/groups/billing/history", "/compare?name=billing", "/groups?topic=orders",
        "/groups/billing/members.csv", "/timeline", "/v1/groups/billing/lag", "/v1/groups?topic=orders",
    ],
)  # fmt: skip
def test_reads_of_large_tables_are_planned_for_their_group(
    operator: Client, seed: Seed, kept: list[str], path: str
) -> None:
    members = working_group(seed)
    seed.topic("orders", 12, [12_000] * 12)
    plan = put_plan(seed.connection, "billing", made_at=now_ms())
    path = path.format(member=member_url("billing", members[0]), plan=f"/groups/billing/plans/{plan}")
    headers = {}
    if path.startswith("/v1/"):
        headers["Authorization"] = f"Bearer {create_token('reader', ALL_RULES).secret}"
    answer = operator.get(path, headers=headers)
    assert answer.status_code == 200
    assert [name for name in kept if name not in KEPT] == []
